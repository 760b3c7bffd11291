//! A worker, as operators see it.

use super::WallTime;
use crate::id::WorkerId;

/// A worker that was seen since the coordinator started.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// Its name in the ledger.
    pub id: WorkerId,
    /// What its owner calls it.
    pub name: String,
    /// Program version and source revision.
    pub build: String,
    /// Its engines, the one in use first.
    pub kernels: Vec<String>,
    /// Its counting threads.
    pub threads: u32,
    /// When it registered.
    pub registered_at: WallTime,
    /// Time since its last heartbeat, in milliseconds.
    pub silent_ms: u64,
    /// Jobs leased to it.
    pub leases: u64,
    /// States that all its threads visit in a second; `None` while it counts nothing, and before its first result.
    pub states_per_s: Option<f64>,
    /// Results accepted from it since the coordinator started.
    pub accepted: u64,
    /// An operator wants it to go.
    pub draining: bool,
    /// Checks that its machine passed.
    pub checks_passed: u64,
    /// Checks that its machine failed.
    pub checks_failed: u64,
    /// Checks of its machine's results that are open.
    pub checks_open: u64,
    /// Why its machine gets no more jobs; `None` while it is trusted.
    pub distrusted: Option<String>,
}
