//! The folder of a fleet.
//!
//! ```text
//! DIR/settings.json  how it was started last
//! DIR/state.json     what it knows; replaced as a whole
//! DIR/*.lock         held by the process that leads it, and while the state is read and replaced
//! DIR/worker.sh      what allocations run
//! DIR/logs/          a log for each allocation
//! DIR/ended/         exit code and node of each allocation that has ended
//! DIR/spool/         a spool for each allocation
//! ```

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::backend::CommandBackend;
use crate::decide::FleetLimits;
use crate::look::StateStore;
use crate::script::log;
use crate::state::{AllocationId, FleetState};

/// How a fleet was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSettings {
    pub limits: FleetLimits,
    pub backend: CommandBackend,
}

#[derive(Clone, Debug)]
pub struct FleetFolder(pub PathBuf);

impl FleetFolder {
    /// The folder of a fleet, made if need be.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut folders = DirBuilder::new();
        folders.recursive(true).mode(0o700);
        let made = ["logs", "ended", "spool"].iter().try_for_each(|name| folders.create(path.join(name)));
        let folder = made.and_then(|()| path.canonicalize()).map_err(at(path))?;
        Ok(Self(folder))
    }

    /// The folder of a fleet that was started before.
    pub fn open(path: &Path) -> io::Result<Self> {
        match path.canonicalize() {
            Ok(folder) if folder.join("settings.json").exists() => Ok(Self(folder)),
            _ => Err(io::Error::other(format!(
                "there is no fleet in {}; 'nqueens fleet slurm --help' tells how to start one, --dir where it is",
                path.display()
            ))),
        }
    }

    /// Leads the fleet as long as the lock lives; `None` if another process does.
    pub fn lead(&self) -> io::Result<Option<File>> {
        let lock = self.lock_file("fleet.lock")?;
        for _ in 0..5 {
            if lock.try_lock().is_ok() {
                return Ok(Some(lock));
            }
            // It may be a look by 'fleet status'.
            thread::sleep(Duration::from_millis(50));
        }
        Ok(None)
    }

    pub fn settings(&self) -> io::Result<FleetSettings> {
        self.read("settings.json")
    }

    /// What the fleet knows: nothing if its file is lost.
    pub fn state(&self) -> io::Result<FleetState> {
        match self.read("state.json") {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(FleetState::default()),
            state => state,
        }
    }

    /// Begins a life of the fleet with these settings, as the last one left it.
    pub fn begin(&self, settings: &FleetSettings) -> io::Result<()> {
        replace(&self.0.join("worker.sh"), &settings.backend.worker.script(), 0o600)?;
        replace(&self.0.join("settings.json"), &serde_json::to_string_pretty(settings)?, 0o600)?;
        self.change(FleetState::begin)
    }

    /// Removes what allocations that the state has forgotten have left, but no results that wait to be reported: a worker with
    /// that spool reports them.
    pub fn remove(&self, forgotten: &[AllocationId]) {
        for id in forgotten {
            // What is not there is gone.
            drop(fs::remove_file(log(&self.0, id)));
            drop(fs::remove_file(self.0.join("ended").join(id)));
            let spool = self.0.join("spool").join(id);
            let is_empty = |name| fs::metadata(spool.join(name)).map_or(true, |file| file.len() == 0);
            if is_empty("results") && is_empty("rejected") {
                drop(fs::remove_dir_all(spool));
            }
        }
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> io::Result<T> {
        let path = self.0.join(name);
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        serde_json::from_str(&text).map_err(|error| at(&path)(error.into()))
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        let options = File::options().create(true).truncate(false).write(true).mode(0o600).clone();
        options.open(&path).map_err(at(&path))
    }
}

impl StateStore for FleetFolder {
    /// No other process does so at the same time.
    fn change<T>(&self, change: impl FnOnce(&mut FleetState) -> T) -> io::Result<T> {
        let lock = self.lock_file("state.lock")?;
        lock.lock().map_err(at(&self.0))?;
        let mut state = self.state()?;
        let before = state.clone();
        let answer = change(&mut state);
        if state != before {
            replace(&self.0.join("state.json"), &serde_json::to_string_pretty(&state)?, 0o600)?;
        }
        Ok(answer)
    }
}

/// A power cut leaves the old file or the new one. Whoever reads one bit by bit, as shells do, reads on in the old one. Nobody else
/// can read the new one before it has its mode.
pub fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(text.as_bytes())?;
        temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(at(path))
}

/// An error with the file that it is about.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error + '_ {
    |error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_wait_to_be_reported_stay() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = FleetFolder::create(place.path()).expect("a folder");
        let ids = ["1", "2"].map(AllocationId::from);
        for (id, results) in ids.iter().zip(["", "a result"]) {
            let spool = place.path().join("spool").join(id);
            fs::create_dir_all(&spool).expect("a folder");
            fs::write(spool.join("results"), results).expect("a file");
        }
        folder.remove(&ids);
        assert_eq!(ids.map(|id| place.path().join("spool").join(id).exists()), [false, true]);
    }
}
