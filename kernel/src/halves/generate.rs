//! All placements of a half board on a given column set, as lists ready to be joined: one list for each row-0
//! queen.

use super::geometry::Geometry;
use super::operations::Operations;
use super::outer::{Outer, same_size};
use crate::board::columns_of;

/// Placements of inner rows together with the outer placements they leave standing, as they are found. Each is
/// [`HEAD`](Self::HEAD) words, then the bit vector of what stands.
#[derive(Debug, Default)]
pub(super) struct Runs {
    words: Vec<u64>,
    used: usize,
    /// Placements found, by the column of the row-1 queen.
    pub(super) counts: [u32; 32],
}

/// What a run says beside its bit vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunHead {
    /// Mask of the inner placement.
    pub(super) mask: u64,
    /// Number of the outer placement that bit 0 stands for.
    pub(super) start: u32,
    /// Column of the row-1 queen.
    pub(super) second: u8,
    /// Words of the bit vector, 1..=8.
    pub(super) words: u8,
}

impl Runs {
    /// Words of a run before its bit vector.
    pub(super) const HEAD: usize = 2;
    /// The most words of a run's bit vector.
    pub(super) const BODY_MAX: usize = 8;

    fn clear(&mut self) {
        self.used = 0;
        self.counts = [0; 32];
    }

    /// Appends a run: `write` puts its bit vector to the start of the words it is given and returns the number of
    /// bits set.
    #[inline]
    pub(super) fn push(&mut self, head: RunHead, write: impl FnOnce(&mut [u64; Self::BODY_MAX]) -> u32) {
        if self.words.len() < self.used + Self::HEAD + Self::BODY_MAX {
            self.words.resize((2 * self.words.len()).max(1 << 12), 0);
        }
        let (fields, room) = self.words[self.used..].split_at_mut(Self::HEAD);
        let RunHead { mask, start, second, words } = head;
        fields[0] = mask;
        fields[1] = u64::from(start) | u64::from(second) << 32 | u64::from(words) << 40;
        let placements = write(room.first_chunk_mut().expect("room for the longest run"));
        self.used += Self::HEAD + usize::from(words);
        self.counts[usize::from(second) % 32] += placements;
    }

    /// The runs, each with its bit vector.
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = (RunHead, &[u64])> {
        let mut rest = &self.words[..self.used];
        std::iter::from_fn(move || {
            let (&[mask, packed], body) = rest.split_first_chunk::<{ Self::HEAD }>()?;
            #[expect(clippy::cast_possible_truncation, reason = "three packed fields")]
            let head = RunHead { mask, start: packed as u32, second: (packed >> 32) as u8, words: (packed >> 40) as u8 };
            let (vector, next) = body.split_at(usize::from(head.words));
            rest = next;
            Some((head, vector))
        })
    }
}

/// All placements of a half on a column set that have one and the same row-0 queen, with the bit planes that
/// filters need: "hit by the other half's row-0 queen on column c", "a middle-column queen in a row below j".
///
/// The placements come in groups of whole blocks of 64, filled up by masks of ones, which fit nothing.
#[derive(Debug)]
pub(super) struct RowList {
    /// Column of the row-0 queen.
    pub(super) first: usize,
    pub(super) masks: Vec<u64>,
    /// Where each group begins, in blocks of 64, and the end. Groups are by the column of the row-1 queen, or all
    /// in one, the last.
    pub(super) bounds: [u32; 33],
    grouped: bool,
    planes: Vec<u64>,
    /// The plane of each row-0 queen of the other half.
    conflicts: [Option<u8>; 32],
    /// The plane of each j in 1..; the first is not used.
    early: [Option<u8>; 17],
}

impl RowList {
    /// A list without placements.
    pub(super) fn new() -> Self {
        Self {
            first: 0,
            masks: Vec::new(),
            bounds: [0; 33],
            grouped: false,
            planes: Vec::new(),
            conflicts: [None; 32],
            early: [None; 17],
        }
    }

    /// Whether the groups are by the row-1 queen.
    pub(super) fn is_grouped(&self) -> bool {
        self.grouped
    }

    /// Blocks of 64 placements.
    pub(super) fn blocks(&self) -> usize {
        self.masks.len() / 64
    }

    fn plane(&self, number: u8) -> &[u64] {
        let blocks = self.blocks();
        &self.planes[usize::from(number) * blocks..][..blocks]
    }

    /// Placements hit by the other half's row-0 queen on `column`; all ones where a block is filled up.
    pub(super) fn conflict(&self, column: usize) -> &[u64] {
        self.plane(self.conflicts[column].expect("a column of the other half's row-0 queens"))
    }

    /// Placements with a middle-column queen in a row below `j`; `None` if there can't be any.
    pub(super) fn early(&self, j: u32) -> Option<&[u64]> {
        self.early[j as usize].map(|number| self.plane(number))
    }

    /// Memory that a list of so many placements takes, in bytes, to within a few per cent.
    pub(super) fn bytes_for(placements: u64) -> u64 {
        // A mask and 32 planes at most.
        placements * 8 * 3 / 2
    }
}

/// Makes the lists of one half for one column set after another.
#[derive(Debug, Default)]
pub(super) struct Generator {
    columns: u32,
    sets: Vec<(u32, usize)>,
    runs: Runs,
}

/// What the planes of a list are made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Columns of the other half's row-0 queens.
    pub(super) others: u32,
    /// Whether queens of the middle columns matter.
    pub(super) early: bool,
}

impl Generator {
    /// Turns to another column set.
    pub(super) fn start(&mut self, outer: &Outer, columns: u32) {
        self.columns = columns;
        self.sets.clear();
        let present: Vec<u32> = columns_of(columns).map(|c| 1 << c).collect();
        for choice in same_size((1 << outer.rows) - 1).take_while(|&choice| choice >> present.len() == 0) {
            let choice = u32::try_from(choice).expect("at most 16 columns");
            let set = columns_of(choice).fold(0, |set, i| set | present[usize::from(i)]);
            self.sets.push((set, Outer::rank(set)));
        }
    }

    /// Finds the placements with the row-0 queen on `first`, to be written by [`finish`](Self::finish); returns
    /// their number.
    pub(super) fn find(&mut self, operations: &dyn Operations, outer: &Outer, first: usize) -> u64 {
        self.runs.clear();
        operations.survivors(outer, &self.sets, self.columns, first, &mut self.runs);
        self.runs.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Writes the placements found last to `list`.
    pub(super) fn finish(
        &mut self,
        operations: &dyn Operations,
        geometry: &Geometry,
        outer: &Outer,
        first: usize,
        wanted: Wanted,
        list: &mut RowList,
    ) {
        list.first = first;
        // On small boards the groups would be too small for whole blocks.
        let grouped = geometry.n() >= GROUPED_FROM;
        list.grouped = grouped;
        let mut at = [0; 32];
        let mut end = 0;
        for (second, &count) in self.runs.counts.iter().enumerate() {
            at[second] = end;
            end += count as usize;
            if grouped {
                end = end.next_multiple_of(64);
            }
        }
        list.bounds = std::array::from_fn(|second| match at.get(second) {
            Some(&start) if grouped => narrow(start / 64),
            Some(_) => 0,
            None => narrow(end.div_ceil(64)),
        });
        list.masks.clear();
        list.masks.reserve_exact(end.next_multiple_of(64));
        list.masks.resize(end.next_multiple_of(64), u64::MAX);
        operations.emit(&self.runs, outer.masks(), &mut at, &mut list.masks);
        self.planes(operations, geometry, wanted, list);
    }

    fn planes(&self, operations: &dyn Operations, geometry: &Geometry, wanted: Wanted, list: &mut RowList) {
        let mut bits = Vec::with_capacity(32);
        let number = |bits: &[u64]| Some(u8::try_from(bits.len()).expect("fewer than 64 planes"));
        list.conflicts = [None; 32];
        for column in columns_of(wanted.others).map(usize::from).filter(|&c| c.abs_diff(list.first) > 1) {
            list.conflicts[column] = number(&bits);
            bits.push(geometry.struck(0, column));
        }
        let early_from = bits.len();
        if wanted.early {
            bits.extend(geometry.middle_bits().map(|bit| 1 << bit));
        }
        let binary = geometry.is_odd() && wanted.early;
        let planes = bits.len() + if binary { geometry.lateness() as usize } else { 0 };
        let blocks = list.blocks();
        list.planes.clear();
        list.planes.reserve_exact(planes * blocks);
        list.planes.resize(planes * blocks, 0);
        operations.planes(&list.masks, &bits, &mut list.planes);
        let early_from = if binary { bits.len() } else { early_from };
        if binary {
            let (made, early) = list.planes.split_at_mut(early_from * blocks);
            let rows = &made[made.len() - 4 * blocks..];
            for (j, plane) in (1..).zip(early.chunks_exact_mut(blocks.max(1))) {
                for (block, word) in plane.iter_mut().enumerate() {
                    *word = below(j, std::array::from_fn(|k| rows[k * blocks + block]));
                }
            }
        }
        list.early = std::array::from_fn(|j| {
            let wanted = wanted.early && (1..=geometry.lateness() as usize).contains(&j);
            wanted.then(|| u8::try_from(early_from + j - 1).expect("fewer than 64 planes"))
        });
    }
}

/// Which of 64 numbers in binary, given by their four bit planes, are below `j`.
fn below(j: u32, planes: [u64; 4]) -> u64 {
    (0..4).fold(0, |below, k| if j >> k & 1 == 1 { below | !planes[k] } else { below & !planes[k] })
}

/// From this N on lists are grouped by the row-1 queen.
const GROUPED_FROM: usize = 21;

fn narrow(count: usize) -> u32 {
    u32::try_from(count).expect("a list has fewer than 2^32 blocks")
}
