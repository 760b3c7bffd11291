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
        let reader = Reader::open(&self.db).await?;
        if let Some(run) = self.run {
            let run = reader.run(run).await?;
            return Ok((reader, run));
        }
        let mut runs = reader.runs().await?;
        if runs.len() > 1 {
            bail!(
                "there are {} runs in this database; name one of those listed by 'nqueens status'",
                runs.len()
            );
        }
        let run = runs.pop().context("there is no run in this database")?;
        Ok((reader, run))
    }
}
