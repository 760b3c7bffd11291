//! Messages of anybody who reaches the port, or of a coordinator that is none.

use std::fmt::Debug;

use nqueens_model::message::{Registration, SyncRequest, SyncResponse};
use nqueens_model::operator::{RunStatus, Submission, WorkerStatus};
use nqueens_proto::v1;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The first byte chooses the message, the others are it. Whatever it is, it is refused, or it is the same after a second
/// way over the wire; jobs in it are refused, or they are themselves again when they are encoded.
pub(crate) fn check(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else { return };
    match kind {
        0 => drop(there_and_back::<v1::RegisterRequest, Registration>(message)),
        1 => drop(there_and_back::<v1::SyncRequest, SyncRequest>(message)),
        2 => jobs(there_and_back::<v1::SyncResponse, SyncResponse>(message)),
        3 => json_there_and_back::<Submission>(message),
        4 => json_there_and_back::<RunStatus>(message),
        5 => json_there_and_back::<WorkerStatus>(message),
        _ => {}
    }
}

fn there_and_back<Wire, Domain>(bytes: &[u8]) -> Option<Domain>
where
    Wire: Message + Default + From<Domain>,
    Domain: TryFrom<Wire> + Clone + Debug,
{
    let domain = Domain::try_from(Wire::decode(bytes).ok()?).ok()?;
    let again =
        Domain::try_from(Wire::from(domain.clone())).ok().expect("what was taken once is taken again");
    assert_eq!(format!("{domain:?}"), format!("{again:?}"));
    Some(domain)
}

fn json_there_and_back<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) {
    let Ok(first) = serde_json::from_slice::<T>(bytes) else { return };
    let text = serde_json::to_vec(&first).expect("its keys are text");
    let again: T = serde_json::from_slice(&text).expect("what was taken once is taken again");
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
}

fn jobs(answer: Option<SyncResponse>) {
    for lease in answer.into_iter().flat_map(|answer| answer.leases) {
        if let Ok(job) = lease.job.decode() {
            assert_eq!(job.encode(), lease.job.prefixes, "a job is written in one way only");
        }
    }
}
