//! Fault injection: breaks clusters of real processes on purpose, and checks that the count stays exact.
//!
//! ```text
//!              +-- proxy --+                     +-- proxy --+
//!   worker ----|           |---- recording proxy --------|           |---- coordinator ---- ledger
//!     |        |  weather  |  writes down what   |  weather  |                        |
//!   spool      +-----------+  is acknowledged    +-----------+                   check, each round
//! ```
//!
//! A [`Campaign`] draws faults from a seed, one per round; `faults::FAULTS` is the list of them. After each round
//! `check` compares the ledger with its own rules, with what the recording proxy saw acknowledged, and with the counts of
//! every job from an undisturbed run.
//!
//! A [`Mob`] lets attackers with valid tokens and strangers without loose on a cluster of honest workers.

#![forbid(unsafe_code)]

mod campaign;
mod check;
mod cluster;
mod faults;
mod ledger;
mod mob;
pub mod process;
mod proxy;
mod recording_proxy;
mod sandbox;
mod wal;

pub use campaign::Campaign;
pub use mob::Mob;
