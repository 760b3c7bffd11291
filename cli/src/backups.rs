//! Backups that a coordinator makes by itself.

use std::fs::{self, DirBuilder, DirEntry};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use nqueens_coordinator::backup;
use tracing::{error, info};

use crate::time::duration;

/// As many stay.
const KEPT: usize = 3;

#[derive(Clone, Debug, Args)]
pub(crate) struct Backups {
    /// Time between two backups
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m", requires = "backup_dir")]
    backup_every: Duration,

    /// Folder, best on another disk, for checked copies of the database: the last three stay. Each coordinator needs its own
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
}

impl Backups {
    /// Makes the folder, if backups are wanted. Not the folders above it: a disk may not be mounted.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.backup_dir else { return Ok(()) };
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            made => made.with_context(|| format!("the folder for backups, {}", folder.display())),
        }
    }

    /// Copies the database at this interval, if that is wanted. After a start, the first copy waits for its turn, too: who
    /// starts again and again does not lose the older ones.
    pub(crate) async fn make(self, database: PathBuf) {
        let Some(folder) = self.backup_dir else { return };
        let age = |backup: &PathBuf| backup.metadata().ok()?.modified().ok()?.elapsed().ok();
        let newest = backups(&database, &folder).ok().and_then(|backups| age(backups.last()?));
        let mut wait = newest.map_or(Duration::ZERO, |age| self.backup_every.saturating_sub(age));
        loop {
            tokio::time::sleep(wait).await;
            match back_up(&database, &folder).await {
                Ok(made) => info!(backup = %made.display(), "the database is backed up"),
                Err(error) => error!("the database is not backed up: {error:#}"),
            }
            wait = self.backup_every;
        }
    }
}

/// Makes one, then removes those that are too many.
async fn back_up(database: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let to = folder.join(format!("{}{}.db", prefix(database), Timestamp::now().strftime("%Y%m%dT%H%M%SZ")));
    backup(database, &to).await?;
    // Where the clock was set back, the newest is not the last by name.
    let mut others = backups(database, folder)?;
    others.retain(|backup| *backup != to);
    for old in &others[..others.len().saturating_sub(KEPT - 1)] {
        fs::remove_file(old).with_context(|| format!("removing {}", old.display()))?;
    }
    Ok(to)
}

/// How names of backups of this database begin.
fn prefix(database: &Path) -> String {
    format!("{}-", database.file_stem().unwrap_or_default().display())
}

/// The backups of this database in a folder, oldest first. Other files there are nobody's business.
fn backups(database: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = prefix(database);
    let is_backup = |name: &str| {
        let time = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix("Z.db"));
        time.is_some_and(|time| time.len() == 15 && time.chars().all(|c| c.is_ascii_digit() || c == 'T'))
    };
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let named = entries.iter().filter(|entry| entry.file_name().to_str().is_some_and(is_backup));
    let mut backups: Vec<_> = named.map(DirEntry::path).collect();
    backups.sort_unstable();
    Ok(backups)
}
