//! Results on disk until they are acknowledged, so that they survive the worker's process.
//!
//! ```text
//! DIR/results    results that the coordinator has not acknowledged yet
//! DIR/rejected   results that the coordinator does not know: of another database, set aside for inspection
//! DIR/lock       keeps other processes out
//! ```
//!
//! Only their owner can read these files; a directory or file of another account, and a link, is refused. The first two are sequences of records: length and CRC-32C, four bytes each,
//! little-endian, then a `v1::JobResult` of that length. The checksum covers the length too.
//!
//! `results` grows until everything in it is acknowledged; then it is emptied. A worker that is never idle rewrites
//! it once most of it is acknowledged: the remaining results go into `results.new`, which then replaces `results`.
//! The old file holds all that the new one does, so an interruption at any point is safe. Acknowledged results that
//! are still there are reported again, and the coordinator recognises them.

mod record;
#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use nqueens_model::message::JobResult;
use nqueens_worker_protocol::Write;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use tracing::warn;

use self::record::{Contents, decode, record};

/// What is not acknowledged.
const RESULTS: &str = "results";

/// About to take its place.
const NEW: &str = "results.new";

#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error("another worker uses the spool {0}; give each worker a --spool of its own")]
    InUse(PathBuf),
    #[error("can't use the spool {dir}: {problem}; choose another --spool")]
    Unusable { dir: PathBuf, problem: io::Error },
    #[error(
        "the spool {dir} holds a result that this version can't read ({problem}); start the one that wrote it"
    )]
    Foreign { dir: PathBuf, problem: String },
}

/// A directory that keeps results, of one process at a time.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    results: Mutex<Results>,
    recovered: Vec<JobResult>,
    /// Locked while it is open. A separate file, because `results` is sometimes replaced.
    _lock: File,
}

#[derive(Debug)]
struct Results {
    file: File,
    /// Whether its name is safe too. What is written to a file that a power cut leaves without a name is lost.
    is_named: bool,
}

impl Spool {
    /// Opens a spool, creates it if need be, and reads what an earlier process left in it.
    ///
    /// Damage costs the records that it hit and no others; it is logged.
    pub fn open(dir: &Path) -> Result<Self, SpoolError> {
        let unusable = |problem: io::Error| SpoolError::Unusable { dir: dir.to_owned(), problem };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(unusable)?;
        refuse_foreign(&dir.symlink_metadata().map_err(unusable)?).map_err(unusable)?;
        let lock = open(private().create(true), &dir.join("lock")).map_err(unusable)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SpoolError::InUse(dir.to_owned()),
            TryLockError::Error(error) => unusable(error),
        })?;
        remove(&dir.join(NEW)).map_err(unusable)?;
        let mut file = open(private().read(true).create(true), &dir.join(RESULTS)).map_err(unusable)?;
        sync_directory(dir).map_err(unusable)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unusable)?;
        let contents = Contents::read(&bytes);
        let recovered = results(&contents);
        let recovered = recovered.map_err(|problem| SpoolError::Foreign { dir: dir.to_owned(), problem })?;
        if contents.unreadable > 0 {
            warn!(
                spool = %dir.display(),
                bytes = contents.unreadable,
                results = recovered.len(),
                "part of the spool is torn or damaged: its jobs will be counted again, the other results are kept"
            );
            file.set_len(contents.end as u64).map_err(unusable)?;
        }
        let results = Mutex::new(Results { file, is_named: true });
        Ok(Self { dir: dir.to_owned(), results, recovered, _lock: lock })
    }

    /// The results in the bytes of a spool's file, and how many bytes are torn or damaged; or why a result that is
    /// undamaged can't be understood.
    pub fn read(bytes: &[u8]) -> Result<(Vec<JobResult>, usize), String> {
        let contents = Contents::read(bytes);
        Ok((results(&contents)?, contents.unreadable))
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What an earlier process left; the first call takes it.
    pub(crate) fn take_recovered(&mut self) -> Vec<JobResult> {
        std::mem::take(&mut self.recovered)
    }

    /// Makes a change; it is safe when this returns.
    pub(crate) fn write(&self, change: &Write) -> io::Result<()> {
        match change {
            Write::Append(results) => self.append(results),
            Write::Clear => self.results().file.set_len(0),
            Write::Rewrite(results) => self.rewrite(results),
            Write::Reject(results) => self.reject(results),
        }
    }

    fn append(&self, results: &[JobResult]) -> io::Result<()> {
        let mut current = self.results();
        current.secure_name(&self.dir)?;
        append(&current.file, results)
    }

    fn rewrite(&self, results: &[JobResult]) -> io::Result<()> {
        let mut current = self.results();
        let new = self.dir.join(NEW);
        remove(&new)?;
        let file = open(private().create_new(true), &new)?;
        let replaced = append(&file, results).and_then(|()| std::fs::rename(&new, self.dir.join(RESULTS)));
        if replaced.is_err() {
            // Where this fails too, the next try or the next start removes it.
            let _ = remove(&new);
        }
        replaced?;
        *current = Results { file, is_named: false };
        current.secure_name(&self.dir)
    }

    fn reject(&self, results: &[JobResult]) -> io::Result<()> {
        let file = open(private().create(true), &self.dir.join("rejected"))?;
        append(&file, results)?;
        sync_directory(&self.dir)
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        self.results.lock().expect("nobody panics while writing")
    }
}

impl Results {
    fn secure_name(&mut self, dir: &Path) -> io::Result<()> {
        if !self.is_named {
            sync_directory(dir)?;
            self.is_named = true;
        }
        Ok(())
    }
}

fn results(contents: &Contents<'_>) -> Result<Vec<JobResult>, String> {
    contents.payloads.iter().map(|payload| decode(payload)).collect()
}

/// To append to a file; one that is created is its owner's alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    options
}

/// Opens a file of ours. Another account may have put a link in its place, so that we write to a file of ours elsewhere.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let told = |problem: String| io::Error::other(format!("{}: {problem}", path.display()));
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag of open(2)");
    let file = options.custom_flags(no_follow).open(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => told("it is a symbolic link".to_owned()),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    refuse_foreign(&metadata).map_err(|error| told(error.to_string()))?;
    if metadata.nlink() > 1 {
        return Err(told("it has several names".to_owned()));
    }
    Ok(file)
}

/// Refuses what belongs to another account, or what others can write.
fn refuse_foreign(metadata: &Metadata) -> io::Result<()> {
    let own = geteuid().as_raw();
    if metadata.is_symlink() {
        Err(io::Error::other("it is a symbolic link"))
    } else if metadata.uid() != own {
        Err(io::Error::other(format!("it belongs to user {}, not to user {own}", metadata.uid())))
    } else if metadata.mode() & 0o002 != 0 {
        Err(io::Error::other("all users can write it"))
    } else {
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes the names in a directory safe.
fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn append(mut file: &File, results: &[JobResult]) -> io::Result<()> {
    let records: Vec<u8> = results.iter().flat_map(record).collect();
    let length = file.metadata()?.len();
    let written = file.write_all(&records).and_then(|()| file.sync_data());
    if written.is_err() {
        // What stays behind if this fails too is found damaged, or reported twice; either does no harm.
        let _ = file.set_len(length);
    }
    written
}
