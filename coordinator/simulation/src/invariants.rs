//! What must hold, whatever happens. It sees all that the coordinator is asked, decides, stores and says.

mod look;
mod sync;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nqueens_kernel::counts::Counts;
use nqueens_kernel::random::Random;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{SyncRequest, Verdict};
use nqueens_model::operator::RunState;
use nqueens_scheduler::request::{Granted, Sync, Synced};
use nqueens_scheduler::{Change, CheckOutcome, Dispatch, JobState, Machine, Millis, Outcast, Policy};

use crate::ask::{Answer, Ask, Failure};
use crate::job::truth;
use crate::ledger::{JobRow, Ledger, ResultRow};

/// How leases stood before a sync: those on the jobs that it names, and how many its worker had.
pub(crate) struct Before {
    leases: Vec<(JobId, Vec<(WorkerId, LeaseToken)>)>,
    own: usize,
}

impl Before {
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

#[derive(Clone, Debug)]
struct Issued {
    process: [u8; 16],
    credential: Credential,
    /// By the clock of this life of the coordinator.
    life: u64,
    at: Millis,
}

#[derive(Debug)]
pub(crate) struct Invariants {
    /// The machines that may lie.
    liars: BTreeSet<Machine>,
    /// They tell the same lies.
    conspire: bool,
    /// What somebody was told is safe.
    safe: BTreeMap<JobId, Counts>,
    issued: HashMap<LeaseToken, Issued>,
    /// Those of jobs that had a result.
    second_counts: BTreeSet<LeaseToken>,
    now: Millis,
    life: u64,
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
    /// Tokens of earlier lives than this may be given again: a backup was restored.
    restored_in: u64,
}

impl Invariants {
    pub(crate) fn new(liars: BTreeSet<Machine>, conspire: bool, policy: Policy) -> Self {
        Self {
            liars,
            conspire,
            safe: BTreeMap::new(),
            issued: HashMap::new(),
            second_counts: BTreeSet::new(),
            now: 0,
            life: 0,
            policy,
            accepted: BTreeMap::new(),
            taken_back: BTreeSet::new(),
            fruitless: 0,
            reread: 0,
            is_short: false,
            restored_in: 0,
        }
    }

    /// A token that somebody of another credential got, if there is one.
    pub(crate) fn ticket_of_others(
        &self,
        credential: &Credential,
        random: &mut Random,
    ) -> Option<LeaseToken> {
        let others = self.issued.iter().filter(|(_, issued)| issued.credential != *credential);
        let mut others: Vec<_> = others.map(|(token, _)| *token).collect();
        others.sort_unstable();
        (!others.is_empty() && random.permille(500)).then(|| others[random.index(others.len())])
    }

    pub(crate) fn begin(&mut self, now: Millis, life: u64) {
        (self.now, self.life) = (now, life);
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

    pub(crate) fn after(
        &mut self,
        ledger: &Ledger,
        dispatch: &Dispatch,
        ask: &Ask,
        before: Before,
        answer: &Result<Answer, Failure>,
    ) {
        match (ask, answer) {
            (Ask::RetryQuarantined(run), Ok(_)) => drop(self.taken_back.insert(*run)),
            (Ask::Expire { room }, _) => self.is_short = room.is_some_and(|room| room.is_short),
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
        outcasts: &[Outcast],
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
                        let is_open =
                            ledger.run(job.run).is_some_and(|run| run.state.is_some_and(RunState::is_open));
                        let is_wrong = |change: &Change| matches!(change, Change::Recounted(recount) if recount.job == *job && !recount.agrees);
                        let is_refuted = is_open && (!outcasts.is_empty() || changes.iter().any(is_wrong));
                        assert!(
                            self.taken_back.contains(&job.run) || is_refuted,
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
            self.checked(ledger, job, outcome);
        }
        for Outcast { machine, .. } in outcasts {
            let in_doubt = ledger.in_doubt(machine);
            assert!(
                in_doubt.counted.is_empty(),
                "results of {machine} that nobody else has confirmed still stand"
            );
            assert!(in_doubt.confirmed.is_empty(), "what {machine} has confirmed still is");
            let held = dispatch
                .workers()
                .filter(|(_, worker)| worker.leases() > 0 && dispatch.distrusts(&worker.machine).is_some());
            assert_eq!(held.count(), 0, "who is out holds nothing");
        }
    }

    /// A second count ended: nobody was asked who should not, and what two credentials agree on is true, unless they lie alike.
    fn checked(&self, ledger: &Ledger, job: JobId, outcome: Option<CheckOutcome>) {
        let row = ledger.job(job).expect("what is checked is there");
        if outcome != Some(CheckOutcome::Agreed) || self.taken_back.contains(&job.run) {
            return;
        }
        let was_asked = |row: &ResultRow| self.second_counts.contains(&row.result.token);
        let was_asked = row.results.iter().any(was_asked) || row.slot.is_recounted();
        assert!(was_asked || row.slot.state != JobState::Done, "nobody was asked about job {job}");
        let stands = row.accepted().map(|(_, row)| row.result.counts);
        let is_true = stands.is_none_or(|stands| stands == truth(job));
        assert!(
            is_true || self.conspire || row.is_checked_now(),
            "two machines agree on a lie about job {job}"
        );
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
        self.restored_in = self.life + 1;
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
        let own = |worker| ledger.machine(worker);
        for (ack, result) in synced.acks.iter().zip(&sync.results) {
            let (job, verdict) = (ack.token.job, ack.verdict);
            let row = ledger.job(job);
            if matches!(verdict, Verdict::Accepted | Verdict::Conflict) {
                let is_kept = |row: &JobRow| {
                    row.results.iter().any(|kept| {
                        let (kept, worker) = (&kept.result, kept.worker);
                        (kept.token.epoch, worker) == (result.token.epoch, sync.session.worker)
                    })
                };
                assert!(row.is_some_and(is_kept), "job {job}: what is acknowledged is kept");
            }
            if verdict == Verdict::Accepted && !voided.contains(&job) {
                let stored = row.and_then(JobRow::accepted).map(|(_, row)| row.result.counts);
                self.safe.extend(stored.map(|counts| (job, counts)));
            }
        }
        for Granted { token, .. } in &synced.granted {
            let (at, life) = (self.now, self.life);
            let credential = own(sync.session.worker).credential.clone();
            let issued = Issued { process, credential, life, at };
            let holder = self.issued.entry(*token).or_insert_with(|| issued.clone());
            if holder.life < self.restored_in && holder.process != process {
                *holder = issued;
            }
            assert_eq!(holder.process, process, "a lease of job {} goes to two processes", token.job);
        }
    }
}
