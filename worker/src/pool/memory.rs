//! Memory that threads take beside their tables for the largest boards: no more together than there is.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tracing::warn;

/// Gives threads their parts.
pub(super) struct MemoryGate {
    most: u64,
    /// Who waits; the others wait behind it, so that a large piece gets its turn.
    turn: Mutex<()>,
    held: Mutex<u64>,
    released: Condvar,
}

/// A thread's part, until it is dropped.
pub(super) struct Held<'a> {
    gate: &'a MemoryGate,
    bytes: u64,
}

impl MemoryGate {
    pub(super) fn new(most: u64) -> Self {
        Self { most, turn: Mutex::default(), held: Mutex::default(), released: Condvar::new() }
    }

    /// Waits until there is so much, or nobody else has any: a piece that needs more than there is is tried alone.
    pub(super) fn hold(&self, bytes: u64) -> Held<'_> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = self.held();
        while *held > 0 && *held + bytes > self.most {
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        if bytes > self.most {
            let [bytes, most] = [bytes, self.most].map(|bytes| bytes >> 20);
            warn!("a job may take {bytes} MiB, and the system leaves this worker {most} MiB: it may kill it");
        }
        *held += bytes;
        Held { gate: self, bytes }
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.gate.held() -= self.bytes;
        self.gate.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_never_hold_more_than_there_is_unless_alone() {
        let gate = MemoryGate::new(100);
        let seen = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for bytes in [60, 30, 70, 150, 40, 20, 99, 1] {
                let (gate, seen) = (&gate, &seen);
                scope.spawn(move || {
                    for _ in 0..200 {
                        let _held = gate.hold(bytes);
                        seen.lock().unwrap().push((bytes, *gate.held()));
                    }
                });
            }
        });
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen.len(), 8 * 200);
        assert!(seen.iter().all(|(bytes, held)| *held <= 100 || held == bytes), "{seen:?}");
        assert_eq!(*gate.held(), 0);
    }
}
