//! The lock on a database: one process at a time writes to it, whatever path leads there.
//!
//! | lock | against |
//! |---|---|
//! | of the database file | a second process, also by a symbolic link, a hard link or another mount |
//! | of its log (`-wal`) | a second process on a file that was moved over the database: it would play back the log of the first |
//!
//! Both are `flock`s, which the system drops when a process dies. SQLite's own locks are of another kind (`fcntl`). On a
//! local file system of Linux, the two kinds do not meet. But whenever a process closes a handle of a file, it loses
//! its `fcntl` locks there: so the handle of the database is closed only after SQLite's.
//!
//! A network file system makes of a `flock` an `fcntl` lock of the whole file, which would keep SQLite out of its own
//! database. There only the log is locked, which SQLite never locks.

use std::fs::{File, Metadata, TryLockError};
use std::io::{self, ErrorKind};
use std::mem::ManuallyDrop;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::statfs;
use rustix::process::geteuid;
use tokio::task::spawn_blocking;

use crate::error::Error;

/// Types of file systems that pass `flock` on to a server as an `fcntl` lock, as statfs(2) numbers them: NFS, SMB (three
/// versions), Lustre.
const NETWORK: [u32; 5] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0bd0_0bd0];

/// A database that this process alone writes, until [`release`](Self::release) or its end.
pub struct Lock {
    path: PathBuf,
    /// Never closed by accident: connections on threads of their own may outlive what holds this lock.
    file: ManuallyDrop<File>,
    /// Where SQLite keeps the log: beside the file that a symbolic link leads to.
    log_path: PathBuf,
    log: Option<Arc<File>>,
}

impl Lock {
    /// Locks a database file, created if need be, which SQLite has not opened yet.
    pub fn take(path: &Path) -> Result<Self, Error> {
        refuse_special(path)?;
        let cant_open = |error: io::Error| Error::CantOpen(path.to_owned(), error.to_string());
        let options = File::options().create(true).truncate(false).read(true).write(true).mode(0o600).clone();
        let file = ManuallyDrop::new(options.open(path).map_err(cant_open)?);
        refuse_foreign(path, &file.metadata().map_err(cant_open)?)?;
        if !is_remote(path) {
            lock(&file, path)?;
        }
        let mut log_path = path.canonicalize().map_err(cant_open)?.into_os_string();
        log_path.push("-wal");
        let lock = Self { path: path.to_owned(), file, log_path: log_path.into(), log: None };
        if lock.log_path.exists() {
            // SQLite may replace what a crash has left; what it takes is locked later.
            drop(lock.open_log()?);
        }
        Ok(lock)
    }

    /// Locks the log, which SQLite has opened by now, too.
    pub fn take_log(&mut self) -> Result<(), Error> {
        self.log = Some(Arc::new(self.open_log()?));
        Ok(())
    }

    fn open_log(&self) -> Result<File, Error> {
        let cant_open = |error: io::Error| Error::CantOpen(self.log_path.clone(), error.to_string());
        let log = File::options().read(true).write(true).open(&self.log_path).map_err(cant_open)?;
        lock(&log, &self.path)?;
        Ok(log)
    }

    pub fn is_empty(&self) -> Result<bool, Error> {
        let metadata = self.file.metadata();
        Ok(metadata.map_err(|error| Error::CantOpen(self.path.clone(), error.to_string()))?.len() == 0)
    }

    /// Makes sure that the path still leads to the file that is locked.
    pub fn check(&self) -> Result<(), Error> {
        match leads_to(&self.path, &self.file) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::Replaced(self.path.clone())),
            Err(error) => Err(Error::CantOpen(self.path.clone(), error.to_string())),
        }
    }

    /// Whether the log that is locked is still in its place.
    pub fn owns_log(&self) -> bool {
        self.log.as_ref().is_some_and(|log| leads_to(&self.log_path, log).unwrap_or(false))
    }

    /// Brings the log to the disk. No handle of it is closed.
    pub async fn sync_log(&self) -> Result<(), Error> {
        let Some(log) = self.log.clone() else { return Ok(()) };
        let synced = spawn_blocking(move || log.sync_data()).await.unwrap_or_else(|panic| Err(panic.into()));
        synced.map_err(|error| Error::DiskFailed(self.path.clone(), error.to_string()))
    }

    pub fn release(self) {
        drop(ManuallyDrop::into_inner(self.file));
    }
}

fn lock(file: &File, database: &Path) -> Result<(), Error> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => Error::InUse(database.to_owned()),
        TryLockError::Error(error) => Error::CantOpen(database.to_owned(), error.to_string()),
    })
}

fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let inode = |metadata: Metadata| (metadata.dev(), metadata.ino());
    match path.metadata() {
        Ok(there) => Ok(inode(there) == inode(file.metadata()?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether another machine has a file's disk; one that does not tell is taken for local.
fn is_remote(path: &Path) -> bool {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "these numbers have 32 bits")]
    statfs(path).is_ok_and(|disk| NETWORK.contains(&(disk.f_type as u32)))
}

const ROOT: u32 = 0;

fn is_trusted(owner: u32) -> bool {
    [ROOT, geteuid().as_raw()].contains(&owner)
}

/// Refuses to write to what another account made or can change; root may.
fn refuse_foreign(path: &Path, file: &Metadata) -> Result<(), Error> {
    let problem = if !is_trusted(file.uid()) && !geteuid().is_root() {
        format!("it belongs to user {}, neither to root nor to you", file.uid())
    } else if file.mode() & 0o002 != 0 {
        format!("all users can write it; run 'chmod o-w {}'", path.display())
    } else {
        return Ok(());
    };
    Err(Error::Unsafe(path.to_owned(), problem))
}

/// Refuses what is there and is no file: SQLite would wait for the other end of a FIFO, and read a device for ever. Refuses a
/// link of another account as well: it can lead anywhere.
pub fn refuse_special(path: &Path) -> Result<(), Error> {
    if path.symlink_metadata().is_ok_and(|link| link.is_symlink() && !is_trusted(link.uid())) {
        return Err(Error::Unsafe(path.to_owned(), "it is a link of another account".to_owned()));
    }
    // What can't be looked at does not exist, or can't be opened either.
    let Ok(metadata) = path.metadata() else { return Ok(()) };
    let kind = metadata.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(Error::NotAFile(path.to_owned(), what))
}
