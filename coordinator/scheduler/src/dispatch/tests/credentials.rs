//! Names are free, credentials are not: what workers of one credential can do to those of another, and to a run.

use std::collections::HashSet;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::message::{JobResult, ReturnedLease, Verdict, Wanted};

use super::super::*;
use super::registration;
use super::world::{result, truth};

const JOBS: usize = 100;

/// A run of which all results are checked, and its coordinator, which counts itself.
struct Cluster {
    dispatch: Dispatch,
    run: RunId,
    accepted: BTreeMap<JobId, Accepted>,
    workers: u64,
    now: Millis,
}

impl Cluster {
    fn new(arbiter: bool) -> Self {
        Self::of(arbiter, 1_000_000)
    }

    fn of(arbiter: bool, replicate_ppm: u32) -> Self {
        let policy = Policy { arbiter, ..Policy::default() };
        let mut dispatch = Dispatch::new(policy, Incarnation::from_random(1), [0; 32]);
        let plan = Plan::new(BoardSize::new(20).expect("a board"), PlanKind::Border);
        let run = RunId::from_random(7);
        let settings = RunSettings { id: run, plan, seed: 1, priority: 0, replicate_ppm };
        dispatch.add_run(Run::planned(&settings, &[1; JOBS]));
        Self { dispatch, run, accepted: BTreeMap::new(), workers: 0, now: 0 }
    }

    /// Another worker, under a new name.
    fn worker(&mut self, credential: &str) -> WorkerId {
        self.workers += 1;
        let id = WorkerId::new(self.workers).expect("a name");
        let name = if credential == Credential::OWN { credential } else { &format!("m{}", self.workers) };
        let credential = Credential::stored(credential).expect("a name");
        self.dispatch.add_worker(id, &registration(name, "reference", 1), credential);
        self.dispatch.heartbeat(self.now, id, &[]);
        id
    }

    fn report(&mut self, worker: WorkerId, token: LeaseToken, counts: Counts) -> Verdict {
        let result = result(token, counts);
        let before = self.accepted.get(&token.job).copied();
        let judged = self.dispatch.report(self.now, worker, &result, before.as_ref(), true);
        if judged.verdict == Verdict::Accepted && judged.keep {
            let LeaseToken { epoch, incarnation, .. } = token;
            let JobResult { kernel, states, elapsed_us, .. } = result;
            let cpu_us = elapsed_us;
            let accepted =
                Accepted { worker, epoch, incarnation, kernel, counts, states, elapsed_us, cpu_us };
            self.accepted.insert(token.job, accepted);
        }
        judged.verdict
    }

    /// Counts up to so many jobs, right or not; returns the verdicts.
    fn count(&mut self, worker: WorkerId, jobs: usize, lies: bool) -> Vec<Verdict> {
        let granted = self.dispatch.grant(self.now, worker, Wanted::new(u64::MAX, jobs));
        granted.into_iter().map(|token| self.report(worker, token, counted(token, lies))).collect()
    }

    /// The coordinator counts all that it has to.
    fn decide(&mut self, own: WorkerId) -> usize {
        let mut decided = 0;
        while let Some((token, _)) = self.dispatch.undecided(self.now, &HashSet::new()) {
            self.report(own, token, counted(token, false));
            decided += 1;
        }
        decided
    }

    fn sums(&self) -> Sums {
        *self.dispatch.run(self.run).expect("added").sums()
    }

    fn is_trusted(&self, worker: WorkerId) -> bool {
        let machine = &self.dispatch.worker(worker).expect("added").machine;
        self.dispatch.distrusts(machine).is_none()
    }
}

/// All liars tell the same lie.
fn counted(token: LeaseToken, lies: bool) -> Counts {
    let Counts { count8, .. } = truth(token.job.number);
    Counts { count8: count8 + u64::from(lies), ..truth(token.job.number) }
}

/// Names of one process outvoted an honest machine within a second.
#[test]
fn names_of_one_credential_outvote_nobody() {
    let mut cluster = Cluster::new(true);
    let honest = cluster.worker("club");
    assert_eq!(cluster.count(honest, 20, false), [Verdict::Accepted; 20]);
    let names: Vec<_> = (0..20).map(|_| cluster.worker("lab")).collect();
    while cluster.sums().done + cluster.sums().quarantined < u32::try_from(JOBS).expect("few") {
        for name in &names {
            cluster.count(*name, 20, true);
        }
    }
    assert!(cluster.is_trusted(honest), "the liars decide nothing");
    assert_eq!(
        (cluster.sums().quarantined, cluster.sums().done),
        (20, 80),
        "they disagree, and made up the rest"
    );
    let own = cluster.worker(Credential::OWN);
    assert_eq!(cluster.decide(own), 20);
    assert!(cluster.is_trusted(honest));
    assert!(!names.iter().any(|name| cluster.is_trusted(*name)), "too many of its machines lied");
    for (job, accepted) in &cluster.accepted {
        let slot = cluster.dispatch.run(cluster.run).expect("added").slot(job.number);
        assert!(!slot.confirmed || accepted.counts == truth(job.number), "{job}");
    }
}

/// What the coordinator has counted stays, whoever says otherwise.
#[test]
fn the_coordinator_is_outvoted_by_nobody() {
    let mut cluster = Cluster::new(true);
    let [liar, own] = ["lab", Credential::OWN].map(|credential| cluster.worker(credential));
    let [token] = cluster.dispatch.grant(0, liar, Wanted::new(1, 1))[..] else { panic!("one job") };
    assert_eq!(cluster.report(liar, token, counted(token, true)), Verdict::Accepted);
    assert_eq!(cluster.report(own, token, counted(token, false)), Verdict::Accepted);
    assert!(!cluster.is_trusted(liar));
    for credential in ["lab", "club", "pub"] {
        let another = cluster.worker(credential);
        assert_eq!(cluster.report(another, token, counted(token, true)), Verdict::Conflict);
        assert!(!cluster.is_trusted(another));
        assert_eq!(cluster.accepted[&token.job].worker, own);
        let slot = cluster.dispatch.run(cluster.run).expect("added").slot(token.job.number);
        assert!(slot.state == JobState::Done && slot.confirmed);
    }
}

/// Two credentials of which enough was confirmed decide without the coordinator.
#[test]
fn credentials_with_standing_decide() {
    let mut cluster = Cluster::new(true);
    let [one, two, three] = ["lab", "club", "pub"].map(|credential| cluster.worker(credential));
    for _ in 0..12 {
        for worker in [one, two, three] {
            cluster.count(worker, 4, false);
        }
    }
    let confirmed = cluster.sums().checks.confirmed;
    assert!(confirmed > 30, "{confirmed}");
    let [token] = cluster.dispatch.grant(0, one, Wanted::new(1, 1))[..] else { panic!("one job") };
    assert_eq!(cluster.report(one, token, counted(token, true)), Verdict::Accepted);
    for worker in [two, three, two, three] {
        cluster.count(worker, 8, false);
    }
    assert!(!cluster.is_trusted(one) && cluster.is_trusted(two) && cluster.is_trusted(three));
    assert_eq!(cluster.accepted[&token.job].counts, truth(token.job.number));
}

/// A result is checked under another credential if somebody of one is there.
/// Where the coordinator does not count, a dispute between two owners is settled by whoever comes third.
#[test]
fn a_dispute_is_no_longer_kept_for_other_credentials() {
    let mut cluster = Cluster::new(false);
    let [first, second, liar] = ["lab", "lab", "club"].map(|credential| cluster.worker(credential));
    assert_eq!(cluster.count(first, 1, false), [Verdict::Accepted]);
    assert_eq!(cluster.count(liar, 1, true), [Verdict::Conflict], "the check is kept for it");
    assert_eq!(cluster.sums().quarantined, 1);
    assert_eq!(cluster.count(second, 1, false), [Verdict::Accepted], "it decides");
    assert_eq!((cluster.sums().quarantined, cluster.sums().checks.settled), (0, 1));
    assert_eq!([first, second, liar].map(|worker| cluster.is_trusted(worker)), [true, true, false]);
}

#[test]
fn checks_are_kept_for_other_credentials() {
    let mut cluster = Cluster::new(true);
    let [one, two] = ["lab", "lab"].map(|credential| cluster.worker(credential));
    assert_eq!(cluster.count(one, 1, true), [Verdict::Accepted]);
    assert_eq!(cluster.count(two, 1, true), [Verdict::Duplicate], "there is nobody else");
    assert_eq!(cluster.sums().checks.confirmed, 0, "they may be one person's");
    let three = cluster.worker("club");
    assert_eq!(cluster.count(one, 1, true), [Verdict::Accepted]);
    assert_eq!(cluster.count(two, 1, true), [Verdict::Accepted], "not asked for a check any more");
    assert_eq!(cluster.count(three, 1, false), [Verdict::Conflict]);
}

/// One worker failed all jobs three times in 0.08 seconds, and the whole run was in quarantine.
#[test]
fn failures_of_one_credential_put_nothing_in_quarantine() {
    let mut cluster = Cluster::new(true);
    let fail = |cluster: &mut Cluster, worker: WorkerId| {
        let granted = cluster.dispatch.grant(cluster.now, worker, Wanted::new(u64::MAX, JOBS));
        for token in &granted {
            let returned = ReturnedLease { token: *token, failure: Some("no".to_owned()) };
            cluster.dispatch.give_back(cluster.now, worker, &returned);
        }
        granted.len()
    };
    let failer = cluster.worker("lab");
    let failed: Vec<_> = (0..50).map(|_| fail(&mut cluster, failer)).collect();
    assert_eq!(failed[1..], [0; 49], "it rests: {failed:?}");
    let rests = |event: &TrustEvent| matches!(event, TrustEvent::Rests { failures: 3, seconds: 1, .. });
    assert_eq!(cluster.dispatch.take_trust_events().iter().filter(|event| rests(event)).count(), 1);
    for _ in 0..20 {
        let name = cluster.worker("lab");
        fail(&mut cluster, name);
    }
    assert_eq!(cluster.sums().quarantined, 0);
    // The coordinator can count some of these jobs, and not others.
    let own = cluster.worker(Credential::OWN);
    let (token, has_result) = cluster.dispatch.undecided(0, &HashSet::new()).expect("jobs that fail");
    assert!(!has_result);
    let other = cluster.dispatch.undecided(0, &HashSet::from([token.job])).expect("another one");
    assert_ne!(other.0.job, token.job, "one that can't be counted hides no other");
    cluster.dispatch.give_up(token.job);
    assert_eq!(cluster.sums().quarantined, 1);
    assert!(cluster.decide(own) > 1);
    assert_eq!((cluster.sums().quarantined, cluster.sums().checks.confirmed), (1, cluster.sums().done));
    // Failures under two credentials are proof enough.
    cluster.now += 3_600_000;
    for credential in ["lab", "club"] {
        for _ in 0..5 {
            let name = cluster.worker(credential);
            fail(&mut cluster, name);
        }
    }
    assert!(cluster.sums().quarantined > 1);
}

/// The rest is over in time, and a result ends it all.
#[test]
fn a_machine_that_failed_gets_jobs_again() {
    let mut cluster = Cluster::new(true);
    let worker = cluster.worker("lab");
    let fail = |cluster: &mut Cluster| {
        let granted = cluster.dispatch.grant(cluster.now, worker, Wanted::new(u64::MAX, 16));
        let token = granted[0];
        for token in &granted[1..] {
            cluster.dispatch.give_back(cluster.now, worker, &ReturnedLease { token: *token, failure: None });
        }
        let returned = ReturnedLease { token, failure: Some("no".to_owned()) };
        cluster.dispatch.give_back(cluster.now, worker, &returned);
        granted.len()
    };
    assert_eq!([(); 3].map(|()| fail(&mut cluster)), [16, 8, 4]);
    for rest in [1_000, 2_000, 4_000] {
        cluster.now += rest - 1;
        assert_eq!(cluster.count(worker, 16, false), []);
        cluster.now += 1;
        if rest < 4_000 {
            fail(&mut cluster);
        }
    }
    assert_eq!(cluster.count(worker, 16, false).len(), 1);
    assert_eq!(cluster.count(worker, 16, false).len(), 16);
}

/// Somebody else may come within the duration of a lease.
#[test]
fn checks_are_waived_after_the_duration_of_a_lease() {
    let mut cluster = Cluster::new(true);
    let alone = cluster.worker("lab");
    while cluster.sums().done < u32::try_from(JOBS).expect("few") {
        cluster.count(alone, JOBS, false);
    }
    for (now, waived) in [(0, 0), (60_000, 0), (60_001, 100)] {
        cluster.now = now;
        cluster.dispatch.heartbeat(now, alone, &[]);
        cluster.dispatch.waive(now);
        assert_eq!(cluster.sums().checks.waived, waived, "after {now} ms");
    }
}

/// Where the coordinator counts itself, nobody is waited for.
#[test]
fn checks_that_nobody_could_make_are_the_coordinators_at_once() {
    let mut cluster = Cluster::new(true);
    let [alone, own] = ["lab", Credential::OWN].map(|credential| cluster.worker(credential));
    assert_eq!(cluster.count(alone, 10, false).len(), 10);
    assert_eq!(cluster.decide(own), 0, "somebody may come as long as there are jobs");
    while cluster.sums().done < u32::try_from(JOBS).expect("few") {
        cluster.count(alone, JOBS, false);
    }
    cluster.dispatch.waive(0);
    assert_eq!(cluster.decide(own), JOBS);
    assert!(cluster.dispatch.run(cluster.run).expect("added").is_complete());
}

/// Somebody who could make checks, and does not, holds nothing up: the coordinator makes them.
#[test]
fn checks_that_nobody_makes_are_the_coordinators() {
    let mut cluster = Cluster::new(true);
    let [busy, idle, own] = ["lab", "club", Credential::OWN].map(|credential| cluster.worker(credential));
    while cluster.sums().done < u32::try_from(JOBS).expect("few") {
        cluster.count(busy, JOBS, false);
    }
    cluster.dispatch.waive(0);
    cluster.now = 120_000;
    cluster.dispatch.heartbeat(cluster.now, idle, &[]);
    assert_eq!(cluster.decide(own), 0, "not yet");
    cluster.now += 1;
    assert_eq!(cluster.decide(own), JOBS);
    assert!(cluster.dispatch.run(cluster.run).expect("added").is_complete());
    assert_eq!(cluster.sums().checks.confirmed as usize, JOBS);
}

/// Who lies under one name, and waits under the next until the others are late, confirms nothing.
#[test]
fn checks_that_others_leave_are_not_for_the_same_credential() {
    let mut cluster = Cluster::new(true);
    let credentials = ["lab", "lab", "club", Credential::OWN];
    let [liar, second, idle, own] = credentials.map(|credential| cluster.worker(credential));
    while cluster.sums().done < u32::try_from(JOBS).expect("few") {
        cluster.count(liar, JOBS, true);
    }
    cluster.dispatch.waive(0);
    cluster.now = 60_001;
    for worker in [second, idle] {
        cluster.dispatch.heartbeat(cluster.now, worker, &[]);
    }
    assert_eq!(cluster.count(second, JOBS, true), []);
    cluster.now = 120_001;
    assert_eq!(cluster.decide(own), JOBS);
    assert!(!cluster.is_trusted(liar));
}

/// Leases of one credential that ran out twenty times put a job in quarantine.
#[test]
fn leases_that_run_out_put_nothing_in_quarantine() {
    let mut cluster = Cluster::new(true);
    let [holder, own] = ["lab", Credential::OWN].map(|credential| cluster.worker(credential));
    for _ in 0..20 {
        assert_eq!(cluster.dispatch.grant(cluster.now, holder, Wanted::new(1, 1)).len(), 1);
        assert_eq!(cluster.decide(own), 0, "not yet");
        cluster.now += 60_001;
        cluster.dispatch.expire(cluster.now);
    }
    assert_eq!(cluster.sums().quarantined, 0);
    assert_eq!((cluster.decide(own), cluster.sums().done), (1, 1));
}

/// In a run without second counts nobody is distrusted, so a worker whose counts can't be right could take the same job again
/// and again.
#[test]
fn counts_that_can_t_be_right_are_failures() {
    let mut cluster = Cluster::of(true, 0);
    let [wrong, own] = ["lab", Credential::OWN].map(|credential| cluster.worker(credential));
    for _ in 0..3 {
        assert_eq!(cluster.decide(own), 0, "not yet");
        let [token] = cluster.dispatch.grant(cluster.now, wrong, Wanted::new(1, 1))[..] else {
            panic!("one job")
        };
        let result = result(token, counted(token, true));
        let judged = cluster.dispatch.report(cluster.now, wrong, &result, None, false);
        assert_eq!(judged.verdict, Verdict::Implausible);
    }
    assert_eq!(cluster.dispatch.grant(cluster.now, wrong, Wanted::new(1, 1)), [], "its machine rests");
    assert_eq!((cluster.decide(own), cluster.sums().done), (1, 1));
}

/// Failures under two credentials quarantine a job: nobody may add one to a job that it does not hold.
#[test]
fn only_the_holder_of_a_job_can_fail_it() {
    let mut cluster = Cluster::of(true, 0);
    let [holder, other, own] = ["lab", "club", Credential::OWN].map(|credential| cluster.worker(credential));
    for _ in 0..3 {
        let [token] = cluster.dispatch.grant(cluster.now, holder, Wanted::new(1, 1))[..] else {
            panic!("one job")
        };
        for worker in [other, holder] {
            let result = result(token, counted(token, true));
            let judged = cluster.dispatch.report(cluster.now, worker, &result, None, false);
            assert_eq!(judged.verdict, Verdict::Implausible);
        }
    }
    assert_eq!(cluster.sums().quarantined, 0);
    assert_eq!(cluster.dispatch.grant(cluster.now, other, Wanted::new(1, 1)).len(), 1, "it does not rest");
    assert_eq!((cluster.decide(own), cluster.sums().done), (1, 1));
}

/// A stall of all other workers is no chance for a second name.
#[test]
fn credentials_are_remembered_when_their_workers_are_slow() {
    let mut cluster = Cluster::new(true);
    let [one, two, three] = ["lab", "lab", "club"].map(|credential| cluster.worker(credential));
    assert_eq!(cluster.count(one, 1, true), [Verdict::Accepted]);
    cluster.now = 599_000;
    assert_eq!(cluster.count(two, 1, true), [Verdict::Accepted], "another job, not the check");
    cluster.now = 601_001;
    assert_eq!(cluster.count(two, 1, true), [Verdict::Duplicate], "nobody of another credential is left");
    cluster.dispatch.heartbeat(cluster.now, three, &[]);
    cluster.now += 2_000;
    cluster.count(one, 1, true);
    assert_eq!(cluster.count(three, 1, false), [Verdict::Conflict]);
}
