//! `nqueens backup`: a copy of a database.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use nqueens_coordinator::backup;

use crate::output::{print_line, thousands};
use crate::runtime::block_on;

/// Copies a database and checks the copy; a coordinator may be using the database.
///
/// The copy is a consistent snapshot. It gets its name once it is complete, checked and on the disk, and never replaces a
/// file. To restore it, start a coordinator on it; docs/cluster.md says what happens to the leases.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens backup --db queens.db /backup/queens-monday.db")]
pub(crate) struct BackupCommand {
    /// Path of the copy, which must not exist
    to: PathBuf,

    /// Database file; a coordinator may be using it
    #[arg(long, value_name = "PATH")]
    db: PathBuf,
}

impl BackupCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let runs = block_on(async { Ok(backup(&self.db, &self.to).await?) })?;
        let bytes = self.to.metadata().context("reading the size of the copy")?.len();
        let (from, to) = (self.db.display(), self.to.display());
        print_line(format_args!("{to}: a checked copy of {from}, {} bytes", thousands(bytes)))?;
        for (run, done) in runs {
            let (subject, state) = (run.plan.subject(), run.state.name());
            let (done, jobs) = (thousands(done), thousands(run.jobs));
            print_line(format_args!("run {}: {subject}, {state}, {done} of {jobs} jobs done", run.id))?;
        }
        Ok(())
    }
}
