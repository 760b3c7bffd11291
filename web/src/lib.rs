//! The web page and Prometheus metrics of a coordinator. All of it is read-only.
//!
//! ```text
//! Operator --snapshots, workers, events--> picture --> live (server-sent events) --> page/
//!          +------> metrics, documents
//! ```
//!
//! * `router` is what there is. `auth` lets in whoever may call as an operator, with the token or with a session cookie.
//! * `live` sends pictures as server-sent events. They are computed when somebody looks, once for all (`fresh`).
//!   `documents` are the report and the ledger of a run, as files. `saved` is the page with a finished run inside.
//! * `metrics` are written anew for each scrape.
//! * `page/` is HTML, CSS and modules without a build step. Its policy allows no other scripts.
//!
//! Streams, sessions, request sizes and stored data have limits. A slow reader misses pictures and
//! delays nobody.

#![forbid(unsafe_code)]

mod auth;
mod documents;
mod fresh;
mod headers;
mod live;
mod metrics;
mod picture;
mod router;
mod saved;
mod shared;
mod solutions;
mod words;

pub use documents::{Document, DocumentWriter};
pub use picture::MAP_CELLS;
pub use router::pages;
pub use saved::saved;
