//! All placements of a half board on a given column set, as lists ready to be joined: one list for each row-0
//! queen.
//!
//! The outer rows come from the [table](super::outer); each placement of the inner rows, found by search, leaves
//! some of a set's outer placements standing. These are found and counted first, and written in a second pass,
//! each to its list and group.

use std::ops::Range;

use super::geometry::Geometry;
use super::operations::{Mask, Operations};
use super::outer::{Outer, same_size};
use super::progress::JoinProgress;
use super::runs::{KEYS, Runs};
use crate::board::columns_of;
use crate::engine::Stopped;

/// Sets of outer columns between two looks at the stop flag: on the largest boards a set takes a millisecond.
const SETS_AT_ONCE: usize = 64;

/// All placements of a half on a column set with some of the possible row-0 queens, and the bit planes that
/// filters need: "hit by the other half's row-0 queen on column c", "a middle-column queen in a row below j".
///
/// The placements come in groups of whole blocks of 64, filled up by masks of ones, which fit nothing.
#[derive(Debug)]
pub(super) struct Lists {
    /// Blocks of 64 placements in use; the buffers may be longer.
    blocks: usize,
    masks: Vec<u64>,
    /// The masks without what row-0 queens alone tell, if these are wanted: [`Geometry::beyond_first_queens`].
    short: Option<Vec<u32>>,
    rows: Vec<RowPlacements>,
    planes: Vec<u64>,
    /// The plane of each row-0 queen of the other half.
    conflicts: [Option<u8>; 32],
    /// The plane of each j in 1..; the first is not used.
    early: [Option<u8>; 17],
    grouped: bool,
}

/// The placements with one row-0 queen.
#[derive(Clone, Copy, Debug)]
struct RowPlacements {
    first: usize,
    /// Where each group begins, in blocks of 64, and the end. Groups are by the column of the row-1 queen, or all
    /// in one, the last.
    bounds: [usize; 33],
}

/// The placements of a half on a column set that have one and the same row-0 queen.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowList<'a> {
    lists: &'a Lists,
    row: &'a RowPlacements,
}

impl Lists {
    pub(super) fn new() -> Self {
        Self {
            blocks: 0,
            masks: Vec::new(),
            short: None,
            rows: Vec::new(),
            planes: Vec::new(),
            conflicts: [None; 32],
            early: [None; 17],
            grouped: false,
        }
    }

    /// The lists that are not empty, one for each row-0 queen.
    pub(super) fn rows(&self) -> impl Iterator<Item = RowList<'_>> {
        self.rows.iter().map(|row| RowList { lists: self, row })
    }

    /// Memory that lists of so many placements take, in bytes, to within a few per cent.
    pub(super) fn bytes_for(placements: u64) -> u64 {
        // A mask and 32 planes at most.
        placements * 8 * 3 / 2
    }

    fn plane(&self, number: u8) -> &[u64] {
        &self.planes[usize::from(number) * self.blocks..][..self.blocks]
    }
}

impl<'a> RowList<'a> {
    /// Column of the row-0 queen.
    pub(super) fn first(self) -> usize {
        self.row.first
    }

    /// Whether the groups are by the row-1 queen.
    pub(super) fn is_grouped(self) -> bool {
        self.lists.grouped
    }

    /// Blocks of 64 placements.
    pub(super) fn blocks(self) -> usize {
        self.row.bounds[32] - self.row.bounds[0]
    }

    /// The blocks of one group.
    pub(super) fn group(self, group: usize) -> Range<usize> {
        self.row.bounds[group] - self.row.bounds[0]..self.row.bounds[group + 1] - self.row.bounds[0]
    }

    /// The masks of all placements.
    pub(super) fn masks(self) -> &'a [u64] {
        &self.lists.masks[64 * self.row.bounds[0]..64 * self.row.bounds[32]]
    }

    /// The same, short, without the diagonals on which row-0 queens alone decide; if the lists have them.
    pub(super) fn short_masks(self) -> Option<&'a [u32]> {
        let masks = self.lists.short.as_ref()?;
        Some(&masks[64 * self.row.bounds[0]..64 * self.row.bounds[32]])
    }

    /// Placements hit by the other half's row-0 queen on `column`; all ones where a block is filled up.
    pub(super) fn conflict(self, column: usize) -> &'a [u64] {
        self.plane(self.lists.conflicts[column].expect("a column of the other half's row-0 queens"))
    }

    /// Placements with a middle-column queen in a row below `j`; `None` if there can't be any.
    pub(super) fn early(self, j: u32) -> Option<&'a [u64]> {
        self.lists.early[j as usize].map(|number| self.plane(number))
    }

    fn plane(self, number: u8) -> &'a [u64] {
        &self.lists.plane(number)[self.row.bounds[0]..self.row.bounds[32]]
    }
}

/// Makes the lists of one half for one column set after another.
#[derive(Debug)]
pub(super) struct Generator {
    columns: u32,
    sets: Vec<(u32, usize)>,
    runs: Runs,
}

/// What lists are made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Whether to group them by the row-1 queen.
    pub(super) grouped: bool,
    /// Whether to make short masks.
    pub(super) short: bool,
    /// Columns of the other half's row-0 queens.
    pub(super) others: u32,
    /// Whether queens of the middle columns matter.
    pub(super) early: bool,
}

impl Generator {
    pub(super) fn new() -> Self {
        Self { columns: 0, sets: Vec::new(), runs: Runs::new() }
    }

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

    /// Finds the placements with the queens of row 0 and row 1 on some of `queens`, to be written by
    /// [`finish`](Self::finish); returns their number.
    pub(super) fn find(
        &mut self,
        operations: &dyn Operations,
        outer: &Outer,
        queens: [u32; 2],
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
        self.runs.clear();
        for sets in self.sets.chunks(SETS_AT_ONCE) {
            operations.survivors(outer, sets, self.columns, queens, &mut self.runs);
            progress.report()?;
        }
        Ok(self.runs.counts.iter().map(|&count| u64::from(count)).sum())
    }

    /// Writes the placements found last to `lists`, which are emptied before.
    pub(super) fn finish(
        &mut self,
        operations: &dyn Operations,
        geometry: &Geometry,
        outer: &Outer,
        wanted: Wanted,
        lists: &mut Lists,
    ) {
        lists.grouped = wanted.grouped;
        lists.rows.clear();
        let mut at = [0; KEYS];
        let mut end = 0;
        for (first, counts) in self.runs.counts.as_chunks::<32>().0.iter().enumerate() {
            if *counts == [0; 32] {
                continue;
            }
            let mut bounds = [end / 64; 33];
            for (second, &count) in counts.iter().enumerate() {
                at[32 * first + second] = end;
                end += count as usize;
                if lists.grouped {
                    end = end.next_multiple_of(64);
                    bounds[second + 1] = end / 64;
                }
            }
            end = end.next_multiple_of(64);
            bounds[32] = end / 64;
            lists.rows.push(RowPlacements { first, bounds });
        }
        lists.blocks = end / 64;
        grow(&mut lists.masks, end);
        operations.emit(&self.runs, outer.masks(), &mut at, &mut lists.masks[..end]);
        for row in &lists.rows {
            for group in if lists.grouped { 0..32 } else { 31..32 } {
                lists.masks[at[32 * row.first + group]..64 * row.bounds[group + 1]].fill(u64::MAX);
            }
        }
        make_planes(operations, geometry, wanted, lists);
        if wanted.short {
            let short = lists.short.get_or_insert_default();
            grow(short, end);
            operations.squeeze(&lists.masks[..end], geometry.beyond_first_queens(), short);
        } else {
            lists.short = None;
        }
    }
}

fn make_planes(operations: &dyn Operations, geometry: &Geometry, wanted: Wanted, lists: &mut Lists) {
    let mut bits = Vec::with_capacity(32);
    let number = |bits: &[u64]| Some(u8::try_from(bits.len()).expect("fewer than 64 planes"));
    lists.conflicts = [None; 32];
    for column in columns_of(wanted.others).map(usize::from) {
        lists.conflicts[column] = number(&bits);
        bits.push(geometry.struck(0, column));
    }
    let mut early_from = bits.len();
    if wanted.early {
        bits.extend(geometry.middle_bits().map(|bit| 1 << bit));
    }
    let lateness = geometry.lateness();
    let binary = geometry.is_odd() && wanted.early;
    let planes = bits.len() + if binary { lateness as usize } else { 0 };
    let blocks = lists.blocks;
    grow(&mut lists.planes, planes * blocks);
    operations.planes(&lists.masks[..64 * blocks], &bits, &mut lists.planes);
    if binary {
        let (made, early) = lists.planes[..planes * blocks].split_at_mut(bits.len() * blocks);
        let rows = &made[early_from * blocks..];
        for (j, plane) in (1..).zip(early.chunks_exact_mut(blocks.max(1))) {
            for (block, word) in plane.iter_mut().enumerate() {
                *word = below(j, std::array::from_fn(|k| rows[k * blocks + block]));
            }
        }
        early_from = bits.len();
    }
    lists.early = std::array::from_fn(|j| {
        let wanted = wanted.early && (1..=lateness as usize).contains(&j);
        wanted.then(|| u8::try_from(early_from + j - 1).expect("fewer than 64 planes"))
    });
}

/// Makes a buffer at least `len` long, and not much longer.
fn grow<M: Mask>(buffer: &mut Vec<M>, len: usize) {
    if buffer.len() < len {
        buffer.clear();
        buffer.reserve_exact(len);
        buffer.resize(len, M::default());
    }
}

/// Which of 64 numbers in binary, given by their four bit planes, are below `j`.
fn below(j: u32, planes: [u64; 4]) -> u64 {
    (0..4).fold(0, |below, k| if j >> k & 1 == 1 { below | !planes[k] } else { below & !planes[k] })
}
