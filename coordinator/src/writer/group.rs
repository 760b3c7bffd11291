//! What the requests of one transaction do.

use std::collections::{BTreeSet, HashMap};

use nqueens_kernel::counts::Counts;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::message::{
    JobResult, Lease, ResultAck, ReturnedLease, SyncRequest, SyncResponse, Verdict,
};
use nqueens_model::operator::{EventKind, Outcome, RunState};
use nqueens_proto::MESSAGE_BYTES_MAX;
use sqlx::sqlite::SqliteConnection;
use tracing::{debug, error, info, warn};

use super::{LiveWorker, Pace, Request, Response};
use crate::canary::OWN_MACHINE;
use crate::disk::Disk;
use crate::dispatch::{Accepted, Dispatch, JobState, Judgement, Machine, Millis, Run, Worker};
use crate::error::{Error, damaged};
use crate::events::News;
use crate::store::{self, JudgedResult, RunRow, wall_time};

/// Bytes of leases in one answer, so that it stays well below the largest message however jobs are encoded.
const LEASE_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

/// Bytes of a lease beside its job's prefixes, at most.
const LEASE_BYTES: usize = 100;

/// The process that has each worker's name. In a database restored from a backup the names that it has forgotten are given
/// out a second time.
pub(super) type Instances = HashMap<WorkerId, [u8; 16]>;

/// The most that jobs can count which were leased and are not done: what their results are judged by without a look at the
/// database.
pub(super) type Limits = HashMap<JobId, Counts>;

/// So many are kept; beyond, the database is asked again.
const LIMITS_MAX: usize = 200_000;

/// Everything that one transaction does.
pub(crate) struct Group<'a> {
    pub(crate) db: &'a mut SqliteConnection,
    pub(super) disk: &'a mut Disk,
    pub(crate) dispatch: &'a mut Dispatch,
    pub(super) instances: &'a mut Instances,
    pub(super) limits: &'a mut Limits,
    pub(super) quarantined: &'a mut BTreeSet<JobId>,
    pub(super) pace: Pace,
    pub(super) now: Millis,
    /// To be stored at its end.
    pub(crate) results: Vec<JudgedResult>,
    /// Those of them that were accepted: a second result for the same job has to see the first.
    pub(crate) accepted: HashMap<JobId, Accepted>,
    /// To be made known once it is committed.
    pub(crate) news: Vec<News>,
}

impl Group<'_> {
    pub(super) async fn handle(&mut self, request: Request) -> Result<Response, Error> {
        match request {
            Request::Sync(sync) => return self.sync(sync).await,
            Request::Register(worker) => {
                if worker.name == OWN_MACHINE {
                    return Ok(Response::Refused(Error::ReservedName(worker.name)));
                }
                if let Some(refusal) = self.refusal(&worker.name) {
                    return Ok(Response::Refused(refusal));
                }
                let id = store::upsert_worker(self.db, &worker, wall_time()).await?;
                info!(worker = %id, name = worker.name, threads = worker.threads, build = worker.build, "worker registered");
                self.dispatch.add_worker(id, worker.name.into(), worker.kernels[0], worker.threads);
                self.instances.insert(id, worker.instance);
                return Ok(Response::Worker(id));
            }
            Request::Compare { own, result } => {
                if let Some(refusal) = self.refusal(OWN_MACHINE) {
                    return Ok(Response::Refused(refusal));
                }
                let id = store::upsert_worker(self.db, &own, wall_time()).await?;
                self.dispatch.add_worker(id, own.name.into(), own.kernels[0], own.threads);
                self.dispatch.set_draining(id);
                self.report(id, &[result]).await?;
            }
            Request::PlanRun { .. } | Request::PlanJobs { .. } if self.disk.is_short() => {
                return Ok(Response::Refused(Error::DiskShort));
            }
            Request::PlanRun { id, plan, seed, priority, replicate_ppm } => {
                // One plan is made at a time: what else is unplanned was given up half-way.
                store::delete_unplanned(self.db).await?;
                store::insert_run(self.db, id, &plan, seed, priority, replicate_ppm, wall_time()).await?;
            }
            Request::PlanJobs { run, first, jobs } => store::insert_jobs(self.db, run, first, &jobs).await?,
            Request::ActivateRun { row, estimates } => {
                store::finish_planning(self.db, row.id, row.jobs, row.fingerprint).await?;
                let RunRow { id, plan, jobs, priority, .. } = &row;
                info!(run = %id, n = plan.n().get(), plan = %plan.kind(), jobs, priority, "run is planned");
                let run = Run::planned(&row, &estimates);
                self.news.push(News::of(&run, EventKind::RunPlanned, format_args!("planned, {jobs} jobs.")));
                self.dispatch.add_run(run);
            }
            Request::FinishRun { run, outcome } => self.finish(run, outcome).await?,
            Request::ReleaseAll => self.dispatch.release_all(),
            Request::Expire => {
                let was_short = self.disk.is_short();
                self.disk.look();
                if was_short != self.disk.is_short() {
                    self.news.push(News::disk(self.disk.is_short()));
                }
                let ended = self.dispatch.expire(self.now);
                self.news.extend(News::lapses(
                    ended.iter().map(|(worker, _)| (*worker, self.dispatch.is_live(self.now, *worker))),
                ));
                for (worker, token) in ended {
                    debug!(%worker, job = %token.job, "lease ended: the worker was not heard of, or its counting stalled");
                }
            }
            Request::SetRunState { run, state } => return self.set_run_state(run, state).await,
            Request::RetryQuarantined(run) => {
                if self.dispatch.run(run).is_none() {
                    return Ok(Response::Refused(Error::NoRun(run)));
                }
                let jobs = self.dispatch.retry_quarantined(run);
                self.void(&jobs).await?;
                info!(%run, jobs = jobs.len(), "quarantined jobs are open again");
            }
            Request::Requeue { run, of } => return self.requeue(run, of).await,
            Request::SetTrust { machine, trusted } => return Ok(self.set_trust(&machine, trusted)),
            Request::Close => {}
            Request::Census { run, groups_max } => {
                let run = self.dispatch.run(run).ok_or(Error::NoRun(run));
                return Ok(run.map_or_else(Response::Refused, |run| Response::Census(run.census(groups_max))));
            }
            Request::LiveWorkers => return Ok(Response::LiveWorkers(self.live_workers())),
            Request::Drain(worker) => {
                if !self.dispatch.set_draining(worker) {
                    return Ok(Response::Refused(Error::NoWorker(worker)));
                }
                info!(%worker, "worker is asked to go");
            }
        }
        Ok(Response::Done)
    }

    fn live_workers(&self) -> Vec<LiveWorker> {
        let live = self.dispatch.workers().filter_map(|(id, worker)| {
            let standing = self.dispatch.standing(&worker.machine);
            let seen = worker.seen.or(standing.distrusted.as_ref().map(|_| 0))?;
            Some(LiveWorker {
                id,
                silent_ms: self.now.saturating_sub(seen),
                leases: worker.leases(),
                states_per_s: worker.states_per_s(),
                accepted: worker.accepted,
                draining: worker.draining,
                standing,
            })
        });
        live.collect()
    }

    /// An operator's word on a run.
    async fn set_run_state(&mut self, id: RunId, state: RunState) -> Result<Response, Error> {
        let Some(run) = self.dispatch.run(id) else { return Ok(Response::Refused(Error::NoRun(id))) };
        let from = run.state();
        if from == state {
            return Ok(Response::Done);
        }
        if !matches!(from, RunState::Active | RunState::Paused) {
            return Ok(Response::Refused(Error::RunIsOver { run: id, state: from.name() }));
        }
        store::update_run_state(self.db, id, state, None).await?;
        self.dispatch.set_run_state(id, state);
        if let Some(run) = self.dispatch.run(id) {
            self.news.push(News::of(run, EventKind::RunChanged, format_args!("now {}.", state.name())));
        }
        info!(run = %id, from = from.name(), to = state.name(), "run changed its state");
        Ok(Response::Done)
    }

    /// A worker's regular word: results first, so that what it still holds and what it wants are told apart from them.
    async fn sync(&mut self, sync: SyncRequest) -> Result<Response, Error> {
        // Its name may be another process's by now.
        let is_own = sync.instance.is_none_or(|own| self.instances.get(&sync.worker) == Some(&own));
        let worker = self.dispatch.worker(sync.worker).filter(|_| is_own);
        let Some(Worker { draining: drain, machine, .. }) = worker else { return Ok(Response::Sync(None)) };
        let drain = *drain;
        if let Some(refusal) = self.refusal(&Machine::clone(machine)) {
            return Ok(Response::Refused(refusal));
        }
        let acks = self.report(sync.worker, &sync.results).await?;
        for returned in &sync.returned {
            if let Some(failure) = &returned.failure {
                warn!(worker = %sync.worker, job = %returned.token.job, failure, "a worker could not count a job");
            }
            self.dispatch.give_back(sync.worker, returned);
        }
        let held = self.dispatch.heartbeat(self.now, sync.worker, &sync.held);
        let mut tokens = held.lost;
        let lost_states =
            tokens.iter().map(|token| self.dispatch.estimate(token.job)).fold(0, u64::saturating_add);
        let wanted_states = sync.wanted_states.saturating_sub(lost_states);
        let wanted_jobs = sync.wanted_jobs.saturating_sub(tokens.len());
        if !self.disk.is_short() {
            tokens.extend(self.dispatch.grant(self.now, sync.worker, wanted_states, wanted_jobs));
        }
        let leases = self.leases(sync.worker, tokens).await?;
        let next_sync_ms = self.pace.sync_ms;
        Ok(Response::Sync(Some(SyncResponse { acks, leases, revoked: held.revoked, next_sync_ms, drain })))
    }

    async fn report(&mut self, worker: WorkerId, results: &[JobResult]) -> Result<Vec<ResultAck>, Error> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let reported = results.iter().map(|result| result.token.job);
        let asked: Vec<_> = reported.filter(|job| self.limit(*job).is_none()).collect();
        let jobs = store::reported_jobs(self.db, &asked).await?;
        let mut acks = Vec::with_capacity(results.len());
        for result in results {
            let stored = jobs.get(&result.token.job);
            let just_accepted = self.accepted.get(&result.token.job).copied();
            let accepted = just_accepted.or_else(|| stored.and_then(|stored| stored.accepted));
            let counts_max = self.limit(result.token.job).or(stored.map(|stored| stored.counts_max));
            let plausible = counts_max.is_some_and(|most| result.counts.within(most));
            let run = result.token.job.run;
            let had_total = self.has_total(run);
            let Judgement { verdict, keep, supersedes, reason } =
                self.dispatch.report(worker, result, accepted.as_ref(), plausible);
            if had_total && !self.has_total(run) {
                store::update_run_state(self.db, run, RunState::Active, None).await?;
            }
            if supersedes {
                self.void(&[result.token.job]).await?;
            }
            match verdict {
                Verdict::Accepted if keep => {
                    let LeaseToken { job, epoch, incarnation } = result.token;
                    let JobResult { counts, kernel, states, elapsed_us, .. } = *result;
                    let accepted =
                        Accepted { worker, epoch, incarnation, kernel, counts, states, elapsed_us };
                    self.accepted.insert(job, accepted);
                    self.limits.remove(&job);
                }
                Verdict::Accepted | Verdict::Duplicate => {}
                Verdict::Conflict => {
                    error!(%worker, job = %result.token.job, reason, "results disagree: job quarantined");
                }
                _ => warn!(%worker, job = %result.token.job, reason, "result not accepted"),
            }
            if keep {
                self.results.push((worker, *result, verdict));
            }
            acks.push(ResultAck { token: result.token, verdict, reason });
        }
        Ok(acks)
    }

    /// The most that a job can count, if that is known and no result stands for the job.
    fn limit(&self, job: JobId) -> Option<Counts> {
        let run = self.dispatch.run(job.run).filter(|run| run.contains(job.number))?;
        let is_open = matches!(run.slot(job.number).state, JobState::Ready | JobState::Leased);
        self.limits.get(&job).filter(|_| is_open).copied()
    }

    pub(crate) fn has_total(&self, run: RunId) -> bool {
        self.dispatch.run(run).is_some_and(|run| run.state() == RunState::Done)
    }

    /// What the leases are about. Those that one answer has no room for are taken back, to be handed out again.
    async fn leases(&mut self, worker: WorkerId, tokens: Vec<LeaseToken>) -> Result<Vec<Lease>, Error> {
        if tokens.is_empty() {
            return Ok(Vec::new());
        }
        let mut jobs = store::encoded_jobs(self.db, tokens.iter().map(|token| token.job)).await?;
        if self.limits.len() > LIMITS_MAX {
            self.limits.clear();
        }
        let (mut leases, mut bytes) = (Vec::with_capacity(tokens.len()), 0);
        for token in tokens {
            let (job, counts_max) =
                jobs.remove(&token.job).ok_or_else(|| damaged(format!("job {} is gone", token.job)))?;
            self.limits.insert(token.job, counts_max);
            bytes += LEASE_BYTES + job.prefixes.len();
            // One at least, or it would never leave.
            if leases.is_empty() || bytes <= LEASE_BYTES_MAX {
                let (states, mirrored) =
                    (self.dispatch.estimate(token.job), self.dispatch.is_mirrored(&token));
                leases.push(Lease { token, job, states, mirrored });
            } else {
                self.dispatch.give_back(worker, &ReturnedLease { token, failure: None });
            }
        }
        Ok(leases)
    }

    async fn finish(&mut self, id: RunId, outcome: Result<Outcome, String>) -> Result<(), Error> {
        let run = self.dispatch.run_mut(id).ok_or(Error::NoRun(id))?;
        if !run.is_complete() || !matches!(run.state(), RunState::Active | RunState::Paused) {
            return Ok(());
        }
        match outcome {
            Ok(outcome) => {
                store::finish_run(self.db, id, &outcome, wall_time()).await?;
                run.set_state(RunState::Done);
                info!(run = %id, n = run.n().get(), total = %outcome.total, "run is done");
                let (total, check) = (outcome.total, outcome.checked.describe());
                let what = format_args!("done, TOTAL {total}: {check}.");
                self.news.push(News::of(run, EventKind::RunDone, what));
            }
            Err(reason) => {
                store::update_run_state(self.db, id, RunState::Failed, Some(&reason)).await?;
                run.set_state(RunState::Failed);
                error!(run = %id, n = run.n().get(), reason, "run has no total: a check did not pass");
                let what = format_args!("no total, for a check did not pass: {reason}.");
                self.news.push(News::of(run, EventKind::RunFailed, what));
            }
        }
        Ok(())
    }

    /// Writes what has come together.
    pub(super) async fn store(&mut self) -> Result<(), Error> {
        self.dispatch.waive(self.now);
        self.store_results().await?;
        self.follow_up().await?;
        let dispatch = &mut *self.dispatch;
        let changed: Vec<_> = dispatch.take_dirty().into_iter().map(|job| dispatch.changed(job)).collect();
        self.news.extend(News::quarantined(&changed, dispatch, self.quarantined));
        if !changed.is_empty() {
            store::update_jobs(self.db, &changed).await?;
        }
        let (checks, standings) = (dispatch.take_checks(), dispatch.take_standings());
        if !checks.is_empty() {
            store::insert_checks(self.db, &checks).await?;
        }
        if !standings.is_empty() {
            store::upsert_standings(self.db, &standings).await?;
        }
        Ok(())
    }

    pub(crate) async fn store_results(&mut self) -> Result<(), Error> {
        if !self.results.is_empty() {
            store::insert_results(self.db, &self.results, wall_time()).await?;
            self.results.clear();
        }
        Ok(())
    }
}
