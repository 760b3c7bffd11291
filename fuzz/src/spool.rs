//! A worker's spool, after a power cut, on a bad disk, or put there by somebody else.

use nqueens_worker::Spool;

/// Whatever the bytes of the file, what is read from them are results, or the file is refused.
pub(crate) fn check(bytes: &[u8]) {
    if let Ok((results, unreadable)) = Spool::read(bytes) {
        assert!(unreadable <= bytes.len());
        assert!(results.len() <= bytes.len() / 9, "a record has nine bytes at least");
    }
}
