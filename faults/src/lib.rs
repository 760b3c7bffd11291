//! Breaks clusters of real processes on purpose, and looks whether the count stays exact.
//!
//! ```text
//!              +-- proxy --+                     +-- proxy --+
//!   worker ----|           |---- witness --------|           |---- coordinator ---- ledger
//!     |        |  weather  |  writes down what   |  weather  |                        |
//!   spool      +-----------+  is acknowledged    +-----------+                   check, each round
//! ```
//!
//! A [`Campaign`] draws faults from a seed, one a round; `faults::FAULTS` is the list of them. After each round the
//! `check` holds the ledger against its own rules, against what the witness has heard acknowledged, and against the
//! counts of every single job from a run that nobody disturbed.

#![forbid(unsafe_code)]

mod campaign;
mod check;
mod cluster;
mod faults;
mod ledger;
pub mod process;
mod proxy;
mod random;
mod rooms;
mod wal;
mod witness;

pub use campaign::Campaign;
