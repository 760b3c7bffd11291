//! `nqueens backup`: a copy of a database.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_coordinator::backup;

use crate::output::{print_line, thousands};
use crate::runtime::block_on;

/// Copies a database, also while a coordinator writes to it, and looks through the copy.
///
/// The copy is the ledger as it was at one moment. It gets its name only when it is whole, checked and on the disk, and
/// replaces nothing. To restore it, start a coordinator on it; docs/cluster.md says what becomes of the leases.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens backup --db queens.db /backup/queens-monday.db")]
pub(crate) struct Backup {
    /// Where the copy goes; nothing may be there
    to: PathBuf,

    /// Database file; a coordinator may be writing to it
    #[arg(long, value_name = "PATH")]
    db: PathBuf,
}

impl Backup {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let runs = block_on(async { Ok(backup(&self.db, &self.to).await?) })?;
        let bytes = self.to.metadata().context("looking at the copy")?.len();
        let (from, to) = (self.db.display(), self.to.display());
        print_line(format_args!("{to}: a sound copy of {from}, {} bytes", thousands(bytes)))?;
        for (run, done) in runs {
            let (n, state) = (run.plan.n(), run.state.name());
            let (done, jobs) = (thousands(done), thousands(run.jobs));
            print_line(format_args!("run {}: N = {n}, {state}, {done} of {jobs} jobs done", run.id))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
