//! Counting the fitting pairs of two classes for every pair of column sets: the inner loops.
//!
//! A vector has a byte for each of some column sets of the one class, a **lane**; a bit of it is one of eight
//! placements with these columns, an **octet**. So one AND compares a queen of the other class with eight placements of
//! each lane, and counting the bits of each byte counts fits by column set.
//!
//! All is plain code that compilers make vectors of, but for [`Instructions`].

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes read as what compilers make of them")]

use std::ops::Range;

use super::diagonals::Colour;
use super::lists::PlacementLists;
use super::matrix::{FitCount, MatrixRow};
use super::trie::{REST_MAX, Step, Trie, words};
use super::vectors::{BEHIND, Bytes, Instructions, kept_of, prefetch};
use crate::engine::{Control, Stopped};

/// Octets that are tabled at once.
const OCTETS_MAX: usize = 8;

/// Words of a program that come from memory before they are run: it is far larger than caches.
const AHEAD: usize = 512;

/// States after which they are told, and a stop is noticed: less than a millisecond.
const STATES_TOLD: u64 = 1 << 22;

/// The tables of all queens: for each of the octets at hand the placements that a queen does not attack. Close together,
/// so that they stay in the nearest cache.
type LaneTables<const L: usize> = [Bytes<L>; 256 * OCTETS_MAX];

/// Placements of all lanes, lane by lane: masks of diagonals.
#[derive(Debug)]
struct FlatList<const L: usize> {
    /// Longer than the list by [`BEHIND`] at least.
    masks: Vec<u64>,
    /// The first of each lane.
    starts: [u32; L],
    length: u32,
}

/// Buffers, kept from one group of column sets to the next.
#[derive(Debug)]
pub(super) struct Scratch<const L: usize> {
    /// What the queens of a branch leave, queen by queen.
    levels: Vec<FlatList<L>>,
    /// Which ones the latest queen has left: see [`Instructions::sift`].
    kept: Vec<u64>,
    /// By diagonal, and one without placements; as many as a byte names, so that no bounds are checked.
    planes: Box<[Bytes<L>; 256]>,
    tables: Box<LaneTables<L>>,
    /// Pairs of placements compared.
    pub(super) states: u64,
}

impl<const L: usize> Scratch<L> {
    pub(super) fn new() -> Self {
        let none = Bytes([0; L]);
        Self {
            levels: Vec::new(),
            kept: Vec::new(),
            planes: vec![none; 256].try_into().expect("256 planes"),
            tables: vec![none; 256 * OCTETS_MAX].try_into().expect("256 tables"),
            states: 0,
        }
    }
}

/// One group of column sets, and the tree that they are joined with.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneGroup<'a> {
    pub(super) colour: Colour,
    pub(super) trie: &'a Trie,
    /// The placements of the class that fills the lanes.
    pub(super) lists: &'a PlacementLists,
    /// The diagonals in use.
    pub(super) bits: u32,
    /// The first column set and the number of them, a lane each.
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Adds the fits of the group's column sets with those placements of the tree that belong to some `steps` to `matrix`. The
/// first call for a group begins with the first step.
#[inline(always)]
pub(super) fn join<C: FitCount, T: Instructions<L>, const L: usize>(
    group: LaneGroup<'_>,
    steps: Range<usize>,
    scratch: &mut Scratch<L>,
    matrix: &mut [MatrixRow<C, L>],
    control: &Control,
) -> Result<(), Stopped> {
    let trie = group.trie;
    assert!(trie.rows <= matrix.len(), "a row for each set and place");
    if steps.start == 0 {
        scratch.levels.resize_with(trie.depth + 1, FlatList::new);
        scratch.levels[0].start(group);
    }
    let mut states = 0;
    for (number, step) in trie.steps[steps].iter().enumerate() {
        if number % 64 == 0 || states >= STATES_TOLD {
            scratch.states += states;
            control.advance(std::mem::take(&mut states))?;
        }
        let Scratch { levels, kept, .. } = &mut *scratch;
        let (above, below) = levels.split_at_mut(step.level + 1);
        let (from, to) = (&above[step.level], &mut below[0]);
        to.take::<T>(from, step.queen, kept);
        if step.level + 1 < trie.depth || to.length == 0 {
            continue;
        }
        states += step.leaves * u64::from(to.length);
        let longest = to.lengths().into_iter().max().unwrap_or(0);
        let octets = longest.div_ceil(8) as usize;
        // As few passes as there can be, of about equal length.
        let share = octets.div_ceil(octets.div_ceil(OCTETS_MAX));
        for from in (0..octets).step_by(share) {
            let count = (octets - from).min(share);
            for at in 0..count {
                table::<T, L>(group, step, from + at, [at, count], scratch);
            }
            run::<C, L>(trie, step, count, &scratch.tables, matrix);
        }
    }
    scratch.states += states;
    control.advance(states)
}

impl<const L: usize> FlatList<L> {
    fn new() -> Self {
        Self { masks: Vec::new(), starts: [0; L], length: 0 }
    }

    /// Takes the lists of a group.
    fn start(&mut self, group: LaneGroup<'_>) {
        let starts = &group.lists.starts[group.first..=group.first + group.count];
        let [first, end] = [starts[0], starts[group.count]];
        self.masks.clear();
        self.masks.extend_from_slice(&group.lists.masks[first as usize..end as usize]);
        self.length = end - first;
        for (lane, start) in self.starts.iter_mut().enumerate() {
            *start = starts[lane.min(group.count)] - first;
        }
    }

    /// Takes what a queen leaves of another list.
    #[inline(always)]
    fn take<T: Instructions<L>>(&mut self, from: &Self, queen: u64, kept: &mut Vec<u64>) {
        let length = from.length as usize;
        if self.masks.len() < length + BEHIND {
            self.masks.resize(length + BEHIND, 0);
        }
        if kept.len() <= length {
            kept.resize(length + 1, 0);
        }
        self.length = T::sift(&from.masks[..length], queen, &mut self.masks, kept);
        for (start, from) in self.starts.iter_mut().zip(from.starts) {
            *start = kept_of::<T, L>(kept, from);
        }
    }

    /// How many placements each lane has.
    #[inline(always)]
    fn lengths(&self) -> [u32; L] {
        let mut lengths = [self.length; L];
        lengths[..L - 1].copy_from_slice(&self.starts[1..]);
        for (length, start) in lengths.iter_mut().zip(self.starts) {
            *length -= start;
        }
        lengths
    }
}

/// Tables an octet of each lane, one of `count`: for each queen that is asked for the placements that it does not attack.
#[inline(always)]
fn table<T: Instructions<L>, const L: usize>(
    group: LaneGroup<'_>,
    step: &Step,
    octet: usize,
    [to, count]: [usize; 2],
    scratch: &mut Scratch<L>,
) {
    let left = &scratch.levels[group.trie.depth];
    let planes = scratch.planes.first_chunk_mut().expect("64 of 256 planes");
    let mut places = [0; L];
    for (place, start) in places.iter_mut().zip(left.starts) {
        *place = (start as usize + octet * 8).min(left.length as usize);
    }
    T::transpose(&left.masks, &places, group.bits, planes);
    let mut valid = [0u8; L];
    for (valid, length) in valid.iter_mut().zip(left.lengths()) {
        #[expect(clippy::cast_possible_truncation, reason = "eight bits")]
        let bits = ((1u32 << length.saturating_sub(octet as u32 * 8).min(8)) - 1) as u8;
        *valid = bits;
    }
    for (queen, tables) in group.trie.asked(step).zip(scratch.tables.chunks_exact_mut(count)) {
        // In a copy: the compiler can't know that planes and tables do not overlap.
        let mut free = valid;
        let [one, other] = queen.map(|diagonal| scratch.planes[usize::from(diagonal)].0);
        for l in 0..L {
            free[l] &= !(one[l] | other[l]);
        }
        tables[to].0 = free;
    }
}

/// Runs a branch's program on the first octets of the tables.
#[inline(always)]
fn run<C: FitCount, const L: usize>(
    trie: &Trie,
    step: &Step,
    octets: usize,
    tables: &LaneTables<L>,
    matrix: &mut [MatrixRow<C, L>],
) {
    let program = trie.program(step);
    match octets {
        1 => run_octets::<C, L, 1>(trie.rest, program, tables, matrix),
        2 => run_octets::<C, L, 2>(trie.rest, program, tables, matrix),
        3 => run_octets::<C, L, 3>(trie.rest, program, tables, matrix),
        4 => run_octets::<C, L, 4>(trie.rest, program, tables, matrix),
        5 => run_octets::<C, L, 5>(trie.rest, program, tables, matrix),
        6 => run_octets::<C, L, 6>(trie.rest, program, tables, matrix),
        7 => run_octets::<C, L, 7>(trie.rest, program, tables, matrix),
        _ => run_octets::<C, L, OCTETS_MAX>(trie.rest, program, tables, matrix),
    }
}

#[inline(always)]
fn run_octets<C: FitCount, const L: usize, const V: usize>(
    rest: usize,
    program: &[u32],
    tables: &LaneTables<L>,
    matrix: &mut [MatrixRow<C, L>],
) {
    match rest {
        1 => leaves::<C, L, V, 0>(program, tables, matrix),
        2 => leaves::<C, L, V, 1>(program, tables, matrix),
        3 => leaves::<C, L, V, 2>(program, tables, matrix),
        4 => leaves::<C, L, V, 3>(program, tables, matrix),
        _ => leaves::<C, L, V, { REST_MAX - 1 }>(program, tables, matrix),
    }
}

/// Runs a program with `V` octets and `Q` queens a node.
#[inline(always)]
fn leaves<C: FitCount, const L: usize, const V: usize, const Q: usize>(
    mut program: &[u32],
    tables: &LaneTables<L>,
    matrix: &mut [MatrixRow<C, L>],
) {
    let byte = |word: u32, at: usize| (word >> (8 * at) & 255) as usize;
    while let Some((&head, rest)) = program.split_first() {
        let (nodes, length) = ((head >> 8) as usize, words(Q) + (head & 255) as usize);
        let (run, rest) = rest.split_at(nodes * length);
        program = rest;
        for node in run.chunks_exact(length) {
            prefetch(node.as_ptr().wrapping_add(AHEAD));
            let (queens, leaves) = node.split_at(words(Q));
            let mut common = [[u8::MAX; L]; V];
            for q in 0..Q {
                let table = byte(queens[0], q) * V;
                for v in 0..V {
                    for l in 0..L {
                        common[v][l] &= tables[table + v].0[l];
                    }
                }
            }
            for &leaf in leaves {
                let table = byte(leaf, 3) * V;
                let mut fits = [0; L];
                for v in 0..V {
                    for l in 0..L {
                        #[expect(clippy::cast_possible_truncation, reason = "eight bits")]
                        let more = (common[v][l] & tables[table + v].0[l]).count_ones() as u8;
                        // Eight an octet at most; a check would cost debug builds their vectors.
                        fits[l] = u8::wrapping_add(fits[l], more);
                    }
                }
                // SAFETY: the rows of a tree's leaves are below `Trie::rows`, which `join` has checked.
                let MatrixRow(counts) = unsafe { matrix.get_unchecked_mut((leaf & 0xff_ffff) as usize) };
                for l in 0..L {
                    counts[l] = counts[l].add(fits[l]);
                }
            }
        }
    }
}
