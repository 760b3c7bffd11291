//! `nqueens run`: counts a board on one machine.

mod end;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use nqueens_coordinator::progress::{RunProgress, Snapshot};
use nqueens_coordinator::request::release_all;
use nqueens_coordinator::{Coordinator, Error, Policy, RunRow, Timing, Workers};
use nqueens_kernel::cells::{file_stem, subject};
use nqueens_kernel::engine::Kernel;
use nqueens_model::credential::Credential;
use nqueens_model::id::RunId;
use nqueens_model::message::{Registration, Session, SyncRequest, SyncResponse};
use nqueens_model::operator::{RunState, Submission};
use nqueens_proto::random_bytes;
use nqueens_worker::{CallError, Config, Crew, work};
use tokio::sync::{oneshot, watch};
use tracing::debug;

use self::end::{RunEnd, TakenUp};
use crate::board::Board;
use crate::build::BUILD;
use crate::choices::{RunRules, Splitting, Threads};
use crate::engine_options::{EngineOptions, Engines, plan_beside_gpus};
use crate::engines::ENGINES;
use crate::exit::INTERRUPTED;
use crate::output::{Json, percent, thousands};
use crate::signals::{END_WITHIN, SignalReceiver, signals, stopped};
use crate::{progress, runtime};

/// Counts all solutions of an N by N board on this machine.
///
/// Progress is kept in a database file. After an interruption, run the same command again to continue. Once the run is
/// done, the command prints the stored result.
///
/// With --cells it counts a board with given queens and blocked cells.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens run 16 --threads 2")]
pub(crate) struct RunCommand {
    #[command(flatten)]
    board: Board,

    #[command(flatten)]
    threads: Threads,

    /// Database file [default: nqueens-N.db; with --cells nqueens-N-DIGITS.db]
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,

    #[command(flatten)]
    splitting: Splitting,

    #[command(flatten)]
    engines: EngineOptions,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    confirming: RunRules,
}

/// Heartbeats inside one process can be brisk: they cost nothing, and keep the bar moving.
const BEAT_MS: u32 = 500;

/// A power cut may cost the work of this time. The only worker is in this process, so it relies on nothing after one.
const SYNC_EVERY: Duration = Duration::from_secs(1);

impl RunCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        self.board.check();
        let told = signals(Some(END_WITHIN)).context("listening for signals")?;
        let runtime = runtime::beside_counting()?;
        let outcome = runtime.block_on(self.count(told));
        // A plan in the making is not waited for.
        runtime.shutdown_background();
        outcome
    }

    fn path(&self) -> PathBuf {
        let stem = || file_stem(self.board.n, self.board.cells.as_ref());
        self.db.clone().unwrap_or_else(|| format!("{}.db", stem()).into())
    }

    async fn count(self, told: SignalReceiver) -> anyhow::Result<ExitCode> {
        let (options, threads) = (self.engines.clone(), self.threads.number());
        let tell = |decision: &str| eprintln!("nqueens: {decision}");
        let plan = plan_beside_gpus(self.splitting.plan, self.board.n);
        let proving = tokio::task::spawn_blocking(move || options.prove(threads, plan, tell));
        let path = self.path();
        let opening = async {
            let coordinator = Coordinator::open(&path, self.timing(), BUILD).await?;
            let engines = proving.await.context("the engines' test panicked")??;
            anyhow::Ok((coordinator, engines))
        };
        let (coordinator, engines) = tokio::select! {
            opened = opening => opened?,
            () = stopped(told.clone()) => return Ok(self.interrupted()),
        };
        debug!(kernel = engines.names(), "database is open, engine passed its self-test");
        let outcome = self.finish(&coordinator, &engines, told).await;
        debug!("run has ended");
        coordinator.close().await;
        if let Some(end) = outcome? {
            end.print(self.json)?;
            return Ok(ExitCode::SUCCESS);
        }
        Ok(self.interrupted())
    }

    fn timing(&self) -> Timing {
        // There is nobody else who could count a job, however long it takes.
        let policy = Policy { beat_ms: BEAT_MS, lease_age_ms: u64::MAX, ..self.confirming.policy(false) };
        Timing { policy, sync_every: SYNC_EVERY, ..self.confirming.timing() }
    }

    fn interrupted(&self) -> ExitCode {
        eprintln!(
            "interrupted; progress is kept in {}; run the same command again to continue",
            self.path().display()
        );
        ExitCode::from(INTERRUPTED)
    }

    /// Counts what is left of the run, if anything is; `None` if it was interrupted.
    async fn finish(
        &self,
        coordinator: &Coordinator,
        engines: &Engines,
        told: SignalReceiver,
    ) -> anyhow::Result<Option<RunEnd>> {
        let planning = async {
            match self.existing(coordinator).await? {
                Some(run) => Ok(run),
                None => self.submit(coordinator, engines.planned_for(self.board.n)).await,
            }
        };
        let run = tokio::select! {
            run = planning => run?,
            () = stopped(told.clone()) => return Ok(None),
        };
        let (id, operator) = (run.id, coordinator.operator());
        let end = async |taken_up| {
            let (run, reader) = (operator.run(id).await?, operator.reader());
            let effort = reader.effort(&reader.run(id).await?).await?;
            Ok(Some(RunEnd { run, effort, taken_up, threads: self.threads.number().get() }))
        };
        if run.state == RunState::Done {
            return end(TakenUp::Done).await;
        }
        if run.state == RunState::Paused {
            operator.set_run_state(id, RunState::Active).await?;
        }
        debug!(run = %id, "run is planned");
        let before = operator.watch().borrow().run(id).cloned();
        let taken_up = match before.filter(|run| run.sums.done > 0) {
            Some(run) => {
                let (done, jobs) = (thousands(run.sums.done), thousands(run.jobs));
                let share = percent(run.share_done());
                if !self.json.json {
                    eprintln!("nqueens: run {id} is resumed at {share}, with {done} of {jobs} jobs done");
                }
                TakenUp::Resumed(run.share_done())
            }
            None => TakenUp::New,
        };
        operator.ask(release_all()).await.map_err(anyhow::Error::new)?;
        let is_done = tokio::select! {
            is_done = self.drive(coordinator, id, engines.crews.clone(), told) => is_done?,
            never = progress::show(id, operator.watch()) => match never {},
        };
        if is_done { end(taken_up).await } else { Ok(None) }
    }

    /// The run that the database holds already, if it is the one that was asked for.
    async fn existing(&self, coordinator: &Coordinator) -> anyhow::Result<Option<RunRow>> {
        let runs = coordinator.operator().reader().runs().await?;
        let Board { n, cells } = self.board;
        let Some(run) = runs.iter().rfind(|run| (run.plan.n(), run.plan.cells()) == (n, cells)) else {
            let Some(other) = runs.first() else { return Ok(None) };
            let (found, wanted) = (other.plan.subject(), subject(n, cells.as_ref()));
            bail!("{} holds a run of {found}, not of {wanted}; choose another --db", self.path().display());
        };
        if let Some(wanted) = self.splitting.plan
            && wanted != run.plan.kind()
        {
            let (path, found) = (self.path(), run.plan.kind());
            bail!(
                "{} holds a run with plan '{found}', not '{wanted}'; leave --plan out to resume it, or choose another --db",
                path.display()
            );
        }
        match run.state {
            RunState::Failed => bail!(failure(run)),
            RunState::Cancelled => bail!("run {} was cancelled; choose another --db to count again", run.id),
            _ => Ok(Some(run.clone())),
        }
    }

    async fn submit(&self, coordinator: &Coordinator, kernel: Option<Kernel>) -> anyhow::Result<RunRow> {
        let plan = self.splitting.plan(&self.board, kernel);
        let submission = Submission { request: random_bytes(), plan, priority: 0, replicate_ppm: 0 };
        let operator = coordinator.operator();
        tokio::select! {
            run = operator.submit_once(submission) => Ok(run?),
            never = progress::show(submission.run(), operator.watch()) => match never {},
        }
    }

    /// Counts with a worker in this process until the run is done; false if it was interrupted.
    async fn drive(
        &self,
        coordinator: &Coordinator,
        id: RunId,
        crews: Vec<Crew>,
        told: SignalReceiver,
    ) -> anyhow::Result<bool> {
        let (stop_working, working_stopped) = oneshot::channel::<()>();
        let worker = Config {
            name: "this process".to_owned(),
            build: BUILD.to_owned(),
            crews,
            factory: Arc::new(ENGINES),
            offered: Vec::new(),
            memory: self.engines.memory.of_run(),
            spool: None,
            drain: Duration::ZERO,
            time_max: None,
            idle_max: None,
        };
        let here = Here(coordinator.workers());
        let mut working = tokio::spawn(work(worker, here, async { drop(working_stopped.await) }));
        let mut faults = coordinator.faults();
        let end = tokio::select! {
            run = ended(coordinator.operator().watch(), id) => match run.state {
                RunState::Done => Ok(true),
                RunState::Failed => Err(anyhow::Error::msg(failure(&coordinator.operator().reader().run(id).await?))),
                _ => Err(anyhow::Error::msg(stuck(&run))),
            },
            worker = &mut working => match worker.context("the worker panicked")? {
                Ok(_) => Err(anyhow::Error::msg("the worker stopped early")),
                Err(error) => Err(error.into()),
            },
            fault = faults.wait_for(Option::is_some) => {
                let fault = fault.expect("the coordinator is there").clone();
                Err(anyhow::Error::new(fault.expect("there is one")))
            }
            () = stopped(told) => Ok(false),
        };
        drop(stop_working);
        if !working.is_finished() {
            working.await.context("the worker panicked")??;
        }
        end
    }
}

fn failure(run: &RunRow) -> String {
    let reason = run.reason.as_deref().unwrap_or("no reason is recorded");
    format!("run {} has no total because a check failed: {reason}", run.id)
}

fn stuck(run: &RunProgress) -> String {
    let (id, quarantined, jobs) = (run.id, thousands(run.sums.quarantined), thousands(run.jobs));
    format!(
        "run {id} has no total: {quarantined} of {jobs} jobs are in quarantine because attempts failed or results \
         disagree; 'nqueens export --by job' lists them"
    )
}

/// Waits until a run is done or failed, or has nothing left but jobs in quarantine.
async fn ended(mut snapshots: watch::Receiver<Arc<Snapshot>>, id: RunId) -> RunProgress {
    let over = |run: &RunProgress| {
        let sums = &run.sums;
        matches!(run.state, RunState::Done | RunState::Failed)
            || sums.quarantined > 0 && sums.done + sums.quarantined == run.jobs
    };
    match snapshots.wait_for(|snapshot| snapshot.run(id).is_some_and(over)).await {
        Ok(snapshot) => snapshot.run(id).expect("just seen").clone(),
        Err(_closed) => std::future::pending().await,
    }
}

/// The coordinator in this process, as its worker sees it: calls without a network: the same requests, transactions and answers.
#[derive(Clone)]
struct Here(Workers);

fn call_error(error: Arc<Error>) -> CallError {
    match *error {
        Error::Refused(_) => CallError::Refused(error.to_string()),
        _ => CallError::Unavailable(error.to_string()),
    }
}

impl nqueens_worker::Coordinator for Here {
    fn address(&self) -> &'static str {
        "this process"
    }

    async fn register(&self, worker: Registration) -> Result<Session, CallError> {
        self.0.register(worker, Credential::shared()).await.map_err(call_error)
    }

    async fn sync(&self, sync: SyncRequest) -> Result<SyncResponse, CallError> {
        let answer = self.0.sync(sync, Credential::shared()).await.map_err(call_error)?;
        answer.ok_or(CallError::Unregistered)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunCommand,
    }

    #[test]
    fn no_job_is_too_long_where_nobody_else_could_count_it() {
        let policy = Line::parse_from(["nqueens", "20"]).run.timing().policy;
        assert_eq!((policy.arbiter, policy.lease_age_ms), (false, u64::MAX));
    }
}
