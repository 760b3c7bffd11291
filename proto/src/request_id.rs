//! The header that identifies a call in the logs of both ends.
//!
//! Every caller draws a random `x-request-id` for each call and logs it at `debug`. The coordinator's log lines of a
//! call are in a span with this id, those of the writer's transaction too. A malformed id is not logged.

use nqueens_model::id::RequestId;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// The header that carries a [`RequestId`].
pub const HEADER: &str = "x-request-id";

/// Names a request.
pub fn attach(id: RequestId, metadata: &mut MetadataMap) {
    let value = AsciiMetadataValue::try_from(id.to_string()).expect("hexadecimal digits");
    metadata.insert(HEADER, value);
}
