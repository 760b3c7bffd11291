//! Placements of inner rows as the search finds them, before they are written to lists.

/// Placements of inner rows together with the outer placements they leave standing, as they are found. Each is
/// [`HEAD`](Self::HEAD) words, then the bit vector of what stands.
#[derive(Debug)]
pub(super) struct Runs {
    words: Vec<u64>,
    used: usize,
    /// Placements found, by [`RunHead::key`].
    pub(super) counts: Box<[u32; KEYS]>,
}

/// What a run says beside its bit vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunHead {
    /// Mask of the inner placement.
    pub(super) mask: u64,
    /// Number of the outer placement that bit 0 stands for.
    pub(super) start: u32,
    /// Columns of the row-0 and the row-1 queen: [`key`].
    pub(super) key: u16,
    /// Words of the bit vector, 1..=8.
    pub(super) words: u8,
}

impl RunHead {
    #[inline]
    pub(super) fn write(self, room: &mut [u64; Runs::HEAD + Runs::BODY_MAX]) {
        room[0] = self.mask;
        room[1] = u64::from(self.start) | u64::from(self.key) << 32 | u64::from(self.words) << 48;
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "three packed fields")]
    fn read([mask, packed]: [u64; Runs::HEAD]) -> Self {
        Self { mask, start: packed as u32, key: (packed >> 32) as u16, words: (packed >> 48) as u8 }
    }
}

/// What placements are sorted by: the columns of their row-0 and their row-1 queen.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "two columns")]
pub(super) fn key(first: u32, second: u32) -> u16 {
    debug_assert!(first < 32 && second < 32, "columns");
    (32 * first + second) as u16
}

pub(super) const KEYS: usize = 32 * 32;

impl Runs {
    /// Words of a run before its bit vector.
    pub(super) const HEAD: usize = 2;
    /// The most words of a run's bit vector.
    pub(super) const BODY_MAX: usize = 8;

    pub(super) fn new() -> Self {
        Self { words: Vec::new(), used: 0, counts: Box::new([0; KEYS]) }
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.counts.fill(0);
    }

    /// Where the next run is to be written: its [head](RunHead::write), then its bit vector.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u64; Self::HEAD + Self::BODY_MAX] {
        if self.words.len() < self.used + Self::HEAD + Self::BODY_MAX {
            self.words.resize((2 * self.words.len()).max(1 << 12), 0);
        }
        self.words[self.used..].first_chunk_mut().expect("room for the longest run")
    }

    /// Accepts the run that stands in [`room`](Self::room) and whose bit vector has `placements` bits set.
    #[inline]
    pub(super) fn push(&mut self, head: RunHead, placements: u32) {
        self.used += Self::HEAD + usize::from(head.words);
        self.counts[usize::from(head.key) % KEYS] += placements;
    }

    /// The runs, each with its bit vector.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (RunHead, &[u64])> {
        let mut rest = &self.words[..self.used];
        std::iter::from_fn(move || {
            let (&head, body) = rest.split_first_chunk()?;
            let head = RunHead::read(head);
            let (vector, next) = body.split_at(usize::from(head.words));
            rest = next;
            Some((head, vector))
        })
    }
}
