//! Counting the fitting pairs of two classes for every pair of column sets: the inner loops.
//!
//! A vector has a byte for each of some column sets of the one class, a **lane**; a bit of it is one of eight
//! placements with these columns, an **octet**. So one AND compares a queen of the other class with eight placements of
//! each lane, and counting the bits of each byte counts fits by column set.
//!
//! All is plain code that compilers make vectors of, but for the [`Filter`].

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes read as what compilers make of them")]

use std::ops::Range;

use super::diagonals::Colour;
use super::lists::PlacementLists;
use super::matrix::{FitCount, MatrixRow};
use super::trie::{REST_MAX, Step, Trie, words};
use super::vectors::{BEHIND, Bytes, Filter, byte, prefetch, transpose};
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

/// Placements of all lanes, lane by lane: masks of diagonals with the number of the lane above.
#[derive(Clone, Debug, Default)]
struct FlatList {
    /// Longer than the list by [`BEHIND`] at least.
    masks: Vec<u64>,
    length: usize,
}

/// Buffers, kept from one group of column sets to the next.
#[derive(Debug)]
pub(super) struct Scratch<const L: usize> {
    /// What the queens of a branch leave, queen by queen.
    levels: Vec<FlatList>,
    /// What a whole branch leaves: the k-th placements of all lanes stand together.
    slots: Vec<u64>,
    /// The number of them, by byte.
    lengths: [u32; L],
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
            slots: Vec::new(),
            lengths: [0; L],
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
    /// The first column set and the number of them, a lane each; the first one's lane.
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) lane: usize,
}

impl LaneGroup<'_> {
    /// Lanes at most, so that the numbers of lanes have room above the diagonals: fewer than `lanes` if N = 31.
    pub(super) fn lanes_max(bits: u32, lanes: usize) -> usize {
        lanes.min(1 << (u64::BITS - bits))
    }
}

/// Adds the fits of the group's column sets with those placements of the tree that belong to some `steps` to `matrix`. The
/// first call for a group begins with the first step.
#[inline(always)]
pub(super) fn join<C: FitCount, T: Filter, const L: usize>(
    group: LaneGroup<'_>,
    steps: Range<usize>,
    scratch: &mut Scratch<L>,
    matrix: &mut [MatrixRow<C, L>],
    control: &Control,
) -> Result<(), Stopped> {
    let trie = group.trie;
    assert!(trie.rows <= matrix.len(), "a row for each set and place");
    if steps.start == 0 {
        scratch.levels.resize_with(trie.depth + 1, FlatList::default);
        start(group, scratch);
    }
    let mut states = 0;
    for (number, step) in trie.steps[steps].iter().enumerate() {
        if number % 64 == 0 || states >= STATES_TOLD {
            scratch.states += states;
            control.advance(std::mem::take(&mut states))?;
        }
        let (above, below) = scratch.levels.split_at_mut(step.level + 1);
        let (from, to) = (&above[step.level], &mut below[0]);
        to.hold(from.length);
        to.length = T::sift(&from.masks[..from.length], step.queen, &mut to.masks);
        if step.level + 1 < trie.depth || to.length == 0 {
            continue;
        }
        let left = &to.masks[..to.length];
        states += step.leaves * left.len() as u64;
        let longest = deal(group, left, &mut scratch.slots, &mut scratch.lengths);
        let octets = longest.div_ceil(8) as usize;
        // As few passes as there can be, of about equal length.
        let share = octets.div_ceil(octets.div_ceil(OCTETS_MAX));
        for from in (0..octets).step_by(share) {
            let count = (octets - from).min(share);
            for at in 0..count {
                table(group, step, from + at, [at, count], scratch);
            }
            run::<C, L>(trie, step, count, &scratch.tables, matrix);
        }
    }
    scratch.states += states;
    control.advance(states)
}

impl FlatList {
    /// Makes room for so many masks.
    fn hold(&mut self, length: usize) {
        if self.masks.len() < length + BEHIND {
            self.masks.resize(length + BEHIND, 0);
        }
    }
}

/// Takes the lists of the group.
#[inline(always)]
fn start<const L: usize>(group: LaneGroup<'_>, scratch: &mut Scratch<L>) {
    let to = &mut scratch.levels[0];
    to.masks.clear();
    let mut longest = 0;
    for lane in 0..group.count {
        let [from, end] = [0, 1].map(|more| group.lists.starts[group.first + lane + more] as usize);
        let number = (lane as u64).unbounded_shl(group.bits);
        to.masks.extend(group.lists.masks[from..end].iter().map(|mask| mask | number));
        longest = longest.max(end - from);
    }
    to.length = to.masks.len();
    let needed = longest.next_multiple_of(8) * L;
    if scratch.slots.len() < needed {
        scratch.slots.resize(needed, 0);
    }
}

/// Deals placements to the lanes' slots; returns how many the longest lane has.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "lanes, and slots of placements of one column set")]
fn deal<const L: usize>(
    group: LaneGroup<'_>,
    from: &[u64],
    slots: &mut [u64],
    lengths: &mut [u32; L],
) -> u32 {
    // Of each lane the slot behind the last one; lanes and slots counted from the group's first lane on.
    let mut ends = [0_u32; L];
    let slots = &mut slots[group.lane..];
    let numbers = !u64::MAX.unbounded_shr(u64::BITS - group.bits);
    let (mut before, mut slot) = (u64::MAX, 0);
    for &mask in from {
        let number = mask & numbers;
        let lane = (number >> (group.bits % u64::BITS)) as usize % L;
        slot = if number == before { slot + L } else { lane };
        before = number;
        slots[slot] = mask;
        ends[lane] = (slot + L) as u32;
    }
    let mut longest = 0;
    for (lane, end) in ends.into_iter().enumerate() {
        let length = end / L as u32;
        lengths[byte::<L>((lane + group.lane) % L)] = length;
        longest = length.max(longest);
    }
    longest
}

/// Tables an octet of each lane, one of `count`: for each queen that is asked for the placements that it does not attack.
#[inline(always)]
fn table<const L: usize>(
    group: LaneGroup<'_>,
    step: &Step,
    octet: usize,
    [to, count]: [usize; 2],
    scratch: &mut Scratch<L>,
) {
    let planes = scratch.planes.first_chunk_mut().expect("64 of 256 planes");
    transpose(&scratch.slots[octet * 8 * L..(octet + 1) * 8 * L], group.bits, planes);
    let mut valid = [0u8; L];
    for (valid, length) in valid.iter_mut().zip(&scratch.lengths) {
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
