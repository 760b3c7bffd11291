//! The folder of a fleet.
//!
//! ```text
//! DIR/state.json   what the fleet knows; replaced as a whole
//! DIR/state.lock   held while the state is read and replaced
//! DIR/fleet.lock   held by the process that submits and stops; one at a time
//! DIR/worker.sh    what allocations run
//! DIR/logs/        a log for each allocation
//! DIR/ended/       exit code and node of each allocation that has ended
//! DIR/spool/       a spool for each allocation
//! ```

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::script::log;
use crate::settings::FleetSettings;
use crate::state::{AllocationId, AllocationState, FleetState};

/// Attempts to lead a fleet, and the time between two.
const LEAD_TRIES: u32 = 5;
const LEAD_PAUSE: Duration = Duration::from_millis(50);

/// What belongs to no allocation that is known may be of one whose submit had no answer, until it is as old as this.
const STRANGE_FOR: Duration = Duration::from_mins(10);

/// Why a folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error(
        "there is no fleet in {0}; 'nqueens fleet slurm --help' tells how to start one, --dir where it is"
    )]
    Missing(PathBuf),
    #[error("another process leads the fleet in {0}")]
    InUse(PathBuf),
    /// The state is damaged, or of a later version.
    #[error("can't read {path}: {problem}")]
    Damaged { path: PathBuf, problem: String },
    #[error("{path}: {source}")]
    Unusable { path: PathBuf, source: io::Error },
}

/// What `state.json` holds: how the fleet was started, and what it knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetFile {
    pub settings: FleetSettings,
    pub state: FleetState,
}

/// What a new life of a fleet keeps of the last one's file, whatever settings that has.
#[derive(Deserialize)]
struct Kept {
    state: FleetState,
}

#[derive(Clone, Debug)]
pub struct FleetFolder(PathBuf);

/// While it lives, this process leads the fleet.
#[derive(Debug)]
pub struct Lead(#[expect(dead_code, reason = "the lock ends with it")] File);

impl FleetFolder {
    /// The folder of a fleet, made if need be.
    pub fn create(path: &Path) -> Result<Self, FolderError> {
        let unusable = |source| FolderError::Unusable { path: path.to_owned(), source };
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        let all = ["logs", "ended", "spool"];
        all.iter().try_for_each(|name| folders.create(path.join(name))).map_err(unusable)?;
        Ok(Self(path.canonicalize().map_err(unusable)?))
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

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn log(&self, id: &AllocationId) -> PathBuf {
        log(&self.0, id)
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

    pub fn is_led(&self) -> Result<bool, FolderError> {
        match self.lock_file("fleet.lock")?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(source)) => Err(self.unusable("fleet.lock", source)),
        }
    }

    pub fn read(&self) -> Result<FleetFile, FolderError> {
        self.parse()
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, FolderError> {
        let path = self.0.join("state.json");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(FolderError::Missing(self.0.clone()));
            }
            text => text.map_err(|source| self.unusable("state.json", source))?,
        };
        serde_json::from_str(&text).map_err(|error| FolderError::Damaged { path, problem: error.to_string() })
    }

    /// Reads the state, changes it and replaces it; no other process does so at the same time.
    pub fn change<T>(&self, change: impl FnOnce(&mut FleetFile) -> T) -> Result<T, FolderError> {
        let _lock = self.lock_state()?;
        let mut file = self.read()?;
        let before = file.clone();
        let answer = change(&mut file);
        if file != before {
            self.replace(&file)?;
        }
        Ok(answer)
    }

    /// Begins a life of the fleet with these settings, as the last one left it.
    pub fn begin(&self, settings: FleetSettings) -> Result<(), FolderError> {
        let _lock = self.lock_state()?;
        let mut state = match self.parse::<Kept>() {
            Err(FolderError::Missing(_)) => FleetState::default(),
            kept => kept?.state,
        };
        (state.stopping, state.look_at) = (None, 0);
        self.replace(&FleetFile { settings, state })
    }

    fn lock_state(&self) -> Result<File, FolderError> {
        let lock = self.lock_file("state.lock")?;
        lock.lock().map_err(|source| self.unusable("state.lock", source))?;
        Ok(lock)
    }

    /// Removes what allocations that have ended leave behind: spools without results, and all of those that the state has
    /// forgotten. Results that are not acknowledged stay as long as something `is_open`.
    pub fn sweep(&self, state: &FleetState, is_open: bool) -> Result<(), FolderError> {
        let known = |name: &str| AllocationId::new(name).and_then(|id| state.allocations.get(&id));
        let has_ended =
            |name: &str| known(name).is_some_and(|a| matches!(a.state, AllocationState::Ended(_)));
        for (part, suffix) in [("spool", ""), ("logs", ".log"), ("ended", "")] {
            let unusable = |source| self.unusable(part, source);
            for entry in fs::read_dir(self.0.join(part)).map_err(unusable)? {
                let path = entry.map_err(unusable)?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let name = name.strip_suffix(suffix).unwrap_or(&name);
                let is_forgotten = known(name).is_none() && age(&path) >= STRANGE_FOR;
                let goes = if part == "spool" {
                    (is_forgotten || has_ended(name)) && (is_empty(&path) || !is_open)
                } else {
                    is_forgotten
                };
                if goes {
                    // One that can't be removed now is tried again.
                    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                }
            }
        }
        Ok(())
    }

    fn replace(&self, file: &FleetFile) -> Result<(), FolderError> {
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

/// The time since a file or folder was changed.
fn age(path: &Path) -> Duration {
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default()
}

fn is_empty(spool: &Path) -> bool {
    ["results", "rejected"]
        .iter()
        .all(|name| fs::metadata(spool.join(name)).map_or(0, |file| file.len()) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Allocation, Ending};

    #[test]
    fn what_ended_allocations_leave_behind_goes_when_its_results_are_acknowledged() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = FleetFolder::create(place.path()).expect("a folder");
        let mut state = FleetState::default();
        for (name, is_ended, results) in
            [("1", true, ""), ("2", true, "r"), ("3", false, ""), ("4", true, ""), ("new", false, "")]
        {
            let id = AllocationId::new(name).expect("a name");
            let spool = place.path().join("spool").join(name);
            fs::create_dir(&spool).expect("a folder");
            fs::write(spool.join("results"), results).expect("a file");
            fs::write(folder.log(&id), "said").expect("a file");
            if name == "4" {
                // Forgotten long ago.
                for path in [spool, folder.log(&id)] {
                    let file = File::open(path).expect("it is there");
                    file.set_modified(SystemTime::now() - 2 * STRANGE_FOR).expect("a time");
                }
            } else if name != "new" {
                let mut allocation = Allocation::queued(0);
                if is_ended {
                    allocation.state = AllocationState::Ended(Ending::Completed);
                }
                state.allocations.insert(id, allocation);
            }
        }
        let left = |part: &str| {
            let names = fs::read_dir(place.path().join(part)).expect("a folder");
            let mut names: Vec<_> = names
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
                .collect();
            names.sort();
            names.join(" ")
        };
        folder.sweep(&state, true).expect("a sweep");
        assert_eq!(left("spool"), "2 3 new", "results that may still be needed stay");
        assert_eq!(left("logs"), "1.log 2.log 3.log new.log", "what is shown has its log");
        folder.sweep(&state, false).expect("a sweep");
        assert_eq!(left("spool"), "3 new");
    }
}
