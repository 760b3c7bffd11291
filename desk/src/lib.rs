//! The operator's desk: what a coordinator shows to browsers, to Prometheus and to a webhook. It looks on, and changes
//! nothing.
//!
//! ```text
//! Operator --snapshots, census, events--> picture, history --> live (server-sent events) --> page/
//!          |                                              +--> metrics
//!          +--events--> webhook
//! ```
//!
//! Everything here is bounded: connections, streams, sessions, sizes of requests and of what is kept; a reader that is
//! slow misses pictures, and holds nobody up.

#![forbid(unsafe_code)]

mod door;
mod fresh;
mod headers;
mod history;
pub mod json;
mod live;
mod metrics;
mod picture;
mod server;
mod shared;
mod solutions;
mod webhook;

pub use door::Admission;
pub use server::serve;
pub use webhook::{InvalidWebhook, Teller, Webhook};
