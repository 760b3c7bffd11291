//! What must hold, whatever happens. It sees all that the coordinator is asked, decides, stores and says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nqueens_kernel::counts::{Counts, Totals};
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{ResultAck, SyncRequest, Verdict};
use nqueens_model::operator::RunState;
use nqueens_scheduler::request::{Granted, Sync, Synced};
use nqueens_scheduler::{
    Change, ChangedJob, CheckOutcome, Dispatch, JobState, Machine, Millis, Policy, Suspicion,
};

use crate::ask::{Answer, Ask, Failure, secret};
use crate::job::truth;
use crate::ledger::{JobRow, Ledger, ResultRow, RunRow};
use crate::scenario::ALL;

/// Of the syncs that get nothing, one in so many is looked at closely.
const CLOSELY_EVERY: u64 = 16;

/// How leases stood before a sync: those on the jobs that it names, and how many its worker had.
pub(crate) struct Before {
    leases: Vec<(JobId, Vec<(WorkerId, LeaseToken)>)>,
    own: usize,
}

impl Before {
    /// A request is about to be applied.
    pub(crate) fn of(dispatch: &Dispatch, ask: &Ask) -> Self {
        let Ask::Sync(Sync { sync, .. }) = ask else { return Self { leases: Vec::new(), own: 0 } };
        let results = sync.results.iter().map(|result| result.token.job);
        let held = sync.held.iter().map(|held| held.token.job);
        let returned = sync.returned.iter().map(|returned| returned.token.job);
        let jobs: BTreeSet<_> = results.chain(held).chain(returned).collect();
        let leases = jobs.into_iter().map(|job| (job, dispatch.leases(job).collect())).collect();
        Self {
            leases,
            own: dispatch.worker(sync.session.worker).map_or(0, nqueens_scheduler::Worker::leases),
        }
    }
}

/// A lease that went out.
#[derive(Debug)]
struct Issued {
    process: [u8; 16],
    /// By the clock of the life that its token names.
    at: Millis,
    /// The job had a result: it is to be counted a second time.
    is_check: bool,
}

#[derive(Debug)]
pub(crate) struct Invariants {
    /// The machines that may lie.
    liars: BTreeSet<Machine>,
    /// What somebody was told is safe.
    safe: BTreeMap<JobId, Counts>,
    /// Every lease that ever went out.
    issued: HashMap<LeaseToken, Issued>,
    now: Millis,
    incarnation: Incarnation,
    policy: Policy,
    /// Jobs with a result that was accepted in this transaction, and the machine that it is of.
    accepted: BTreeMap<JobId, Machine>,
    /// Runs in which an operator takes results back in this transaction.
    taken_back: BTreeSet<RunId>,
    fruitless: u64,
    /// When the coordinator last read all from its ledger.
    reread: Millis,
    /// The disk has no room, so that no leases go out.
    is_short: bool,
}

impl Invariants {
    pub(crate) fn new(liars: BTreeSet<Machine>, policy: Policy) -> Self {
        Self {
            liars,
            safe: BTreeMap::new(),
            issued: HashMap::new(),
            now: 0,
            incarnation: Incarnation::from_random(0),
            policy,
            accepted: BTreeMap::new(),
            taken_back: BTreeSet::new(),
            fruitless: 0,
            reread: 0,
            is_short: false,
        }
    }

    /// A transaction begins.
    pub(crate) fn begin(&mut self, now: Millis, incarnation: Incarnation) {
        (self.now, self.incarnation) = (now, incarnation);
        self.accepted.clear();
        self.taken_back.clear();
    }

    /// A transaction failed: the leases are as old as this moment.
    pub(crate) fn reread(&mut self, now: Millis) {
        self.reread = now;
    }

    /// A life of the coordinator begins, which has not looked at its disk yet.
    pub(crate) fn begin_life(&mut self) {
        (self.reread, self.is_short) = (0, false);
    }

    /// A request is applied.
    pub(crate) fn after(
        &mut self,
        ledger: &Ledger,
        dispatch: &Dispatch,
        ask: &Ask,
        before: Before,
        answer: &Result<Answer, Failure>,
    ) {
        match (ask, answer) {
            (Ask::RetryQuarantined(retry), Ok(_)) => drop(self.taken_back.insert(retry.0)),
            (Ask::Expire(expire), _) => self.is_short = expire.room.is_some_and(|room| room.is_short),
            (Ask::Requeue(requeue), Ok(_)) => drop(self.taken_back.insert(requeue.run)),
            (Ask::Sync(Sync { sync, .. }), Ok(Answer::Synced(Some(synced)))) => {
                self.judged(dispatch, sync, &synced.acks);
                self.leased(ledger, dispatch, sync, &before, synced);
                self.conserved(dispatch, sync, before, synced);
                if synced.granted.is_empty() && !synced.drain && !self.is_short {
                    self.idle(dispatch, sync);
                }
            }
            _ => {}
        }
    }

    fn judged(&mut self, dispatch: &Dispatch, sync: &SyncRequest, acks: &[ResultAck]) {
        let tokens = sync.results.iter().map(|result| result.token);
        assert!(tokens.eq(acks.iter().map(|ack| ack.token)), "one answer to each result, in their order");
        let machine = &dispatch.worker(sync.session.worker).expect("it has registered").machine;
        for ack in acks.iter().filter(|ack| ack.verdict == Verdict::Accepted) {
            self.accepted.insert(ack.token.job, machine.clone());
        }
    }

    /// Leases go to trusted machines, for open jobs of active runs, or for jobs that another machine has counted. The
    /// worker knows of all that it has.
    fn leased(
        &self,
        ledger: &Ledger,
        dispatch: &Dispatch,
        sync: &SyncRequest,
        before: &Before,
        synced: &Synced,
    ) {
        let worker = dispatch.worker(sync.session.worker).expect("it has registered");
        let is_trusted = dispatch.distrusts(&worker.machine).is_none();
        assert!(is_trusted || worker.leases() == 0, "{} is distrusted and has leases", worker.machine);
        // Leases that got lost are given again in any case.
        assert!(
            !self.is_short || synced.granted.is_empty() || before.own > 0,
            "leases go out, and there is no room"
        );
        let mut known: BTreeSet<_> = sync.held.iter().map(|held| held.token).collect();
        synced.revoked.iter().for_each(|token| assert!(known.remove(token), "it held what is revoked"));
        for Granted { token, mirrored, .. } in &synced.granted {
            let job = token.job;
            assert!(known.insert(*token), "a lease of job {job} goes to a worker that has it");
            let own = dispatch.leases(job).filter(|(holder, _)| *holder == sync.session.worker);
            assert!(own.map(|(_, token)| token).eq([*token]), "job {job} is leased to its worker once");
            let run = dispatch.run(job.run).expect("of a run");
            // Leases that got lost are given again in a paused run, too.
            let state = run.state();
            assert!(state == RunState::Active || (state == RunState::Paused && before.own > 0), "job {job}");
            assert!(!mirrored || ledger.run(job.run).is_none_or(|run| run.settings.replicate_ppm > 0));
            let slot = run.slot(job.number);
            assert!(token.epoch.get() <= slot.epoch, "job {job}");
            if slot.state == JobState::Leased {
                continue;
            }
            let counted = ledger.job(job).and_then(JobRow::accepted);
            let counted = counted.map(|(_, row)| ledger.machine(row.worker));
            let counted = self.accepted.get(&job).or(counted);
            let is_checked = counted.is_some_and(|counted| *counted != worker.machine);
            assert!(is_checked, "job {job} is {:?} and leased", slot.state);
        }
        assert_eq!(worker.leases(), known.len(), "worker {} knows all its leases", sync.session.worker);
    }

    /// A worker's word ends its own leases alone, and none but by their token; none comes back from an earlier life.
    fn conserved(&mut self, dispatch: &Dispatch, sync: &SyncRequest, before: Before, synced: &Synced) {
        for (job, before) in before.leases {
            let after: Vec<_> = dispatch.leases(job).collect();
            let settled = |ack: &ResultAck| {
                ack.token.job == job && matches!(ack.verdict, Verdict::Accepted | Verdict::Duplicate)
            };
            let is_settled = synced.acks.iter().any(settled);
            for (holder, token) in &before {
                if after.contains(&(*holder, *token)) || is_settled {
                    continue;
                }
                let machine = &dispatch.worker(*holder).expect("it has registered").machine;
                let named = sync.returned.iter().map(|returned| returned.token);
                let mut named = named.chain(sync.results.iter().map(|result| result.token));
                let mut renumbered = synced.granted.iter().filter(|granted| granted.token.job == job);
                assert!(
                    dispatch.distrusts(machine).is_some()
                        || *holder == sync.session.worker
                            && (named.any(|named| named == *token) || renumbered.next().is_some()),
                    "a lease of job {job} ended, and its token was not named"
                );
            }
            for (holder, token) in after {
                let is_new = synced.granted.iter().any(|granted| granted.token == token);
                if before.contains(&(holder, token)) || is_new {
                    continue;
                }
                let issued = self.issued.get_mut(&token).filter(|_| holder == sync.session.worker);
                let issued = issued.filter(|issued| secret(issued.process) == sync.session.secret);
                assert!(token.incarnation == self.incarnation, "a lease of job {job} is of an earlier life");
                issued.unwrap_or_else(|| panic!("a lease of job {job} came back to another")).at = self.now;
            }
        }
    }

    /// A worker that asked for work and got none can't help with a job that has been out for long.
    fn idle(&mut self, dispatch: &Dispatch, sync: &SyncRequest) {
        let worker = dispatch.worker(sync.session.worker).expect("it has registered");
        let is_trusted =
            dispatch.distrusts(&worker.machine).is_none() && !dispatch.is_resting(self.now, &worker.machine);
        let asks = sync.wanted.jobs > 0
            && sync.wanted.states > 0
            && sync.wanted.job_states_max == u64::MAX
            && worker.leases() == 0
            && is_trusted;
        self.fruitless += u64::from(asks);
        if !asks || !self.fruitless.is_multiple_of(CLOSELY_EVERY) {
            return;
        }
        for run in dispatch.runs().filter(|run| run.state() == RunState::Active && run.sums().leased > 0) {
            for number in (0..run.jobs()).filter(|number| run.slot(*number).state == JobState::Leased) {
                let leases: Vec<_> = dispatch.leases(JobId { run: run.id(), number }).collect();
                let [(_, token)] = leases[..] else { continue };
                let own = token.incarnation == self.incarnation;
                let since = self.issued.get(&token).filter(|_| own).map(|issued| issued.at.max(self.reread));
                assert!(
                    since.is_none_or(|since| self.now.saturating_sub(since) < self.policy.second_lease_ms),
                    "an idle worker does not help with job {}",
                    token.job
                );
            }
        }
    }

    /// The changes of a transaction are in the ledger, if it will be committed.
    pub(crate) fn persisted(
        &self,
        ledger: &Ledger,
        dispatch: &Dispatch,
        changes: &[Change],
        suspicions: &[Suspicion],
    ) {
        let checks = changes.iter().filter_map(|change| match change {
            Change::Checks(checks) => Some(checks),
            _ => None,
        });
        let checks: Vec<_> = checks.flatten().copied().collect();
        for change in changes {
            match change {
                Change::Results(results) => {
                    for (worker, result, _) in results {
                        let honest = !self.liars.contains(ledger.machine(*worker));
                        let is_true = result.counts == truth(result.token.job);
                        assert!(is_true || !honest, "results are stored as they were counted");
                    }
                }
                Change::Voided(jobs) => {
                    for job in jobs {
                        assert!(
                            self.taken_back.contains(&job.run)
                                || checks.contains(&(*job, Some(CheckOutcome::Settled))),
                            "the result of job {job} was taken back by nobody"
                        );
                    }
                }
                Change::Reputations(reputations) => {
                    for (machine, reputation) in reputations {
                        let honest = !self.liars.contains(machine);
                        assert!(reputation.failed == 0 || !honest, "{machine} never lied: {reputation:?}");
                    }
                }
                Change::RunState { state, .. } => assert_ne!(*state, RunState::Failed),
                Change::RunDone(run, outcome) => {
                    // A later request of the same transaction may have withdrawn a result.
                    let is_done = ledger.run(*run).is_some_and(|row| row.state == Some(RunState::Done));
                    assert!(!is_done || ledger.total(*run) == Ok(*outcome), "a total of what stands now");
                }
                _ => {}
            }
        }
        for (job, outcome) in checks {
            self.checked(ledger, dispatch, job, outcome);
        }
        for suspicion in suspicions {
            let suspects = match suspicion.reason {
                Some(_) => dispatch.reputation(&suspicion.machine).suspects(),
                None => usize::MAX,
            };
            let results = ledger.unconfirmed(&suspicion.machine);
            let done = results.iter().filter_map(|(job, _)| ledger.job(*job));
            let done: Vec<_> = done.filter(|row| row.slot.state == JobState::Done).collect();
            let unchecked = done.iter().filter(|row| !row.is_checked_now()).count();
            assert!(
                unchecked <= done.len().saturating_sub(suspects),
                "results of {} are counted again",
                suspicion.machine
            );
        }
    }

    /// A check ended: what two machines agree on is true, unless both are of an owner who lies; what is confirmed is true in
    /// any case. It is waived only if no other machine could make it.
    fn checked(&self, ledger: &Ledger, dispatch: &Dispatch, job: JobId, outcome: Option<CheckOutcome>) {
        let row = ledger.job(job).expect("what is checked is there");
        match outcome {
            Some(CheckOutcome::Agreed | CheckOutcome::Settled) if !self.taken_back.contains(&job.run) => {
                let was_asked = |row: &ResultRow| {
                    self.issued.get(&row.result.token).is_some_and(|issued| issued.is_check)
                };
                let is_own = |row: &ResultRow| ledger.machine(row.worker).credential.is_own();
                let was_asked = row.results.iter().any(|row| was_asked(row) || is_own(row));
                assert!(was_asked, "nobody was asked about job {job}");
                let stands = row.accepted().map(|(_, row)| row.result.counts);
                let conspiracy =
                    self.policy.arbiter && outcome == Some(CheckOutcome::Agreed) && !row.slot.confirmed;
                assert!(
                    stands == Some(truth(job)) || row.is_checked_now() || conspiracy,
                    "two machines agree on a lie about job {job}"
                );
            }
            Some(CheckOutcome::Waived) => {
                let counted: BTreeSet<_> = row.results.iter().map(|row| ledger.machine(row.worker)).collect();
                let able = dispatch.workers().find(|(_, worker)| {
                    let seen =
                        worker.seen.is_some_and(|seen| self.now.saturating_sub(seen) <= self.policy.lease_ms);
                    seen && !worker.draining
                        && dispatch.distrusts(&worker.machine).is_none()
                        && !counted.contains(&worker.machine)
                });
                assert!(able.is_none(), "the check of job {job} is waived, but {able:?} could make it");
            }
            _ => {}
        }
    }

    /// A transaction has reached the disk: what was taken back in it is safe no more.
    pub(crate) fn stored(&mut self, ledger: &Ledger, voided: &BTreeSet<JobId>) {
        for job in voided {
            match ledger.job(*job).and_then(JobRow::accepted) {
                Some((_, row)) if self.safe.contains_key(job) => {
                    self.safe.insert(*job, row.result.counts);
                }
                _ => drop(self.safe.remove(job)),
            }
        }
    }

    /// The ledger was replaced by an older copy: what is not in that is not safe any more, and nobody is to blame.
    pub(crate) fn restored(&mut self, ledger: &Ledger) {
        self.safe.retain(|job, counts| {
            let accepted = ledger.job(*job).and_then(JobRow::accepted);
            accepted.is_some_and(|(_, row)| row.result.counts == *counts)
        });
    }

    /// A process is told what became of its results, and of its leases.
    pub(crate) fn told(
        &mut self,
        ledger: &Ledger,
        process: [u8; 16],
        sync: &SyncRequest,
        synced: &Synced,
        voided: &BTreeSet<JobId>,
    ) {
        for (ack, result) in synced.acks.iter().zip(&sync.results) {
            let (job, verdict) = (ack.token.job, ack.verdict);
            let row = ledger.job(job);
            if verdict != Verdict::Unknown {
                let is_kept = |row: &JobRow| {
                    row.results.iter().any(|kept| {
                        (kept.worker, kept.result.token, kept.result.counts)
                            == (sync.session.worker, result.token, result.counts)
                    })
                };
                assert!(row.is_some_and(is_kept), "job {job}: what is acknowledged is kept");
            }
            if matches!(verdict, Verdict::Accepted | Verdict::Duplicate) && !voided.contains(&job) {
                let stored = row.and_then(JobRow::accepted).map(|(_, row)| row.result.counts);
                assert_eq!(stored, Some(result.counts), "job {job} is acknowledged");
                self.safe.insert(job, result.counts);
            }
        }
        for Granted { token, .. } in &synced.granted {
            let at = self.now;
            let is_check = ledger.job(token.job).and_then(JobRow::accepted).is_some();
            let holder = self.issued.entry(*token).or_insert(Issued { process, at, is_check }).process;
            assert_eq!(holder, process, "a lease of job {} goes to two processes", token.job);
        }
    }

    /// Looks at everything, between two transactions: the rules of the ledger, and that the scheduler has the same.
    pub(crate) fn look(&self, ledger: &Ledger, dispatch: &Dispatch) {
        for (job, counts) in &self.safe {
            let stored = ledger.job(*job).and_then(JobRow::accepted).map(|(_, row)| row.result.counts);
            assert_eq!(stored, Some(*counts), "job {job} was acknowledged");
        }
        let mut sums = BTreeMap::<RunId, (Totals, u32, u32)>::new();
        let mut open = BTreeMap::<&Machine, u64>::new();
        let mut leased = 0;
        for (job, row) in ledger.jobs() {
            if ledger.run(job.run).is_none() {
                assert_eq!(row.slot.state, JobState::Ready, "its run is being planned");
                continue;
            }
            Self::look_at_job(ledger, job, row);
            let (_, slot, lease): ChangedJob = dispatch.changed(job);
            assert_eq!((slot, lease), (row.slot, row.lease), "job {job} is stored as it is");
            let (found, done, checks) = sums.entry(job.run).or_default();
            let accepted = row.accepted();
            if let Some((_, row)) = accepted.filter(|_| slot.state == JobState::Done) {
                *found = found.checked_add(row.result.counts).expect("small");
                *done += 1;
            }
            if let Some((_, row)) = accepted.filter(|_| row.is_checked_now()) {
                *checks += 1;
                *open.entry(ledger.machine(row.worker)).or_default() += 1;
            }
            let leases: Vec<_> = dispatch.leases(job).collect();
            let leases_max = match slot.state {
                JobState::Leased => 2,
                JobState::Done | JobState::Quarantined if row.is_checked_now() => 1,
                _ => 0,
            };
            assert!(leases.len() <= leases_max, "job {job} is {slot:?} with {leases:?}");
            assert!(
                leases.len() < 2 || leases[0].0 != leases[1].0,
                "job {job} is leased twice to one worker"
            );
            leased += leases.len();
        }
        let held: usize = dispatch.workers().map(|(_, worker)| worker.leases()).sum();
        assert_eq!(held, leased, "every lease is somebody's");
        for run in dispatch.runs() {
            let has = run.sums();
            let expected = sums.get(&run.id()).copied().unwrap_or_default();
            assert_eq!((has.accepted.found, has.done, has.checks.open), expected, "run {}", run.id());
            let row = ledger.run(run.id()).expect("every run is stored");
            assert_eq!(Some(run.state()), row.state, "run {} is stored as it is", run.id());
            let total = row.outcome.map(Ok);
            assert!(total.is_none_or(|total| total == ledger.total(run.id())), "run {}", run.id());
        }
        for (machine, stored) in ledger.reputations() {
            let mut reputation = dispatch.reputation(machine);
            assert_eq!(reputation.open, open.get(machine).copied().unwrap_or(0), "open checks of {machine}");
            reputation.open = 0;
            assert_eq!(reputation, *stored, "{machine}");
        }
    }

    /// The rules that `nqueens doctor` looks for.
    fn look_at_job(ledger: &Ledger, job: JobId, row: &JobRow) {
        let (state, accepted) = (row.slot.state, row.accepted());
        // Nobody disagrees with the coordinator's own count: that is final.
        let is_final = accepted.is_some_and(|(_, row)| ledger.machine(row.worker).credential.is_own());
        let stands = accepted.is_some() && (row.conflict().is_none() || is_final);
        assert_eq!(state == JobState::Done, stands, "job {job} is {state:?} with {:?}", row.results);
        assert!(accepted.is_none() || matches!(state, JobState::Done | JobState::Quarantined), "job {job}");
        if let Some((at, accepted)) = accepted {
            for later in &row.results[at + 1..] {
                let agrees = later.result.counts == accepted.result.counts;
                let verdict = if agrees { Verdict::Duplicate } else { Verdict::Conflict };
                assert_eq!(later.verdict, Some(verdict), "job {job}");
            }
        }
        assert!(!row.is_checked_now() || accepted.is_some(), "job {job} is checked without a result");
        let is_disputed = state == JobState::Quarantined && accepted.is_some();
        assert!(!is_disputed || row.is_checked_now(), "nobody is asked about job {job}");
        if row.checks.contains(&Some(CheckOutcome::Agreed)) {
            let mut machines = HashMap::<Counts, BTreeSet<&Machine>>::new();
            for row in row
                .results
                .iter()
                .filter(|row| matches!(row.verdict, None | Some(Verdict::Accepted | Verdict::Duplicate)))
            {
                machines.entry(row.result.counts).or_default().insert(ledger.machine(row.worker));
            }
            assert!(
                machines.values().any(|machines| machines.len() > 1),
                "job {job} was agreed on by one machine"
            );
        }
    }

    /// When all is over: every job of a run that is done has its result. What an honest machine counted is right, and so
    /// is what was checked, whoever counted it; where all is checked, only a check that nobody could make leaves a lie.
    pub(crate) fn conclude(&self, ledger: &Ledger) {
        for run in ledger.runs().filter(|run| run.state == Some(RunState::Done)) {
            let RunRow { settings, jobs, outcome, .. } = run;
            assert_eq!(ledger.jobs_of(settings.id).count(), *jobs as usize);
            assert_eq!(ledger.total(settings.id).ok(), *outcome, "run {} and its total", settings.id);
            for (job, row) in ledger.jobs_of(settings.id) {
                let (_, accepted) = row.accepted().expect("a done run has all its results");
                let is_true = accepted.result.counts == truth(job);
                assert!(is_true || self.liars.contains(ledger.machine(accepted.worker)), "job {job}");
                assert!(is_true || !row.slot.confirmed, "a lie about job {job} is confirmed");
                if settings.replicate_ppm == ALL {
                    let last = row.checks.last().copied().flatten();
                    let is_waived = last == Some(CheckOutcome::Waived);
                    let is_own = ledger.machine(accepted.worker).credential.is_own();
                    assert!(last.is_some() || is_own, "job {job} was to be checked");
                    let conspiracy = self.policy.arbiter && last == Some(CheckOutcome::Agreed);
                    assert!(
                        is_true || is_waived || conspiracy,
                        "job {job} is wrong, and was checked: {last:?}"
                    );
                }
            }
        }
    }

    /// What is not done, for people.
    pub(crate) fn open(ledger: &Ledger) -> String {
        let runs: Vec<_> = ledger.runs().map(|run| (run.settings.id, run.state, run.jobs)).collect();
        let jobs: Vec<_> = ledger.jobs().filter(|(_, row)| row.slot.state != JobState::Done).collect();
        let checks = ledger.jobs().filter(|(_, row)| row.is_checked_now()).count();
        format!("runs {runs:?}, jobs {:?}, {} of them, {checks} checks", jobs.first(), jobs.len())
    }
}
