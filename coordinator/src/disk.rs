//! Free space on the database's disk. When it is low, no more jobs are leased, and results of leased jobs still fit.

use std::path::{Path, PathBuf};

use nqueens_model::operator::DiskRoom;
use tracing::{info, warn};

use crate::reader::Reader;

pub(crate) struct Disk {
    database: PathBuf,
    reader: Reader,
    reserve: u64,
    /// As last seen; `None` if nothing is to stay free, or the system does not tell.
    room: Option<DiskRoom>,
}

impl Disk {
    /// Looks for the first time.
    pub(crate) async fn new(database: &Path, reader: Reader, reserve: u64) -> Self {
        let mut disk = Self { database: database.to_owned(), reader, reserve, room: None };
        disk.look().await;
        disk
    }

    /// Measures the free space, and logs when it becomes too small or sufficient again.
    pub(crate) async fn look(&mut self) -> Option<DiskRoom> {
        let was_short = self.is_short();
        let free = if self.reserve > 0 { self.free().await } else { None };
        self.room = free.map(|free| {
            // It takes an eighth more to go on, so that it does not flicker.
            let enough = if was_short { self.reserve.saturating_add(self.reserve / 8) } else { self.reserve };
            DiskRoom { free_bytes: free, reserve_bytes: self.reserve, is_short: free < enough }
        });
        let (database, reserve) = (self.database.display(), self.reserve);
        match (was_short, self.is_short()) {
            (false, true) => {
                warn!(%database, free, reserve, "the disk is nearly full: no more jobs are leased");
            }
            (true, false) => info!(%database, free, reserve, "the disk has space again: jobs are leased"),
            _ => {}
        }
        self.room
    }

    /// What may still be written: beside the database, and into it where something was removed. Its log needs room beside
    /// it, so that the latter counts for as much as the former at most.
    async fn free(&self) -> Option<u64> {
        let beside = free(&self.database)?;
        // Where that can't be read, nothing can be written either.
        let within = self.reader.free_bytes().await.unwrap_or(0);
        Some(beside.saturating_add(within.min(beside)))
    }

    pub(crate) fn room(&self) -> Option<DiskRoom> {
        self.room
    }

    fn is_short(&self) -> bool {
        self.room.is_some_and(|room| room.is_short)
    }
}

/// Bytes that this process may still write beside a file.
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
