//! Reads a ledger while another process may write to it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use nqueens_evidence::line::OtherLine;
use nqueens_kernel::plan::Fingerprinter;
use nqueens_ledger::database::open_readers;
use nqueens_ledger::{self as ledger, Effort, LedgerRow, PlannedJob, RunRow, WorkerRow, damaged, rules};
use nqueens_model::id::{JobId, RunId};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::Registration;
use nqueens_model::operator::{Event, Moment, Worker};
use nqueens_scheduler::{Refusal, Run, RunSettings, Sums};
use sqlx::sqlite::SqlitePool;
use tracing::warn;

use crate::error::Error;
use crate::history::{MOMENTS_MAX, moments};
use crate::planner::{BATCH, Planner};
use crate::plans::UnplannedRun;
use crate::progress::RunProgress;

/// A database opened read-only; a coordinator may be writing to it.
#[derive(Clone, Debug)]
pub struct Reader {
    path: Arc<Path>,
    db: SqlitePool,
}

impl Reader {
    /// Opens a database that exists.
    pub async fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::new(path, open_readers(path).await?))
    }

    /// Lets go of the database; without it, files of SQLite's may stay beside it.
    pub async fn close(self) {
        self.db.close().await;
    }

    pub(crate) fn new(path: &Path, db: SqlitePool) -> Self {
        Self { path: path.into(), db }
    }

    /// Gives an error of SQLite the words that help.
    pub(crate) fn explain(&self, error: impl Into<Error>) -> Error {
        error.into().explain(&self.path)
    }

    pub(crate) fn pool(&self) -> &SqlitePool {
        &self.db
    }

    /// Reads the whole file, and says which of the [`RULES`](crate::RULES) do not hold, if any, or which run's jobs are
    /// not those that were planned, with their bounds; some half a minute for a million jobs.
    pub async fn examine(&self) -> Result<(), Error> {
        let mut broken = rules::broken(&self.db).await.map_err(|error| self.explain(error))?;
        if broken.is_empty() {
            for run in self.runs().await? {
                broken.extend(self.misplanned(&run).await?);
            }
        }
        if broken.is_empty() {
            return Ok(());
        }
        Err(damaged(format!("{}: {}", self.path.display(), broken.join("; "))).into())
    }

    /// What is wrong with the jobs of a run, if anything: they are not those that it began with, or the most that each
    /// can count is not what the plan has for it. Such a job refuses right results, or takes wrong ones.
    async fn misplanned(&self, run: &RunRow) -> Result<Option<String>, Error> {
        let (mut planner, mut fingerprint) = (Planner::start(run.plan), Fingerprinter::new(&run.plan));
        let (mut first, mut differing) = (0_u32, Vec::new());
        loop {
            let next = first.saturating_add(BATCH);
            let stored = self.jobs((first..next).map(|number| JobId { run: run.id, number })).await?;
            if stored.is_empty() {
                break;
            }
            let planned = planner.next().await.unwrap_or_default();
            for (JobId { number, .. }, PlannedJob { job, weight }) in stored {
                fingerprint.add_encoded(job.class, job.bound1, &job.prefixes);
                let planned = number.checked_sub(first).and_then(|at| planned.get(at as usize));
                if planned.is_none_or(|(_, planned)| *planned != weight) {
                    differing.push(JobId { run: run.id, number }.to_string());
                }
            }
            first = next;
        }
        if fingerprint.finish() != run.fingerprint {
            return Ok(Some(format!("the jobs of run {} are not the plan that it began with", run.id)));
        }
        if planner.next().await.is_some() || planner.finish().await.ok() != Some(run.fingerprint) {
            warn!(
                run = %run.id,
                "another version of this program has planned this run, in another way: \
                 the bounds of its jobs are not checked"
            );
            return Ok(None);
        }
        let rule = "a job's estimate and the most that it can count are the plan's";
        Ok((!differing.is_empty()).then(|| rules::describe(rule, &differing)))
    }

    /// Looks whether the file is sound as SQLite sees it, but for the order of its indexes; some seconds for a million
    /// jobs.
    pub async fn glance(&self) -> Result<(), Error> {
        match rules::unsound(&self.db).await {
            Ok(None) => Ok(()),
            Ok(Some(finding)) => Err(damaged(format!("{}: {finding}", self.path.display())).into()),
            Err(error) => Err(self.explain(error)),
        }
    }

    /// Bytes of the file that hold nothing, and that SQLite writes to before the file grows.
    pub(crate) async fn free_bytes(&self) -> Result<u64, Error> {
        let pages = "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size";
        let bytes: i64 = sqlx::query_scalar(pages).fetch_one(&self.db).await?;
        Ok(u64::try_from(bytes).map_err(damaged)?)
    }

    /// All runs, oldest first.
    pub async fn runs(&self) -> Result<Vec<RunRow>, Error> {
        ledger::runs(&self.db).await.map_err(|error| self.explain(error))
    }

    /// The runs that are being planned, oldest first. In a database that no process writes to, their planning was cut short:
    /// the next one to open it drops them.
    pub async fn unplanned_runs(&self) -> Result<Vec<UnplannedRun>, Error> {
        let rows = ledger::unplanned_runs(&self.db).await.map_err(|error| self.explain(error))?;
        let run = |(settings, at, stored): (RunSettings, _, _)| {
            UnplannedRun::new(settings, settings.plan.size(), at, stored)
        };
        Ok(rows.into_iter().map(run).collect())
    }

    /// One run.
    pub async fn run(&self, id: RunId) -> Result<RunRow, Error> {
        self.runs().await?.into_iter().find(|run| run.id == id).ok_or_else(|| Refusal::NoRun(id).into())
    }

    /// The jobs of a run in plan order, as [`Operator::job_state_histogram`](crate::Operator::job_state_histogram) has them.
    pub async fn job_state_histogram(&self, run: &RunRow, groups_max: usize) -> Result<Vec<[u32; 4]>, Error> {
        let slots = ledger::slots(&self.db, run.id, run.jobs).await?;
        Ok(Run::new(&run.settings(), run.state, slots, Sums::default()).job_state_histogram(groups_max))
    }

    /// How far some runs are. From a ledger alone their speed can't be told. All its results are read, once.
    pub async fn progress(&self, runs: &[RunRow]) -> Result<Vec<RunProgress>, Error> {
        let mut sums = ledger::stored_sums(&self.db).await?;
        let mut progress = Vec::with_capacity(runs.len());
        for run in runs {
            let slots = ledger::slots(&self.db, run.id, run.jobs).await?;
            let sums = sums.remove(&run.id).unwrap_or_default();
            progress.push(RunProgress::of(&Run::new(&run.settings(), run.state, slots, sums)));
        }
        Ok(progress)
    }

    /// The latest events, oldest first.
    pub async fn events(&self) -> Result<Vec<Event>, Error> {
        Ok(ledger::events(&self.db).await?)
    }

    /// How a run went over time, oldest moment first; nothing of one that is not known or being planned.
    pub async fn history(&self, id: RunId) -> Result<Vec<Moment>, Error> {
        let Some(run) = self.runs().await?.into_iter().find(|run| run.id == id) else {
            return Ok(Vec::new());
        };
        let began = run.started_at.unwrap_or(run.created_at);
        let (span_ms, spans) = ledger::spans(&self.db, id, began, MOMENTS_MAX).await?;
        let work = ledger::planned_work(&self.db, id).await?;
        Ok(moments(began, span_ms, run.jobs, work, &spans))
    }

    /// When a run was counted, and by which engines.
    pub async fn effort(&self, run: &RunRow) -> Result<Effort, Error> {
        ledger::effort(&self.db, run).await.map_err(|error| self.explain(error))
    }

    /// All workers that ever registered, oldest first.
    pub async fn workers(&self) -> Result<Vec<Worker>, Error> {
        Ok(ledger::worker_rows(&self.db).await?.into_iter().map(worker).collect())
    }

    /// What some jobs are, and the most that each can count; those that do not exist are left out.
    pub(crate) async fn jobs(
        &self,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<BTreeMap<JobId, PlannedJob>, Error> {
        ledger::planned_jobs(&self.db, ids).await.map_err(|error| self.explain(error))
    }

    /// Up to 10,000 jobs of a run from number `next` on, with their accepted results; `None` past the last. `next` moves
    /// past them.
    pub async fn ledger(&self, run: RunId, next: &mut u32) -> Result<Option<Vec<LedgerRow>>, Error> {
        let rows = ledger::rows(&self.db, run, *next).await.map_err(|error| self.explain(error))?;
        *next = rows.last().map_or(*next, |last| last.number + 1);
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }

    /// The results of some jobs of a run that don't stand, by job and in the order of their commits.
    pub async fn others(&self, run: RunId, jobs: Range<u32>) -> Result<Vec<OtherLine>, Error> {
        ledger::others(&self.db, run, jobs).await.map_err(|error| self.explain(error))
    }
}

fn worker(row: WorkerRow) -> Worker {
    let WorkerRow { session, registration, credential, registered_at, distrusted } = row;
    let Registration { name, build, kernels, capability, threads, .. } = registration;
    let kernels = kernels.iter().map(KernelName::to_string).collect();
    let device = capability.map_or_else(String::new, |capability| capability.device);
    Worker {
        id: session.worker,
        name,
        credential,
        build,
        kernels,
        device,
        threads,
        registered_at,
        distrusted,
    }
}
