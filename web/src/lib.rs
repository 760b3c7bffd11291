//! The web page and Prometheus metrics of a coordinator. All of it is read-only.
//!
//! ```text
//! Operator --snapshots, workers, events--> picture --> live (server-sent events) --> page/
//!          +------> metrics, documents
//! ```
//!
//! * `server` is an HTTP/1.1 listener of its own. `auth` decides who may look: by the Host header on loopback,
//!   elsewhere by the operator token and then a session cookie. `health` is open to everybody.
//! * `live` sends pictures as server-sent events. They are computed when somebody looks, once for all (`fresh`).
//!   `documents` are the report and the ledger of a run, as files. `saved` is the page with a finished run inside.
//! * `metrics` are written anew for each scrape.
//! * `page/` is HTML, CSS and modules without a build step. Its policy allows no other scripts.
//!
//! Connections, streams, sessions, request sizes and stored data have limits. A slow reader misses pictures and
//! delays nobody.

#![forbid(unsafe_code)]

mod auth;
mod documents;
mod fresh;
mod headers;
mod health;
mod live;
mod metrics;
mod picture;
mod probe;
mod saved;
mod server;
mod shared;
mod solutions;
mod words;

pub use auth::Admission;
pub use documents::{Document, DocumentWriter};
pub use picture::MAP_CELLS;
pub use probe::{InvalidPage, NotReady, Probe};
pub use saved::Saved;
pub use server::Server;
