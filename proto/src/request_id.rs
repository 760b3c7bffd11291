//! The header that names a call, by which the logs of both ends can be held together.

use nqueens_model::id::RequestId;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// The header that carries a [`RequestId`].
pub const HEADER: &str = "x-request-id";

/// Names a request.
pub fn attach(id: RequestId, metadata: &mut MetadataMap) {
    let value = AsciiMetadataValue::try_from(id.to_string()).expect("hexadecimal digits");
    metadata.insert(HEADER, value);
}
