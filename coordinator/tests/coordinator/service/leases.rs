//! Leases that are lost, returned, expired, or claimed by the wrong worker.

use std::collections::BTreeSet;

use nqueens_coordinator::Policy;
use nqueens_proto::v1::{self, Verdict};

use super::{ids, nothing, returned};
use crate::common::{ALL, House, Ledger, honest, rows_8};

#[tokio::test]
async fn leases_that_got_lost_are_sent_again_and_others_are_not() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(3).await;
    assert_eq!(leases.len(), 3);
    assert!(leases.iter().all(|lease| lease.n == 8));
    let epochs: BTreeSet<_> = leases.iter().map(|lease| lease.token.unwrap().epoch).collect();
    assert!(epochs.len() > 1 && epochs.iter().all(|epoch| *epoch > 0), "first leases: {epochs:?}");
    // It got none of the answers, and asks again: the very same.
    let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: 3, ..nothing() };
    let v1::SyncResponse { leases: again, next_sync_ms, .. } = one.sync(sync).await.unwrap();
    assert_eq!(next_sync_ms, 1_234);
    let by_job = |leases: &[v1::Lease]| {
        let mut leases = leases.to_vec();
        leases.sort_by_key(|lease| lease.token.unwrap().job);
        leases
    };
    assert_eq!(by_job(&again), by_job(&leases));
    // It lost one of the three only.
    let (revoked, sent) = one.hold(&leases[1..]).await;
    assert_eq!((revoked, sent), (vec![], vec![leases[0].clone()]));
    // The other gets what is left, the small wish at least one job.
    let small = v1::SyncRequest { wanted_states: 1, wanted_jobs: 1_000, ..nothing() };
    let first = two.sync(small).await.unwrap().leases;
    assert_eq!(first.len(), 1);
    let rest = two.take_more(&first, 1_000).await;
    assert_eq!(rest.len(), 4);
    let mut all: Vec<_> =
        [&leases, &first, &rest].into_iter().flatten().map(|l| l.token.unwrap().job).collect();
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<_>>(), "every job once");
    assert_eq!(house.progress(run.id).sums.leased, 8);
    house.end(&ledger).await;
}

#[tokio::test]
async fn leases_come_back_and_leave_again_under_a_new_epoch() {
    let (ledger, house) = House::fresh().await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(2).await;
    let back = vec![returned(&leases[0], ""), returned(&leases[1], "panicked: out of luck")];
    one.sync(v1::SyncRequest { returned: back.clone(), ..nothing() }).await.unwrap();
    assert_eq!(house.progress(run.id).sums.leased, 0);
    let again = two.take(2).await;
    let key = |lease: &v1::Lease| (lease.token.unwrap().job, lease.token.unwrap().epoch);
    let expected: Vec<_> = leases.iter().map(key).map(|(job, epoch)| (job, epoch + 1)).collect();
    assert_eq!(again.iter().map(key).collect::<Vec<_>>(), expected, "what came back leaves first");
    // The old tokens are worth nothing: neither to give back, nor to hold.
    one.sync(v1::SyncRequest { returned: back, ..nothing() }).await.unwrap();
    assert_eq!(one.hold(&leases).await.0.into_iter().map(Some).collect::<Vec<_>>(), ids(&leases));
    assert_eq!(two.hold(&again).await.0, vec![]);
    let failures = "SELECT sum(failures) || ' ' || sum(lapses) || ' ' || sum(epoch) FROM job";
    let epochs: u32 = again.iter().map(|lease| key(lease).1).sum();
    let told = format!("1 0 {epochs}");
    assert_eq!(ledger.ask(failures).await, [told], "giving back costs nothing, failing one attempt");
    house.end(&ledger).await;
}

#[tokio::test]
async fn an_ended_lease_is_revived_by_its_holder_and_fenced_from_others() {
    let ledger = Ledger::new();
    let house = House::open(&ledger.path, Policy { lease_ms: 1, ..Policy::default() }).await;
    let run = house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    let leases = one.take(8).await;
    house.wait_for(run.id, |run| run.sums.leased == 0).await;
    let other = two.take(1).await;
    let (revoked, again) = one.hold(&leases).await;
    let taken = other[0].token.unwrap().job;
    assert_eq!(revoked.iter().map(|token| token.job).collect::<Vec<_>>(), [taken]);
    assert_eq!(again, []);
    // What it goes on with is finished under the lease that it had.
    let results: Vec<_> = leases.iter().filter(|l| l.token.unwrap().job != taken).map(honest).collect();
    assert_eq!(one.report(&results).await, [Verdict::Accepted; 7]);
    let mut had: Vec<_> = results.iter().map(|result| result.token.unwrap()).collect();
    had.sort_unstable_by_key(|token| token.job);
    let had: Vec<_> = had.iter().map(|token| token.epoch.to_string()).collect();
    assert_eq!(ledger.ask("SELECT epoch FROM result ORDER BY job").await, had);
    house.end(&ledger).await;
}

#[tokio::test]
async fn a_token_of_another_lease_moves_nothing() {
    let (ledger, house) = House::fresh().await;
    house.coordinator.operator().submit(rows_8(), 0).await.unwrap();
    let (mut one, mut two) = (house.worker(1).await, house.worker(2).await);
    // The second job has had two leases: its first token is out of date.
    let old = two.take(1).await.remove(0);
    two.sync(v1::SyncRequest { returned: vec![returned(&old, "")], ..nothing() }).await.unwrap();
    let current = two.take(1).await.remove(0);
    let own = one.take(1).await.remove(0);
    let (token, others) = (own.token.unwrap(), current.token.unwrap());
    let before = old.token.unwrap();
    assert_eq!((others.job, others.epoch), (before.job, before.epoch + 1));
    let free = (0..8).find(|job| ![token.job, others.job].contains(job)).unwrap();
    let strange = [
        old.token.unwrap(),
        others,
        v1::LeaseToken { job: free, ..token },
        v1::LeaseToken { job: 8, ..token },
        v1::LeaseToken { run: token.run ^ 1, ..token },
        v1::LeaseToken { epoch: token.epoch + 1, ..token },
        v1::LeaseToken { ticket: token.ticket ^ 1, ..token },
    ];
    let before = ledger.everything().await;
    for token in strange {
        let stranger = v1::Lease { token: Some(token), ..own.clone() };
        for failure in ["", "panicked: out of luck"] {
            let back = v1::SyncRequest { returned: vec![returned(&stranger, failure)], ..nothing() };
            one.sync(back).await.unwrap();
        }
        let held = one.hold(&[own.clone(), stranger]).await;
        assert_eq!(held, (vec![token], vec![]), "it is told, and keeps its own");
        assert_eq!(two.hold(std::slice::from_ref(&current)).await, (vec![], vec![]));
        assert_eq!(ledger.everything().await, before, "{token:?}");
    }
    house.end(&ledger).await;
}
