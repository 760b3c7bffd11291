//! What workers see of a coordinator, and what its ledger has then.

mod faults;
mod leases;
mod lives;
mod refusals;
mod results;
mod totals;

use nqueens_proto::v1;

/// The leases' names.
pub(crate) fn ids(leases: &[v1::Lease]) -> Vec<Option<v1::LeaseToken>> {
    leases.iter().map(|lease| lease.token).collect()
}

/// A lease that comes back, and why; empty for no reason.
pub(crate) fn returned(lease: &v1::Lease, failure: &str) -> v1::ReturnedLease {
    v1::ReturnedLease { token: lease.token, failure: failure.to_owned() }
}

/// A worker with nothing to say.
pub(crate) fn nothing() -> v1::SyncRequest {
    v1::SyncRequest::default()
}
