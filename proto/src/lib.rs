//! The wire of the cluster: the protobuf messages of `nqueens/v1/*.proto`, their conversion to the types of
//! `nqueens-model` and back, and connections to a coordinator.
//!
//! Incoming messages are parsed here once; past this crate an illegal value can't be built.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

use nqueens_kernel::plan::Fingerprint;

mod codec;
mod connect;
mod convert;
mod http;
mod random;
pub mod request_id;
pub mod tls;
mod token;

#[allow(missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod v1 {
    tonic::include_proto!("nqueens.v1");
}

pub use connect::{InvalidAddress, connect};
pub use convert::InvalidMessage;
pub use http::{CallFailure, JsonClient};
pub use random::random_bytes;
pub use tls::ClientTls;
pub use token::{InvalidToken, Token};

/// Version of the conversation between worker and coordinator. A coordinator refuses every other.
pub const PROTOCOL_VERSION: u32 = 1;

/// What this build means by jobs: a coordinator refuses workers that mean something else.
pub static PLANS: LazyLock<Fingerprint> = LazyLock::new(Fingerprint::of_all_plans);

/// Larger messages are refused unread, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
