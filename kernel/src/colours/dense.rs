//! Counting the fitting pairs of two classes for every pair of column sets: the inner loops.
//!
//! A vector has a byte for each of some column sets of the one class, a **lane**; a bit of it is one of eight
//! placements with these columns, an **octet**. So one AND compares a queen of the other class with eight placements of
//! each lane, and counting the bits of each byte counts fits by column set.
//!
//! Counting is plain code that compilers make vectors of, but for what [`Vectors`] do.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes read as what compilers make of them")]

use std::ops::Range;

use super::lists::{Factor, PlacementLists};
use super::trie::{Step, Trie, words};
use super::vectors::{BEHIND, Bytes, Vectors};
use crate::engine::{Control, Stopped};

/// A row of a matrix of counts: for one column set of the tree's class a count for each lane.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct MatrixRow<C, const L: usize>(pub(super) [C; L]);

/// What fits are counted in.
pub(super) trait FitCount: Copy {
    /// None.
    const ZERO: Self;
    /// The highest, which stands for more, too.
    const FULL: Self;

    /// The sum, or [`FULL`](Self::FULL) if that is more than fits.
    fn add(self, more: u8) -> Self;
}

macro_rules! implement_count {
    ($($type:ty)*) => {$(
        impl FitCount for $type {
            const ZERO: Self = 0;
            const FULL: Self = Self::MAX;

            #[inline(always)]
            fn add(self, more: u8) -> Self {
                self.saturating_add(more.into())
            }
        }
    )*};
}

implement_count! { u8 u16 u32 }

/// Rows of bytes, of which none lies in more cache lines than it has to.
#[derive(Debug, Default)]
pub(super) struct ByteRows(Vec<Bytes<64>>);

impl ByteRows {
    /// So many rows of zeros.
    pub(super) fn zeros<const L: usize>(&mut self, rows: usize) -> &mut [MatrixRow<u8, L>] {
        self.0.clear();
        self.0.resize((rows * L).div_ceil(64), Bytes([0; 64]));
        // SAFETY: both are bytes, of any value, without gaps.
        let (before, all, _) = unsafe { self.0.align_to_mut::<MatrixRow<u8, L>>() };
        assert!(before.is_empty() && size_of::<MatrixRow<u8, L>>() == L, "rows of 32 or 64 bytes");
        &mut all[..rows]
    }
}

/// Octets that are tabled at once.
const OCTETS_MAX: usize = 4;

/// States after which they are told, and a stop is noticed: less than a millisecond.
const STATES_TOLD: u64 = 1 << 22;

/// The tables of all queens: for each octet the placements that a queen does not attack.
type LaneTables<const L: usize> = [[Bytes<L>; OCTETS_MAX]; 256];

/// Some placements, by lane.
#[derive(Clone, Debug, Default)]
struct Sublists {
    masks: Vec<u64>,
    starts: Vec<usize>,
}

/// Buffers, kept from one group of column sets to the next.
#[derive(Debug)]
pub(super) struct Scratch<const L: usize> {
    /// What the queens of a branch leave, queen by queen.
    levels: Vec<Sublists>,
    /// What a whole branch leaves: the k-th placements of all lanes stand together.
    slots: Vec<u64>,
    /// The number of them, by byte.
    lengths: [u32; L],
    planes: Box<[Bytes<L>; 64]>,
    tables: Box<LaneTables<L>>,
    /// Pairs of placements compared.
    pub(super) states: u64,
}

impl<const L: usize> Scratch<L> {
    pub(super) fn new() -> Self {
        let none = Bytes([0; L]);
        Self {
            levels: Vec::new(),
            slots: Vec::new(),
            lengths: [0; L],
            planes: Box::new([none; 64]),
            tables: vec![[none; OCTETS_MAX]; 256].try_into().expect("256 tables"),
            states: 0,
        }
    }
}

/// One group of column sets, and the tree that they are joined with.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneGroup<'a> {
    pub(super) trie: &'a Trie,
    /// The placements of the class that fills the lanes.
    pub(super) lists: &'a PlacementLists,
    /// The diagonals in use.
    pub(super) bits: u32,
    /// The first column set and the number of them, at most a lane each.
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Adds the fits of the group's column sets with those placements of the tree that belong to some `steps` to `matrix`. The
/// first call for a group begins with the first step.
#[inline(always)]
pub(super) fn join<C: FitCount, T: Vectors<L>, const L: usize>(
    group: LaneGroup<'_>,
    steps: Range<usize>,
    scratch: &mut Scratch<L>,
    matrix: &mut [MatrixRow<C, L>],
    control: &Control,
) -> Result<(), Stopped> {
    let trie = group.trie;
    if steps.start == 0 {
        scratch.levels.resize_with(trie.depth + 1, Sublists::default);
        start::<L>(group, &mut scratch.levels[0]);
    }
    let mut states = 0;
    for (number, step) in trie.steps[steps].iter().enumerate() {
        if number % 64 == 0 || states >= STATES_TOLD {
            scratch.states += states;
            control.advance(std::mem::take(&mut states))?;
        }
        let (above, below) = scratch.levels.split_at_mut(step.level + 1);
        sift::<T, L>(&above[step.level], step.queen, &mut below[0]);
        if step.level + 1 < trie.depth {
            continue;
        }
        let left = &below[0];
        states += step.leaves * left.starts[L] as u64;
        let longest = deal::<T, L>(left, &mut scratch.slots, &mut scratch.lengths);
        let octets = longest.div_ceil(8) as usize;
        for from in (0..octets).step_by(OCTETS_MAX) {
            let count = (octets - from).min(OCTETS_MAX);
            for at in 0..count {
                table::<T, L>(group, step, from + at, at, scratch);
            }
            run::<C, L>(trie, step, count, &scratch.tables, matrix);
        }
    }
    scratch.states += states;
    control.advance(states)
}

/// Takes the lists of the group.
#[inline(always)]
fn start<const L: usize>(group: LaneGroup<'_>, to: &mut Sublists) {
    let start = |lane: usize| group.lists.starts[group.first + lane.min(group.count)] as usize;
    to.starts.clear();
    to.starts.extend((0..=L).map(|lane| start(lane) - start(0)));
    to.masks.clear();
    to.masks.extend_from_slice(&group.lists.masks[start(0)..start(L)]);
}

/// Takes those that a queen does not attack.
#[inline(always)]
fn sift<T: Vectors<L>, const L: usize>(from: &Sublists, queen: u64, to: &mut Sublists) {
    let needed = from.starts[L] + BEHIND;
    if to.masks.len() < needed {
        to.masks.resize(needed, 0);
    }
    to.starts.clear();
    to.starts.push(0);
    let mut found = 0;
    for lane in from.starts.windows(2) {
        found += T::free(&from.masks[lane[0]..lane[1]], queen, &mut to.masks[found..]);
        to.starts.push(found);
    }
}

/// Deals placements to the lanes' slots; returns how many the longest lane has.
#[inline(always)]
fn deal<T: Vectors<L>, const L: usize>(from: &Sublists, slots: &mut Vec<u64>, lengths: &mut [u32; L]) -> u32 {
    let longest = from.starts.windows(2).map(|lane| lane[1] - lane[0]).max().unwrap_or(0);
    let needed = longest.next_multiple_of(8) * L;
    if slots.len() < needed {
        slots.resize(needed, 0);
    }
    for (lane, ends) in from.starts.windows(2).enumerate() {
        let masks = &from.masks[ends[0]..ends[1]];
        let slots = slots.get_mut(lane..).unwrap_or_default();
        for (slot, mask) in slots.iter_mut().step_by(L).zip(masks) {
            *slot = *mask;
        }
        #[expect(clippy::cast_possible_truncation, reason = "placements of one column set")]
        let length = masks.len() as u32;
        lengths[T::byte(lane)] = length;
    }
    u32::try_from(longest).expect("placements of one column set")
}

/// Tables an octet of each lane: for each queen that is asked for the placements that it does not attack.
#[inline(always)]
fn table<T: Vectors<L>, const L: usize>(
    group: LaneGroup<'_>,
    step: &Step,
    octet: usize,
    to: usize,
    scratch: &mut Scratch<L>,
) {
    T::transpose(&scratch.slots[octet * 8 * L..(octet + 1) * 8 * L], group.bits, &mut scratch.planes);
    let mut valid = [0u8; L];
    for (valid, length) in valid.iter_mut().zip(&scratch.lengths) {
        #[expect(clippy::cast_possible_truncation, reason = "eight bits")]
        let bits = ((1u32 << length.saturating_sub(octet as u32 * 8).min(8)) - 1) as u8;
        *valid = bits;
    }
    for (number, queen) in group.trie.asked(step) {
        // In a copy: the compiler can't know that planes and tables do not overlap.
        let mut free = valid;
        if queen != 0 {
            let one = scratch.planes[queen.trailing_zeros() as usize].0;
            let other = scratch.planes[queen.ilog2() as usize].0;
            for l in 0..L {
                free[l] &= !(one[l] | other[l]);
            }
        }
        scratch.tables[usize::from(number)][to].0 = free;
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
        5 => leaves::<C, L, V, 4>(program, tables, matrix),
        6 => leaves::<C, L, V, 5>(program, tables, matrix),
        7 => leaves::<C, L, V, 6>(program, tables, matrix),
        8 => leaves::<C, L, V, 7>(program, tables, matrix),
        _ => leaves::<C, L, V, 8>(program, tables, matrix),
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
            let (queens, leaves) = node.split_at(words(Q));
            let mut common = [[u8::MAX; L]; V];
            for q in 0..Q {
                let table = &tables[byte(queens[q / 4], q % 4)];
                for v in 0..V {
                    for l in 0..L {
                        common[v][l] &= table[v].0[l];
                    }
                }
            }
            for &leaf in leaves {
                let table = &tables[byte(leaf, 3)];
                let mut fits = [0; L];
                for v in 0..V {
                    for l in 0..L {
                        #[expect(clippy::cast_possible_truncation, reason = "eight bits")]
                        let more = (common[v][l] & table[v].0[l]).count_ones() as u8;
                        fits[l] += more;
                    }
                }
                let counts = &mut matrix[(leaf & 0xff_ffff) as usize].0;
                for l in 0..L {
                    counts[l] = counts[l].add(fits[l]);
                }
            }
        }
    }
}

/// Adds counts to wider ones, which may become [`u16::MAX`] and then stand for more, too, and clears them: of every
/// `height` rows those at these `places`. Adds nothing if a count is [`u8::MAX`]. Returns the largest of both.
#[inline(always)]
pub(super) fn widen<const L: usize>(
    narrow: &mut [MatrixRow<u8, L>],
    wide: &mut [MatrixRow<u16, L>],
    height: usize,
    places: &[usize],
) -> (u8, u16) {
    let mut most = [0; L];
    for narrow in narrow.chunks_exact(height) {
        for &place in places {
            for l in 0..L {
                most[l] = narrow[place].0[l].max(most[l]);
            }
        }
    }
    let narrowest = most.into_iter().max().unwrap_or(0);
    let mut most = [0; L];
    for (narrow, wide) in narrow.chunks_exact_mut(height).zip(wide.chunks_exact_mut(height)) {
        for &place in places {
            let (narrow, wide) = (&mut narrow[place], &mut wide[place]);
            if narrowest < u8::MAX {
                for l in 0..L {
                    wide.0[l] = wide.0[l].saturating_add(narrow.0[l].into());
                    most[l] = wide.0[l].max(most[l]);
                }
            }
            *narrow = MatrixRow([0; L]);
        }
    }
    (narrowest, most.into_iter().max().unwrap_or(0))
}

/// The sum of the products of two groups of rows, each weighed by its lane and its row: by both first weights, and again
/// by both second ones.
#[inline(always)]
pub(super) fn products<const L: usize>(
    one: &[MatrixRow<u16, L>],
    other: &[MatrixRow<u16, L>],
    lanes: [&[u32; L]; 2],
    rows: &[Factor],
) -> u64 {
    let uniform = lanes.iter().flat_map(|lanes| *lanes).all(|weight| *weight == lanes[0][0]);
    let mut sum = 0;
    for ((one, other), row) in one.iter().zip(other).zip(rows) {
        let product = |l: usize| u64::from(u32::from(one.0[l]) * u32::from(other.0[l]));
        let (mut any, mut below) = (0, 0);
        if uniform {
            for l in 0..L {
                any += product(l);
            }
            any *= u64::from(lanes[0][0]);
            below = any;
        } else {
            for l in 0..L {
                any += product(l) * u64::from(lanes[0][l]);
                below += product(l) * u64::from(lanes[1][l]);
            }
        }
        sum += any * u64::from(row.any) + below * u64::from(row.below);
    }
    sum
}
