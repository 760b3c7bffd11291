//! Reads a ledger while another process may write to it.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use nqueens_kernel::plan::{Fingerprint, Fingerprinter};
use nqueens_model::id::{JobId, RunId};
use nqueens_model::message::EncodedJob;
use nqueens_scheduler::{Refusal, Run};
use sqlx::sqlite::SqlitePool;

use crate::database::{explain, open_readers};
use crate::error::{Error, damaged};
use crate::ledger::{self, LedgerRow, OtherResult, RunRow, WorkerRow};
use crate::progress::RunProgress;
use crate::rules;

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
    pub(crate) fn explain(&self, error: Error) -> Error {
        explain(&self.path, error)
    }

    pub(crate) fn pool(&self) -> &SqlitePool {
        &self.db
    }

    /// Reads the whole file, and says which of the [`RULES`](crate::RULES) do not hold, if any, or which run's jobs are
    /// not those that were planned; some half a minute for a million jobs.
    pub async fn examine(&self) -> Result<(), Error> {
        let mut broken = rules::broken(&self.db).await.map_err(|error| self.explain(error.into()))?;
        if broken.is_empty() {
            for run in self.runs().await? {
                if self.fingerprint(&run).await? != run.fingerprint {
                    broken.push(format!("the jobs of run {} are not the plan that it began with", run.id));
                }
            }
        }
        if broken.is_empty() {
            return Ok(());
        }
        Err(damaged(format!("{}: {}", self.path.display(), broken.join("; "))))
    }

    async fn fingerprint(&self, run: &RunRow) -> Result<Fingerprint, Error> {
        let (mut fingerprint, mut next) = (Fingerprinter::new(&run.plan), 0);
        loop {
            let rows = self.ledger(run.id, next).await?;
            let Some(last) = rows.last() else { return Ok(fingerprint.finish()) };
            next = last.number + 1;
            for LedgerRow { job, .. } in &rows {
                fingerprint.add_encoded(job.class, job.bound1, &job.prefixes);
            }
        }
    }

    /// Looks whether the file is sound as SQLite sees it, but for the order of its indexes; some seconds for a million
    /// jobs.
    pub async fn glance(&self) -> Result<(), Error> {
        match rules::unsound(&self.db).await {
            Ok(None) => Ok(()),
            Ok(Some(finding)) => Err(damaged(format!("{}: {finding}", self.path.display()))),
            Err(error) => Err(self.explain(error.into())),
        }
    }

    /// All runs, oldest first.
    pub async fn runs(&self) -> Result<Vec<RunRow>, Error> {
        ledger::runs(&self.db).await.map_err(|error| self.explain(error))
    }

    /// One run.
    pub async fn run(&self, id: RunId) -> Result<RunRow, Error> {
        self.runs().await?.into_iter().find(|run| run.id == id).ok_or_else(|| Refusal::NoRun(id).into())
    }

    /// How far a run is. From a ledger alone its speed can't be told.
    pub async fn progress(&self, run: &RunRow) -> Result<RunProgress, Error> {
        let slots = ledger::slots(&self.db, run.id, run.jobs).await?;
        let (accepted, checks) = ledger::accepted_sums(&self.db).await?.remove(&run.id).unwrap_or_default();
        Ok(RunProgress::of(&Run::new(&run.settings(), run.state, slots, accepted, checks), None))
    }

    /// All workers that ever registered, oldest first.
    pub async fn workers(&self) -> Result<Vec<WorkerRow>, Error> {
        ledger::worker_rows(&self.db).await
    }

    /// What some jobs are, and the most that each can count; those that do not exist are left out.
    pub(crate) async fn jobs(
        &self,
        ids: impl Iterator<Item = JobId>,
    ) -> Result<HashMap<JobId, EncodedJob>, Error> {
        ledger::encoded_jobs(&self.db, ids).await.map_err(|error| self.explain(error))
    }

    /// Up to 10,000 jobs of a run from number `first` on, with their accepted results; empty past the last.
    pub async fn ledger(&self, run: RunId, first: u32) -> Result<Vec<LedgerRow>, Error> {
        ledger::rows(&self.db, run, first).await.map_err(|error| self.explain(error))
    }

    /// The results of some jobs of a run that don't stand, by job and in the order of their commits.
    pub async fn others(&self, run: RunId, jobs: Range<u32>) -> Result<Vec<OtherResult>, Error> {
        ledger::others(&self.db, run, jobs).await.map_err(|error| self.explain(error))
    }
}
