//! What must hold, whatever happens. It sees all that the coordinator is asked, decides, stores and says.

mod look;
mod sync;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{Incarnation, JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{SyncRequest, Verdict};
use nqueens_model::operator::RunState;
use nqueens_scheduler::request::{Granted, Sync, Synced};
use nqueens_scheduler::{Change, CheckOutcome, Dispatch, JobState, Machine, Millis, Policy, Suspicion};

use crate::ask::{Answer, Ask, Failure};
use crate::job::truth;
use crate::ledger::{JobRow, Ledger, ResultRow};

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
}
