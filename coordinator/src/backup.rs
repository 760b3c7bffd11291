//! A copy of a ledger, taken while a coordinator may be writing to it.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use nqueens_ledger::Error::{BackupExists, CantOpen, Damaged};
use nqueens_ledger::database::{open_readers, options};
use nqueens_ledger::{RunRow, storage_error};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use tempfile::Builder;

use crate::error::Error;
use crate::reader::Reader;

/// Files that SQLite would take for parts of a database of this name.
const BESIDE: [&str; 3] = ["", "-wal", "-journal"];

/// How names of copies in the making end.
const PARTIAL: &str = ".nqueens.partial";

/// A copy in the making that has not changed for this time is what a killed backup left.
const STALE_AFTER: Duration = Duration::from_hours(1);

/// Copies a database as it was at one moment, looks through the copy, and gives it its name only when it is whole and on
/// the disk. Nothing is replaced. Returns the runs in the copy, each with the number of its done jobs.
pub async fn backup(from: &Path, to: &Path) -> Result<Vec<(RunRow, u32)>, Error> {
    for suffix in BESIDE {
        let mut name = to.as_os_str().to_owned();
        name.push(suffix);
        if Path::new(&name).symlink_metadata().is_ok() {
            return Err(BackupExists(name.into()).into());
        }
    }
    let cant_open = |error: std::io::Error| CantOpen(to.to_owned(), error.to_string());
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    remove_stale(folder);
    let mut prefix = to.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    // It goes away by itself if anything fails. Only its owner can read it.
    let copy = Builder::new().prefix(&prefix).suffix(PARTIAL).tempfile_in(folder).map_err(cant_open)?;
    Reader::open(from).await?.close().await;
    write(from, copy.path()).await.map_err(|error| match storage_error(to, error) {
        // Of what stands in the file, it is the source that is to blame.
        Damaged(_) => Damaged(format!("{} can't be read to its end", from.display())),
        other => other,
    })?;
    let runs = look_through(from, copy.path()).await?;
    copy.as_file().sync_all().map_err(cant_open)?;
    copy.persist_noclobber(to).map_err(|failed| match failed.error.kind() {
        std::io::ErrorKind::AlreadyExists => BackupExists(to.to_owned()),
        _ => cant_open(failed.error),
    })?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(cant_open)?;
    Ok(runs)
}

/// Removes what killed backups left. What can't be removed stays.
fn remove_stale(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let changed = entry.metadata().and_then(|file| file.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default();
        if age > STALE_AFTER && entry.file_name().to_string_lossy().ends_with(PARTIAL) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// One read transaction on the one side, a new file on the other.
async fn write(from: &Path, to: &Path) -> sqlx::Result<()> {
    let mut source = SqliteConnection::connect_with(&options(from)).await?;
    let copied = sqlx::query("VACUUM INTO ?").bind(to.to_string_lossy()).execute(&mut source).await;
    source.close().await?;
    copied.map(drop)
}

async fn look_through(from: &Path, copy: &Path) -> Result<Vec<(RunRow, u32)>, Error> {
    // What is wrong with the copy is wrong with the source: that is the one to name.
    let reader = Reader::new(from, open_readers(copy).await?);
    reader.examine().await?;
    let runs = reader.runs().await?;
    let progress = reader.progress(&runs).await?;
    reader.close().await;
    Ok(runs.into_iter().zip(progress).map(|(run, progress)| (run, progress.sums.done)).collect())
}
