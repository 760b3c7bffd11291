//! The folder of a fleet.
//!
//! ```text
//! DIR/state.json   what the fleet knows; replaced as a whole
//! DIR/state.lock   held while the state is read and replaced
//! DIR/fleet.lock   held by the process that submits and stops; one at a time
//! DIR/logs/        a log for each allocation
//! DIR/spool/       a spool for each allocation
//! ```

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::UnixSeconds;
use crate::state::{AllocationId, FleetState};

/// Attempts to lead a fleet, and the time between two.
const LEAD_TRIES: u32 = 5;
const LEAD_PAUSE: Duration = Duration::from_millis(50);

/// Why a folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is no fleet.
    #[error(
        "there is no fleet in {0}; 'nqueens fleet slurm --help' tells how to start one, --dir where it is"
    )]
    Missing(PathBuf),
    /// Another process leads this fleet.
    #[error("another process leads the fleet in {0}")]
    InUse(PathBuf),
    /// The state is damaged, or of a later version.
    #[error("can't read {path}: {problem}")]
    Damaged {
        /// The state's file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Unusable {
        /// Which one.
        path: PathBuf,
        /// In the system's words.
        source: io::Error,
    },
}

/// What `state.json` holds: `settings` are what the fleet was started with, in the form of their owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetFile<Settings> {
    /// How to go on with this fleet.
    pub settings: Settings,
    /// What it knows.
    pub state: FleetState,
}

/// The folder of a fleet.
#[derive(Clone, Debug)]
pub struct FleetFolder(PathBuf);

/// While it lives, this process leads the fleet.
#[derive(Debug)]
pub struct Lead(#[expect(dead_code, reason = "the lock ends with it")] File);

impl FleetFolder {
    /// The folder of a fleet, made if need be. Returns whether it is new.
    pub fn create(path: &Path) -> Result<(Self, bool), FolderError> {
        let unusable = |source| FolderError::Unusable { path: path.to_owned(), source };
        let is_new = !path.exists();
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        ["logs", "spool"].iter().try_for_each(|name| folders.create(path.join(name))).map_err(unusable)?;
        Ok((Self(path.canonicalize().map_err(unusable)?), is_new))
    }

    /// The folder of a fleet that was started before.
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let folder = path.canonicalize().map_err(|_| FolderError::Missing(path.to_owned()))?;
        if folder.join("state.json").exists() {
            Ok(Self(folder))
        } else {
            Err(FolderError::Missing(path.to_owned()))
        }
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where an allocation writes its log.
    pub fn log(&self, id: &AllocationId) -> PathBuf {
        self.0.join("logs").join(format!("{id}.log"))
    }

    /// Leads the fleet, unless another process does.
    pub fn lead(&self) -> Result<Lead, FolderError> {
        let lock = self.lock_file("fleet.lock")?;
        for _ in 0..LEAD_TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(Lead(lock)),
                // It may be a look at the lock: see below.
                Err(TryLockError::WouldBlock) => thread::sleep(LEAD_PAUSE),
                Err(TryLockError::Error(source)) => return Err(self.unusable("fleet.lock", source)),
            }
        }
        Err(FolderError::InUse(self.0.clone()))
    }

    /// Whether a process leads the fleet.
    pub fn is_led(&self) -> Result<bool, FolderError> {
        match self.lock_file("fleet.lock")?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(self.unusable("fleet.lock", source)),
        }
    }

    /// The state, if there is one.
    pub fn read<Settings: for<'a> Deserialize<'a>>(
        &self,
    ) -> Result<Option<FleetFile<Settings>>, FolderError> {
        let text = match fs::read_to_string(self.0.join("state.json")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| self.unusable("state.json", source))?,
        };
        let file = serde_json::from_str(&text);
        let problem = |error: serde_json::Error| error.to_string();
        file.map(Some).map_err(|error| FolderError::Damaged {
            path: self.0.join("state.json"),
            problem: problem(error),
        })
    }

    /// Reads the state, changes it and replaces it; no other process does so at the same time.
    pub fn change<Settings, T>(
        &self,
        change: impl FnOnce(&mut FleetFile<Settings>) -> T,
    ) -> Result<T, FolderError>
    where
        Settings: Serialize + for<'a> Deserialize<'a> + Clone + PartialEq,
    {
        let lock = self.lock_file("state.lock")?;
        lock.lock().map_err(|source| self.unusable("state.lock", source))?;
        let mut file = self.read()?.ok_or_else(|| FolderError::Missing(self.0.clone()))?;
        let before = file.clone();
        let answer = change(&mut file);
        if file != before {
            self.replace(&file)?;
        }
        Ok(answer)
    }

    /// Begins a life of the fleet with these settings: as the last one left it, or, if nothing is known of that, so that
    /// nothing is submitted twice.
    pub fn begin<Settings>(
        &self,
        settings: Settings,
        is_new: bool,
        now: UnixSeconds,
    ) -> Result<(), FolderError>
    where
        Settings: Serialize + for<'a> Deserialize<'a>,
    {
        let lock = self.lock_file("state.lock")?;
        lock.lock().map_err(|source| self.unusable("state.lock", source))?;
        let mut state = match self.read::<serde_json::Value>()? {
            Some(file) => file.state,
            None if is_new => FleetState::default(),
            None => FleetState::recovered(now),
        };
        state.stopping = None;
        self.replace(&FleetFile { settings, state })
    }

    fn replace<Settings: Serialize>(&self, file: &FleetFile<Settings>) -> Result<(), FolderError> {
        let path = self.0.join("state.json");
        let unusable = |source| FolderError::Unusable { path: path.clone(), source };
        let text = serde_json::to_string_pretty(file).map_err(|error| unusable(error.into()))?;
        let mut temporary = tempfile::NamedTempFile::new_in(&self.0).map_err(unusable)?;
        temporary.write_all(text.as_bytes()).map_err(unusable)?;
        // A power cut leaves the old state or the new one.
        temporary.as_file().sync_all().map_err(unusable)?;
        temporary.persist(&path).map_err(|error| unusable(error.error))?;
        Ok(())
    }

    fn lock_file(&self, name: &str) -> Result<File, FolderError> {
        let options = File::options().create(true).truncate(false).write(true).mode(0o600).clone();
        options.open(self.0.join(name)).map_err(|source| self.unusable(name, source))
    }

    fn unusable(&self, name: &str, source: io::Error) -> FolderError {
        FolderError::Unusable { path: self.0.join(name), source }
    }
}
