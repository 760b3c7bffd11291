//! Tables for all threads of a process, each built once, by the first thread that needs it.

use std::sync::{Arc, Mutex, PoisonError};

use super::Tables;
use super::geometry::Geometry;
use crate::board::BoardSize;
use crate::engine::{Control, Stopped};

/// The tables in use, and the memory that they and the threads' lists may take.
#[derive(Debug)]
pub struct SharedTables {
    tables_max: u64,
    lists_max: u64,
    threads: u64,
    /// Latest used last.
    tables: Mutex<Vec<Arc<Tables>>>,
}

impl SharedTables {
    /// No tables yet. All that joins keep in memory will be about `memory_max` bytes or less, if that is possible:
    /// half of it tables, half of it the lists of `threads` threads.
    pub fn new(memory_max: u64, threads: usize) -> Self {
        let (tables_max, threads) = (memory_max / 2, threads.max(1) as u64);
        Self { tables_max, lists_max: tables_max / threads, threads, tables: Mutex::default() }
    }

    /// Bytes for the lists of one thread.
    pub(crate) fn lists_max(&self) -> u64 {
        self.lists_max
    }

    /// Bytes for one thread that counts something else: its lists' and, as long as there are no tables, a part of theirs.
    pub(crate) fn left_for_thread(&self) -> u64 {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.is_empty() { self.lists_max + self.tables_max / self.threads } else { self.lists_max }
    }

    /// The tables of boards of `n`, at least [`Orbits::N_MIN`](super::Orbits::N_MIN). Whoever comes while another
    /// thread builds them waits for it.
    pub(crate) fn get(&self, n: BoardSize, control: &Control) -> Result<Arc<Tables>, Stopped> {
        // Nothing that can panic leaves the list half changed.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tables.iter().position(|table| table.orbits().n() == n);
        let latest = if let Some(at) = at {
            tables.remove(at)
        } else {
            let (_, needed) = Tables::outer_rows(&Geometry::new(n), self.tables_max);
            while !tables.is_empty() && held(&tables) + needed > self.tables_max {
                tables.remove(0);
            }
            let built = Tables::new(n, self.tables_max, control).expect("boards of a plan of half boards");
            Arc::new(built?)
        };
        tables.push(Arc::clone(&latest));
        Ok(latest)
    }
}

fn held(tables: &[Arc<Tables>]) -> u64 {
    tables.iter().map(|table| table.bytes()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_built_once_and_dropped_when_memory_is_short() {
        let control = Control::default();
        let [twelve, fourteen] = [12, 14].map(|n| BoardSize::new(n).unwrap());
        let get = |shared: &SharedTables, n| shared.get(n, &control).unwrap();
        let roomy = SharedTables::new(1 << 30, 2);
        assert_eq!([roomy.lists_max(), roomy.left_for_thread()], [1 << 28, 1 << 29]);
        let first = get(&roomy, twelve);
        assert_eq!(roomy.left_for_thread(), 1 << 28);
        get(&roomy, fourteen);
        assert!(Arc::ptr_eq(&first, &get(&roomy, twelve)));
        let narrow = SharedTables::new(first.bytes() * 2, 1);
        let first = get(&narrow, twelve);
        assert!(Arc::ptr_eq(&first, &get(&narrow, twelve)));
        get(&narrow, fourteen);
        assert!(!Arc::ptr_eq(&first, &get(&narrow, twelve)));
    }

    #[test]
    fn whoever_is_stopped_builds_nothing() {
        let (shared, control) = (SharedTables::new(1 << 30, 1), Control::default());
        let n = BoardSize::new(20).unwrap();
        control.stop();
        assert_eq!(shared.get(n, &control).err(), Some(Stopped));
        assert!(shared.tables.lock().unwrap().is_empty());
    }
}
