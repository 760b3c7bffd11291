//! What one transaction changes, and in which order.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_model::credential::Credential;
use nqueens_model::id::{LeaseToken, RunId};
use nqueens_model::message::{HeldLease, JobResult, Registration, Session, SyncRequest, Verdict, Wanted};
use nqueens_model::operator::{Blamed, Checked, Grounds, Outcome, TotalEstimate};

use super::*;
use crate::change::{Change, JudgedResult};
use crate::dispatch::{Dispatch, Millis, Policy, RunSettings, Task};
use crate::transaction::{Loaded, Scheduler, StoredJob};

/// A scheduler with a run of two jobs.
fn scheduler() -> (Scheduler, RunId) {
    scheduler_by(Policy { arbiter: true, recounts_min: 1, published: false, ..Policy::default() })
}

fn scheduler_by(policy: Policy) -> (Scheduler, RunId) {
    let dispatch = Dispatch::new(policy, &[0; 32]);
    let mut scheduler = Scheduler::new(dispatch, [], None);
    let plan = Plan::new(BoardSize::new(8).unwrap(), PlanKind::Rows);
    let settings = RunSettings { id: RunId::from_random(7), plan, seed: 1, priority: 0, replicate_ppm: 0 };
    let activate = activate_run(settings, Fingerprint([0; 32]), vec![10; 2]);
    scheduler.begin(0, Loaded::new()).apply(activate).expect("a run");
    (scheduler, settings.id)
}

fn registration(process: u8) -> Registration {
    Registration {
        instance: [process; 16],
        name: format!("machine {process}"),
        build: "test".to_owned(),
        kernels: vec![Kernel::Reference.into()],
        capability: None,
        threads: 1,
    }
}

/// The secret drawn for a process, the first time.
fn register(process: u8) -> impl Request<Answer = Session> {
    super::register(registration(process), Credential::shared(), [10 + process; 16])
}

fn sync(session: Session, results: Vec<JobResult>) -> Sync {
    let (held, returned, wanted) = (Vec::new(), Vec::new(), Wanted::new(1, usize::from(results.is_empty())));
    let faults = Vec::new();
    let sync = SyncRequest { session, results, held, returned, wanted, leaving: false, faults };
    Sync { sync, credential: Credential::shared() }
}

fn result(token: LeaseToken, count8: u64) -> JobResult {
    JobResult {
        token,
        counts: Counts::only8(count8),
        parts: Vec::new(),
        kernel: Kernel::Reference.into(),
        states: 1,
        elapsed_us: 1,
        cpu_us: None,
    }
}

#[test]
fn processes_keep_their_names() {
    let (mut scheduler, _) = scheduler();
    let mut transaction = scheduler.begin(0, Loaded::new());
    let sessions = [1, 2, 1].map(|process| transaction.apply(register(process)).unwrap());
    assert_eq!(sessions.map(|session| session.worker.get()), [1, 2, 1]);
    assert_eq!(sessions.map(|session| session.secret), [1, 2, 1].map(|process| [10 + process; 16]));
    let changes = transaction.settle();
    let new = changes.iter().filter(|change| matches!(change, Change::Worker(..)));
    assert_eq!(new.count(), 2, "who is known is not stored again");
}

/// A process that goes by ever new names is one machine, with that machine's share and fate.
#[test]
fn a_process_is_who_it_was_whatever_name_it_gives() {
    let (mut scheduler, _) = scheduler();
    let mut transaction = scheduler.begin(0, Loaded::new());
    let session = transaction.apply(register(1)).unwrap();
    let shares = transaction.dispatch().shares();
    let named = |name: String| {
        super::register(Registration { name, ..registration(1) }, Credential::shared(), [9; 16])
    };
    for number in 0..100 {
        assert_eq!(transaction.apply(named(format!("new {number}"))), Ok(session));
    }
    assert_eq!(transaction.dispatch().shares(), shares);
    let machine = transaction.dispatch().worker(session.worker).unwrap().machine.clone();
    transaction.scheduler.dispatch.distrust(&machine, "it lies".to_owned());
    assert!(matches!(transaction.apply(named("new".to_owned())), Err(Refusal::Distrusted { .. })));
    assert!(transaction.apply(register(2)).is_ok(), "another process");
}

/// What is withdrawn is stored before, and a result that comes after it takes the free place.
#[test]
fn withdrawn_results_are_stored_before_new_ones() {
    let (mut scheduler, run) = scheduler();
    let mut transaction = scheduler.begin(0, Loaded::new());
    let [one, two] = [1, 2].map(|process| transaction.apply(register(process)).unwrap());
    let token = transaction.apply(sync(one, vec![])).unwrap().expect("it has registered").granted[0].token;
    transaction.settle();

    let mut needs = Needs::default();
    sync(one, vec![result(token, 1)]).needs(&mut needs);
    assert_eq!(needs.reported, [token.job]);
    let open = StoredJob { counts_max: Counts::only8(5), accepted: None };
    let mut transaction = scheduler.begin(1, Loaded::from([(token.job, open)]));
    let mut verdict = |request: Sync| transaction.apply(request).unwrap().unwrap().acks[0].verdict;
    assert_eq!(verdict(sync(one, vec![result(token, 1)])), Verdict::Accepted);
    assert_eq!(verdict(sync(two, vec![result(token, 2)])), Verdict::Duplicate, "nobody takes it back");
    let of = |worker| Requeue { run, of: Blamed::Worker(worker) };
    assert_eq!(transaction.apply(of(one.worker)), Ok(1));
    let mut verdict = |request: Sync| transaction.apply(request).unwrap().unwrap().acks[0].verdict;
    assert_eq!(verdict(sync(two, vec![result(token, 2)])), Verdict::Accepted, "of its credential");
    assert_eq!(transaction.apply(of(one.worker)), Ok(0), "its result is void already");
    assert_eq!(transaction.apply(of(two.worker)), Ok(1));

    let changes = transaction.settle();
    let [
        Change::Results(first),
        Change::Voided(_),
        Change::Results(second),
        Change::Voided(_),
        Change::Jobs(_),
        ..,
    ] = &changes[..]
    else {
        panic!("{changes:?}")
    };
    let verdicts =
        |results: &[JudgedResult]| results.iter().map(|(.., verdict)| *verdict).collect::<Vec<_>>();
    assert_eq!([verdicts(first), verdicts(second)], [[Verdict::Accepted], [Verdict::Accepted]]);
}

const SECOND: Millis = 1_000;
const HOUR: Millis = 3_600 * SECOND;

/// A worker with a lease on one of two jobs.
struct Holder {
    scheduler: Scheduler,
    session: Session,
    token: LeaseToken,
    now: Millis,
}

impl Holder {
    fn new(policy: Policy) -> Self {
        let (mut scheduler, _) = scheduler_by(policy);
        let mut transaction = scheduler.begin(0, Loaded::new());
        let session = transaction.apply(register(1)).unwrap();
        let token =
            transaction.apply(sync(session, vec![])).unwrap().expect("it has registered").granted[0].token;
        Self { scheduler, session, token, now: 0 }
    }

    /// A heartbeat whose counting has moved; true if it has its lease still.
    fn beat(&mut self) -> bool {
        let mut beat = sync(self.session, vec![]);
        beat.sync.held = vec![HeldLease { token: self.token, states: self.now + 1 }];
        beat.sync.wanted.jobs = 0;
        let synced = self.scheduler.begin(self.now, Loaded::new()).apply(beat).unwrap();
        synced.expect("it has registered").revoked.is_empty()
    }

    /// The coordinator's look at its leases after so much time; true if the job is leased still.
    fn look_after(&mut self, time: Millis) -> bool {
        self.now += time;
        self.scheduler.begin(self.now, Loaded::new()).apply(expire(None)).unwrap();
        self.scheduler.dispatch().leases(self.token.job).next().is_some()
    }

    /// A look of the coordinator and a heartbeat each half-minute for so long; true if the lease lasts.
    fn goes_on_for(&mut self, time: Millis) -> bool {
        (0..time).step_by(30_000).all(|at| self.look_after(30_000.min(time - at)) && self.beat())
    }
}

/// Be it asleep or stopped: nobody could reach it.
#[test]
fn a_coordinator_that_was_away_takes_nothing_back() {
    for arbiter in [false, true] {
        let mut holder = Holder::new(Policy { arbiter, ..Policy::default() });
        for _ in 0..30 {
            // The second time the worker is heard before leases are looked at.
            assert!(holder.look_after(8 * HOUR) && holder.look_after(SECOND) && holder.beat());
            holder.now += 8 * HOUR;
            assert!(holder.beat() && holder.look_after(SECOND));
        }
        let run = holder.scheduler.dispatch().run(holder.token.job.run).unwrap();
        assert_eq!((run.slot(holder.token.job.number).lapses, run.sums().quarantined), (0, 0));
        // Its worker was not away: it may have counted for all of that time.
        let (token, now) = (holder.token, holder.now);
        let counted = JobResult { elapsed_us: 1_000 * now, ..result(token, 1) };
        let open = StoredJob { counts_max: Counts::only8(5), accepted: None };
        let mut transaction = holder.scheduler.begin(now, Loaded::from([(token.job, open)]));
        let synced = transaction.apply(sync(holder.session, vec![counted])).unwrap().unwrap();
        assert_eq!(synced.acks[0].verdict, Verdict::Accepted);
    }
}

/// What it has missed gives no lease more than the time after a restart, and more than its age.
#[test]
fn leases_end_as_before_when_the_coordinator_is_back() {
    let policy = Policy::default();
    let mut holder = Holder::new(policy);
    holder.look_after(8 * HOUR);
    let looks = (0..1_000).find(|_| !holder.look_after(SECOND)).expect("its worker is silent");
    assert_eq!(looks + 1, policy.grace_ms / SECOND);

    let mut holder = Holder::new(policy);
    assert!(holder.goes_on_for(3 * HOUR) && holder.look_after(8 * HOUR) && holder.beat());
    assert!(holder.goes_on_for(3 * HOUR - SECOND), "it is six hours old without the eight");
    assert!(!holder.look_after(SECOND));

    // Short leases are not for ever: a look at them takes its time.
    let mut holder = Holder::new(Policy { lease_ms: 1, ..policy });
    assert!(!holder.look_after(2 * SECOND));
}

#[test]
fn a_lease_without_a_greatest_age_lasts_as_long_as_its_job() {
    let mut holder = Holder::new(Policy { lease_age_ms: Millis::MAX, ..Policy::default() });
    assert!(holder.goes_on_for(30 * HOUR));
    assert!(holder.look_after(8 * HOUR) && holder.beat() && holder.goes_on_for(HOUR));
}

/// A run that is done keeps the sum of its recounts: one that comes in with its total is among them.
#[test]
fn recounts_are_stored_before_the_total() {
    let (mut scheduler, run) = scheduler();
    let mut transaction = scheduler.begin(0, Loaded::new());
    let one = transaction.apply(register(1)).unwrap();
    let mut accepted = Vec::new();
    for count8 in [3, 5] {
        let granted = transaction.apply(sync(one, vec![])).unwrap().expect("it has registered").granted;
        let counted = result(granted[0].token, count8);
        let job = counted.token.job;
        transaction.loaded.insert(job, StoredJob { counts_max: Counts::only8(9), accepted: None });
        transaction.apply(sync(one, vec![counted.clone()])).unwrap();
        accepted.push((job, counted));
    }
    transaction.settle();

    let (job, counted) = &accepted[0];
    let recounted = Recounted {
        build: "test".to_owned(),
        secret: [9; 16],
        job: *job,
        of: Some((one.worker, counted.token.epoch)),
        part: None,
        drawn: true,
        counts: counted.counts,
        said: counted.counts,
        seconds: Vec::new(),
        kernel: Kernel::Scalar.into(),
        states: 1,
        elapsed_us: 1,
    };
    let basis = transaction.dispatch().run(run).unwrap().basis();
    let totals = Totals { count8: 8, ..Totals::default() };
    let outcome = Outcome { totals, total: 64, checked: Checked::Symmetric, grounds: None };
    let finish = || finish_run(run, basis, Ok(outcome));
    assert_eq!(transaction.apply(finish()), Ok(false), "one is to be recounted");
    transaction.apply(recounted).unwrap();
    assert_eq!(transaction.apply(finish()), Ok(true));
    let changes = transaction.settle();
    let place = |is: fn(&Change) -> bool| changes.iter().position(is).expect("it is among them");
    assert!(
        place(|change| matches!(change, Change::Jobs(_)))
            < place(|change| matches!(change, Change::RunDone(..)))
    );
}

/// Recounts of other jobs make no total sure of which one that was drawn can't be recounted.
#[test]
fn a_total_lacks_the_recount_that_can_not_be_made() {
    let (mut scheduler, run) = scheduler();
    let mut transaction = scheduler.begin(0, Loaded::new());
    let one = transaction.apply(register(1)).unwrap();
    for count8 in [3, 5] {
        let granted = transaction.apply(sync(one, vec![])).unwrap().expect("it has registered").granted;
        let counted = result(granted[0].token, count8);
        let stored = StoredJob { counts_max: Counts::only8(9), accepted: None };
        transaction.loaded.insert(counted.token.job, stored);
        transaction.apply(sync(one, vec![counted])).unwrap();
    }
    let basis = transaction.dispatch().run(run).unwrap().basis();
    let estimate = TotalEstimate { seed: 1, strata: 1, value: 64, reach: 1 };
    let grounds = Some(Grounds { estimate, checks_wanted: 0, recounts_wanted: 0 });
    let totals = Totals { count8: 8, ..Totals::default() };
    let outcome = Outcome { totals, total: 64, checked: Checked::Symmetric, grounds };
    let Task { job, why } = transaction.dispatch().task(0).expect("one is drawn");
    transaction.apply(give_up(job, why, "it is too large".to_owned())).unwrap();
    assert_eq!(transaction.apply(finish_run(run, basis, Ok(outcome))), Ok(true));
    let changes = transaction.settle();
    let wanted = changes.iter().find_map(|change| match change {
        Change::RunDone(_, outcome) => outcome.grounds.map(|grounds| grounds.recounts_wanted),
        _ => None,
    });
    assert_eq!(wanted, Some(1));
}

#[test]
fn what_can_not_be_done_changes_nothing() {
    let (mut scheduler, _) = scheduler();
    let mut transaction = scheduler.begin(0, Loaded::new());
    let nobodys = RunId::from_random(8);
    assert_eq!(transaction.apply(retry_quarantined(nobodys)), Err(Refusal::NoRun(nobodys)));
    let reserved = Registration { name: Credential::OWN.to_owned(), ..registration(1) };
    assert!(matches!(
        transaction.apply(super::register(reserved, Credential::shared(), [11; 16])),
        Err(Refusal::ReservedName(_))
    ));
    assert!(transaction.settle().is_empty());
}
