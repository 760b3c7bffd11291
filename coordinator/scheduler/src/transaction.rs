//! The requests of one transaction, and what they decide together.

use std::collections::{BTreeSet, HashMap};

use nqueens_kernel::counts::Counts;
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::message::{JobResult, Registration, ResultAck, Session, Verdict};
use nqueens_model::operator::{Blamed, DiskRoom, RunState};
use tracing::{error, warn};

use crate::change::{Change, JudgedResult};
use crate::dispatch::{Accepted, Dispatch, InDoubt, Judgement, Machine, Millis, Outcast, Run, Worker};
use crate::new_event::NewEvent;
use crate::refusal::Refusal;

/// What the ledger is to look up before requests are applied.
#[derive(Debug, Default)]
pub struct Needs {
    pub reported: Vec<JobId>,
    /// Jobs of a run whose results must be voided.
    pub blamed: Vec<(RunId, Blamed)>,
}

/// What results of a job are judged by.
#[derive(Clone, Copy, Debug)]
pub struct StoredJob {
    pub counts_max: Counts,
    /// The result that stands for it, of a job that is done or disputed.
    pub accepted: Option<Accepted>,
}

/// What the ledger has found of the jobs in [`Needs`]; those that do not exist are left out.
pub type Loaded = HashMap<JobId, StoredJob>;

/// All that decisions are made by: the state machine, and what it takes to speak for it.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) dispatch: Dispatch,
    /// The worker's name of each process. In a database restored from a backup the names that it has forgotten are given
    /// out a second time.
    processes: HashMap<[u8; 16], WorkerId>,
    secrets: HashMap<WorkerId, [u8; 16]>,
    /// Jobs in quarantine that were told about.
    told: BTreeSet<JobId>,
    pub(crate) room: Option<DiskRoom>,
}

impl Scheduler {
    /// What a ledger has, with the processes that have registered. `room` is `None` if nobody watches the disk.
    pub fn new(
        dispatch: Dispatch,
        processes: impl IntoIterator<Item = ([u8; 16], Session)>,
        room: Option<DiskRoom>,
    ) -> Self {
        let (processes, secrets) = processes
            .into_iter()
            .map(|(process, Session { worker, secret })| ((process, worker), (worker, secret)))
            .unzip();
        Self { dispatch, processes, secrets, told: BTreeSet::new(), room }
    }

    pub fn dispatch(&self) -> &Dispatch {
        &self.dispatch
    }

    /// The room on the disk when it was last looked at.
    pub fn room(&self) -> Option<DiskRoom> {
        self.room
    }

    pub fn begin(&mut self, now: Millis, loaded: Loaded) -> Transaction<'_> {
        self.dispatch.note_absence(now);
        let (changes, results, news) = (Vec::new(), Vec::new(), Vec::new());
        Transaction { scheduler: self, now, loaded, changes, results, news }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.room.is_some_and(|room| room.is_short)
    }

    /// The worker that proves itself with a session, if it is one.
    pub(crate) fn proven(&self, session: Session, credential: &Credential) -> Option<&Worker> {
        let is_proven = self.secrets.get(&session.worker) == Some(&session.secret);
        let worker = self.dispatch.worker(session.worker).filter(|_| is_proven);
        worker.filter(|worker| worker.machine.credential == *credential)
    }

    pub(crate) fn admit(&self, machine: &Machine) -> Result<(), Refusal> {
        let all = Machine::all_of(machine.credential.clone());
        let untrusted = [machine, &all].into_iter().find_map(|machine| {
            let reason = self.dispatch.reputation(machine).distrusted?;
            Some(Refusal::Distrusted { machine: machine.clone(), reason })
        });
        untrusted.map_or(Ok(()), Err)
    }
}

#[derive(Debug)]
pub struct Transaction<'a> {
    pub(crate) scheduler: &'a mut Scheduler,
    pub(crate) now: Millis,
    /// Kept as the requests leave it: a second result for a job has to see the first.
    pub(crate) loaded: Loaded,
    changes: Vec<Change>,
    /// Results that are not among the changes yet.
    results: Vec<JudgedResult>,
    news: Vec<NewEvent>,
}

impl Transaction<'_> {
    /// The state after the requests so far.
    pub fn dispatch(&self) -> &Dispatch {
        &self.scheduler.dispatch
    }

    /// Applies the consequences of the requests, and returns all changes so far.
    pub fn settle(&mut self) -> Vec<Change> {
        self.scheduler.dispatch.note_counted(self.now);
        self.take_changes()
    }

    /// Who was put out. After the changes are persisted, call [`doubt`](Self::doubt) for each.
    pub fn take_outcasts(&mut self) -> Vec<Outcast> {
        std::mem::take(&mut self.scheduler.dispatch.outcasts)
    }

    /// Has what nobody but an outcast has counted be counted again.
    pub fn doubt(&mut self, outcast: &Outcast, in_doubt: InDoubt) {
        let Outcast { machine, reason } = outcast;
        let void = self.scheduler.dispatch.doubt(machine, in_doubt);
        let jobs = void.len();
        self.news.push(NewEvent::distrusted(machine, reason, jobs));
        warn!(%machine, reason, jobs, "machine is untrusted: it gets no more jobs, and its results that nobody else has \
                                        confirmed are counted again");
        self.void(void);
    }

    pub fn take_changes(&mut self) -> Vec<Change> {
        self.give_out_all();
        std::mem::take(&mut self.changes)
    }

    /// What comes next is about jobs as they are now.
    pub(crate) fn give_out_all(&mut self) {
        self.give_out_results();
        let Scheduler { dispatch, told, .. } = &mut *self.scheduler;
        let changed: Vec<_> =
            std::mem::take(&mut dispatch.dirty).into_iter().map(|job| dispatch.changed(job)).collect();
        self.news.extend(NewEvent::quarantined(&changed, dispatch, told));
        if !changed.is_empty() {
            self.changes.push(Change::Jobs(changed));
        }
        let (checks, reputations) = (dispatch.checks.take_changes(), dispatch.trust.take_dirty());
        if !checks.is_empty() {
            self.changes.push(Change::Checks(checks));
        }
        if !reputations.is_empty() {
            self.changes.push(Change::Reputations(reputations));
        }
    }

    /// Events to publish after the commit.
    pub fn into_news(self) -> Vec<NewEvent> {
        self.news
    }

    pub(crate) fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    pub(crate) fn tell(&mut self, news: impl IntoIterator<Item = NewEvent>) {
        self.news.extend(news);
    }

    /// Refuses what would take room that results need.
    pub(crate) fn has_room(&self) -> Result<(), Refusal> {
        if self.scheduler.is_short() { Err(Refusal::DiskShort) } else { Ok(()) }
    }

    pub(crate) fn run_state(&self, run: RunId) -> Result<RunState, Refusal> {
        self.scheduler.dispatch.run(run).map(Run::state).ok_or(Refusal::NoRun(run))
    }

    pub(crate) fn set_run_state(&mut self, run: RunId, state: RunState) {
        self.scheduler.dispatch.set_run_state(run, state);
        self.change(Change::RunState { run, state, reason: None });
    }

    /// The session of a process: the one that it has, or one by this secret and the next name that the ledger does not have.
    pub(crate) fn enroll(
        &mut self,
        worker: &Registration,
        credential: &Credential,
        secret: [u8; 16],
    ) -> Session {
        let Scheduler { dispatch, processes, secrets, .. } = &mut *self.scheduler;
        let next = || {
            let greatest = dispatch.workers().next_back().map_or(0, |(id, _)| id.get());
            WorkerId::new(greatest + 1).expect("fewer than 2^63 workers")
        };
        let known = processes.get(&worker.instance).copied();
        let id = known.unwrap_or_else(next);
        dispatch.add_worker(id, worker, credential.clone());
        let session = Session { worker: id, secret: *secrets.entry(id).or_insert(secret) };
        if known.is_none() {
            processes.insert(worker.instance, id);
            self.change(Change::Worker(session, worker.clone(), credential.clone()));
        }
        session
    }

    /// Refuses one worker too many of a credential.
    pub(crate) fn has_place(&mut self, machine: &Machine) -> Result<(), Refusal> {
        let (credential, now) = (&machine.credential, self.now);
        let dispatch = &mut self.scheduler.dispatch;
        let own = dispatch.workers().filter(|(_, worker)| worker.machine.credential == *credential);
        let alive = own.filter(|(id, _)| dispatch.is_live(now, *id)).count();
        if alive < dispatch.policy.workers_max && dispatch.may_register(now, machine) {
            Ok(())
        } else {
            Err(Refusal::TooManyWorkers(alive, credential.clone()))
        }
    }

    pub(crate) fn registered(&self, instance: &[u8; 16]) -> Option<&Worker> {
        self.scheduler.dispatch.worker(*self.scheduler.processes.get(instance)?)
    }

    /// Judges results; `loaded` has their jobs.
    pub(crate) fn report(&mut self, worker: WorkerId, results: &[JobResult]) -> Vec<ResultAck> {
        results.iter().map(|result| self.judge(worker, result)).collect()
    }

    fn judge(&mut self, worker: WorkerId, result: &JobResult) -> ResultAck {
        let job = result.token.job;
        let stored = self.loaded.get(&job);
        let accepted = stored.and_then(|stored| stored.accepted);
        let plausible = stored.is_some_and(|stored| result.counts.within(stored.counts_max));
        let dispatch = &mut self.scheduler.dispatch;
        let Judgement { verdict, keep, reason } =
            dispatch.report(self.now, worker, result, accepted.as_ref(), plausible);
        match verdict {
            Verdict::Accepted | Verdict::Duplicate => {}
            Verdict::Conflict => error!(%worker, %job, reason, "results differ: the coordinator decides"),
            Verdict::Implausible | Verdict::Unknown => {
                let machine = dispatch.worker(worker).map(|worker| worker.machine.clone());
                if machine.is_some_and(|machine| dispatch.may_tell(self.now, &machine)) {
                    warn!(%worker, %job, reason, "result refused");
                }
            }
        }
        if keep {
            self.store(worker, result.clone(), verdict);
        }
        ResultAck { token: result.token, verdict, reason }
    }

    pub(crate) fn store(&mut self, worker: WorkerId, result: JobResult, verdict: Verdict) {
        if verdict == Verdict::Accepted {
            let stored = self.loaded.get_mut(&result.token.job).expect("it was judged by what is stored");
            stored.accepted = Some(Accepted::new(worker, &result));
        }
        if let Some(run) = self.scheduler.dispatch.run_mut(result.token.job.run) {
            run.sums.cpu_us += u128::from(result.processor_us());
        }
        self.results.push((worker, result, verdict));
    }

    /// The accepted results of these jobs stand no longer, those of this transaction included.
    pub(crate) fn void(&mut self, jobs: Vec<JobId>) {
        self.give_out_results();
        for job in &jobs {
            if let Some(stored) = self.loaded.get_mut(job) {
                stored.accepted = None;
            }
        }
        if !jobs.is_empty() {
            self.change(Change::Voided(jobs));
        }
    }

    fn give_out_results(&mut self) {
        if !self.results.is_empty() {
            let results = std::mem::take(&mut self.results);
            self.change(Change::Results(results));
        }
    }
}
