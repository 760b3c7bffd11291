//! A run in a database file, opened for reading only.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use nqueens_coordinator::{Reader, RunRow};
use nqueens_model::operator::RunStatus;

use crate::names::RunPrefix;
use crate::target::read;

/// Which run of which database.
#[derive(Clone, Debug, Args)]
pub(crate) struct LedgerSource {
    /// Run id, as listed by 'nqueens status', or its first digits [default: the only run in the database]
    pub(crate) run: Option<RunPrefix>,

    /// Database file; a coordinator may be using it
    #[arg(long, value_name = "PATH")]
    pub(crate) db: PathBuf,
}

impl LedgerSource {
    /// Opens the database, finds the run, looks at it, and lets go of the database.
    pub(crate) async fn read<T>(
        &self,
        look: impl AsyncFnOnce(&Reader, RunRow) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let find_and_look = async |reader: &Reader| {
            let mut runs = self.find(reader).await?;
            if runs.len() > 1 {
                bail!(
                    "there are {} runs in this database; name one of those listed by 'nqueens status'",
                    runs.len()
                );
            }
            let run = runs.pop().context("there is no run in this database")?;
            look(reader, run).await
        };
        read(&self.db, find_and_look).await
    }

    /// The run that was named or, without a name, all that are in the database.
    pub(crate) async fn runs(&self) -> anyhow::Result<Vec<RunStatus>> {
        let all = async |reader: &Reader| {
            let runs = self.find(reader).await?;
            let progress = reader.progress(&runs).await?;
            Ok(progress.into_iter().zip(runs).map(|(progress, run)| progress.status(run)).collect())
        };
        read(&self.db, all).await
    }

    async fn find(&self, reader: &Reader) -> anyhow::Result<Vec<RunRow>> {
        let Some(prefix) = &self.run else { return Ok(reader.runs().await?) };
        let run = match prefix.whole() {
            Some(run) => run,
            None => prefix.choose(reader.runs().await?.iter().map(|run| run.id))?,
        };
        Ok(vec![reader.run(run).await?])
    }
}
