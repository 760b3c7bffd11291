//! SQLite's write-ahead log, as far as needed to cut it: <https://www.sqlite.org/fileformat2.html#walformat>.

use std::path::Path;

/// Bytes before the first frame.
const HEADER: usize = 32;

/// Bytes before the page in a frame.
const FRAME_HEADER: usize = 24;

/// The length of a log at some moment. Its salts change whenever it starts again, after a full checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    salts: [u8; 8],
    frames: u32,
}

impl Mark {
    /// What the index beside a log says, the file `-shm`; `None` while there is none.
    pub(crate) fn read(index: &Path) -> Option<Self> {
        // Two copies of 48 bytes, equal unless somebody is writing just now.
        let read = || std::fs::read(index).ok().filter(|bytes| bytes.len() >= 96);
        let equal =
            std::iter::repeat_with(read).take(100).flatten().find(|bytes| bytes[..48] == bytes[48..96]);
        let bytes = equal?;
        let frames = u32::from_ne_bytes(bytes[16..20].try_into().expect("4 bytes"));
        Some(Self { salts: bytes[32..40].try_into().expect("8 bytes"), frames })
    }
}

/// A log that a coordinator has left behind.
pub(crate) struct Wal {
    bytes: Vec<u8>,
    page: usize,
}

impl Wal {
    /// Takes a file for a log; `None` if there is not even one frame in it.
    pub(crate) fn new(bytes: Vec<u8>) -> Option<Self> {
        let page = bytes.get(8..12)?.try_into().expect("4 bytes");
        let page = u32::from_be_bytes(page) as usize;
        let wal = Self { bytes, page };
        (wal.frames() > 0).then_some(wal)
    }

    pub(crate) fn frames(&self) -> usize {
        (self.bytes.len() - HEADER) / self.frame_bytes()
    }

    /// The log up to this frame, plus this many bytes of it.
    pub(crate) fn cut(&self, frames: usize, more: usize) -> &[u8] {
        let end = HEADER + frames * self.frame_bytes();
        &self.bytes[..(end + more).min(self.bytes.len())]
    }

    /// Whether a transaction ends at this number of frames.
    pub(crate) fn ends_transaction(&self, frames: usize) -> bool {
        let Some(last) = frames.checked_sub(1) else { return true };
        // The size of the database after it, in pages; 0 in all frames but its last.
        self.bytes[HEADER + last * self.frame_bytes()..][4..8] != [0; 4]
    }

    pub(crate) fn frame_bytes(&self) -> usize {
        FRAME_HEADER + self.page
    }

    /// Whether this number of frames is at least the length of the log at that moment.
    pub(crate) fn holds(&self, frames: usize, mark: Mark) -> bool {
        // An earlier log is in the database as a whole.
        mark.salts != self.bytes[16..24] || mark.frames as usize <= frames
    }
}
