//! A worker, as operators see it.

use super::{WallTime, worker_id};
use crate::convert::InvalidMessage;
use crate::id::WorkerId;
use crate::v1;

/// A worker that has been heard of since the coordinator started.
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
    /// Since it was last heard of, in milliseconds.
    pub silent_ms: u64,
    /// Jobs leased to it.
    pub leases: u64,
    /// Measured speed of all its threads, in estimated states a second; `None` before its first result.
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
    /// Why its machine gets no more jobs; `None` as long as it is trusted.
    pub distrusted: Option<String>,
}

impl From<WorkerStatus> for v1::WorkerStatus {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            id: worker.id.get(),
            name: worker.name,
            build: worker.build,
            kernels: worker.kernels,
            threads: worker.threads,
            registered_at_ms: worker.registered_at,
            silent_ms: worker.silent_ms,
            leases: worker.leases,
            states_per_s: worker.states_per_s,
            accepted: worker.accepted,
            draining: worker.draining,
            checks_passed: worker.checks_passed,
            checks_failed: worker.checks_failed,
            checks_open: worker.checks_open,
            distrusted: worker.distrusted,
        }
    }
}

impl TryFrom<v1::WorkerStatus> for WorkerStatus {
    type Error = InvalidMessage;

    fn try_from(wire: v1::WorkerStatus) -> Result<Self, Self::Error> {
        Ok(Self {
            id: worker_id("id", wire.id)?,
            name: wire.name,
            build: wire.build,
            kernels: wire.kernels,
            threads: wire.threads,
            registered_at: wire.registered_at_ms,
            silent_ms: wire.silent_ms,
            leases: wire.leases,
            states_per_s: wire.states_per_s,
            accepted: wire.accepted,
            draining: wire.draining,
            checks_passed: wire.checks_passed,
            checks_failed: wire.checks_failed,
            checks_open: wire.checks_open,
            distrusted: wire.distrusted,
        })
    }
}
