//! A run in a database file, opened for reading only.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use nqueens_coordinator::{Reader, RunRow};
use nqueens_model::id::RunId;

/// Which run of which database.
#[derive(Clone, Debug, Args)]
pub(crate) struct LedgerSource {
    /// Run id, as listed by 'nqueens status' [default: the only run in the database]
    run: Option<RunId>,

    /// Database file; a coordinator may be using it
    #[arg(long, value_name = "PATH")]
    db: PathBuf,
}

impl LedgerSource {
    /// Opens the database and finds the run.
    pub(crate) async fn open(&self) -> anyhow::Result<(Reader, RunRow)> {
        let (reader, mut runs) = self.open_all().await?;
        if runs.len() > 1 {
            bail!(
                "there are {} runs in this database; name one of those listed by 'nqueens status'",
                runs.len()
            );
        }
        let run = runs.pop().context("there is no run in this database")?;
        Ok((reader, run))
    }

    /// Opens the database and finds the run that was named or, without a name, all of them.
    pub(crate) async fn open_all(&self) -> anyhow::Result<(Reader, Vec<RunRow>)> {
        let reader = Reader::open(&self.db).await?;
        let runs = match self.run {
            Some(run) => vec![reader.run(run).await?],
            None => reader.runs().await?,
        };
        Ok((reader, runs))
    }
}
