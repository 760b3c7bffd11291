//! Counting the fitting pairs of two classes by lattice lists: the inner loops.
//!
//! An element of a list is a placement in some first rows of the one class with one of the other class that it fits, as a
//! mask of their diagonals. All elements whose queens in the one class use the same columns stand in one list: a list is
//! made of those with a column less, by one more queen. The last two queens are not placed: bit planes tell for
//! each of their cells which elements leave it free, and what two cells have in common is counted.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes read as what compilers make of them")]

use super::dense::{FitCount, LaneGroup, MatrixRow};
use super::lattice::{Family, Lattice};
use super::lists::ColumnSets;
use super::vectors::{BEHIND, Bytes, Vectors, transpose};
use crate::engine::{Control, Stopped};

/// Octets that are tabled at once: what they count fits into a byte.
const OCTETS_MAX: usize = 8;

/// States after which they are told, and a stop is noticed: less than a millisecond.
const STATES_TOLD: u64 = 1 << 22;

/// The lists of all column sets of a size.
#[derive(Debug, Default)]
struct Level {
    /// The first element of each, by the set's number; the end of the last.
    starts: Vec<u32>,
    /// Longer than all lists by [`BEHIND`] at least.
    masks: Vec<u64>,
}

/// Buffers, kept from one group of column sets to the next.
#[derive(Debug)]
pub(super) struct LatticeScratch<const L: usize> {
    levels: Vec<Level>,
    last: Vec<u64>,
    slots: Vec<u64>,
    lengths: [u32; L],
    planes: Box<[Bytes<L>; 64]>,
    tables: Vec<Bytes<L>>,
    /// Pairs of placements compared.
    pub(super) states: u64,
}

impl<const L: usize> LatticeScratch<L> {
    pub(super) fn new() -> Self {
        Self {
            levels: Vec::new(),
            last: Vec::new(),
            slots: Vec::new(),
            lengths: [0; L],
            planes: Box::new([Bytes([0; L]); 64]),
            tables: Vec::new(),
            states: 0,
        }
    }
}

fn columns(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = set & set.wrapping_neg();
        set ^= bit;
        (bit != 0).then_some(bit)
    })
}

/// Makes room for so many elements.
fn hold(masks: &mut Vec<u64>, length: usize) {
    if masks.len() < length + BEHIND {
        masks.resize((length + BEHIND).next_power_of_two(), 0);
    }
}

impl Level {
    fn list(&self, number: u16) -> &[u64] {
        let [from, end] = [0, 1].map(|more| self.starts[usize::from(number) + more] as usize);
        &self.masks[from..end]
    }
}

/// Writes the list of a column set with one more queen, in `row`, behind `end`; returns its end.
#[inline(always)]
fn merge<T: Vectors<L>, const L: usize>(
    lattice: &Lattice,
    from: &Level,
    row: u32,
    set: u32,
    to: &mut Vec<u64>,
    mut end: usize,
) -> usize {
    for bit in columns(set) {
        let source = from.list(lattice.numbers[(set & !bit) as usize]);
        if source.is_empty() {
            continue;
        }
        hold(to, end + source.len());
        let queen = lattice.queens[row as usize][bit.trailing_zeros() as usize];
        end += T::sift(source, queen, &mut to[end..]);
    }
    end
}

/// Adds the fits of the group's column sets with the placements of all row sets to `matrix`.
#[inline(always)]
pub(super) fn join<C: FitCount, T: Vectors<L>, const L: usize>(
    group: LaneGroup<'_>,
    lattice: &Lattice,
    scratch: &mut LatticeScratch<L>,
    matrix: &mut [MatrixRow<C, L>],
    control: &Control,
) -> Result<(), Stopped> {
    let t0 = unsafe { std::arch::x86_64::_rdtsc() };
    let depth = lattice.families[0].rows.len();
    scratch.levels.resize_with(depth.max(1), Level::default);
    start(group, &mut scratch.levels[0]);
    let mut before: &[u32] = &[];
    let mut states = 0;
    add(6, lattice.families.len() as u64); add(7, lattice.families.iter().map(|f| f.pairs.len() as u64).sum()); 
    for family in &lattice.families {
        let t0 = unsafe { std::arch::x86_64::_rdtsc() };
        let same = before.iter().zip(&family.rows).take_while(|(one, other)| one == other).count();
        before = &family.rows;
        for level in same..depth - 1 {
            let (above, below) = scratch.levels.split_at_mut(level + 1);
            let (from, to) = (&above[level], &mut below[0]);
            to.starts.clear();
            to.starts.push(0);
            let mut end = 0;
            for &set in &lattice.sets[level + 1] {
                end = merge::<T, L>(lattice, from, family.rows[level], set, &mut to.masks, end);
                to.starts.push(u32::try_from(end).expect("fewer than 2^32 elements"));
            }
            scratch.states += states;
            control.advance(std::mem::take(&mut states))?;
        }
        tick(0, t0);
        for &set in &lattice.sets[depth] {
            if states >= STATES_TOLD {
                scratch.states += states;
                control.advance(std::mem::take(&mut states))?;
            }
            states += last::<C, T, L>(group, lattice, family, set, scratch, matrix);
        }
    }
    scratch.states += states;
    control.advance(states)
}

/// Takes the lists of the group: elements without queens of the one class.
#[inline(always)]
fn start(group: LaneGroup<'_>, to: &mut Level) {
    to.masks.clear();
    for lane in 0..group.count {
        let [from, end] = [0, 1].map(|more| group.lists.starts[group.first + lane + more] as usize);
        let number = (lane as u64).unbounded_shl(group.bits);
        to.masks.extend(group.lists.masks[from..end].iter().map(|mask| mask | number));
    }
    to.starts.clear();
    to.starts.extend([0, u32::try_from(to.masks.len()).expect("fewer than 2^32 elements")]);
}

/// Counts the fits of the placements whose queens in the family's rows use these columns; returns the states.
#[inline(always)]
fn last<C: FitCount, T: Vectors<L>, const L: usize>(
    group: LaneGroup<'_>,
    lattice: &Lattice,
    family: &Family,
    set: u32,
    scratch: &mut LatticeScratch<L>,
    matrix: &mut [MatrixRow<C, L>],
) -> u64 {
    let mut free = [0_u32; 16];
    let mut count = 0;
    for column in 0..lattice.columns {
        if set >> column & 1 == 0 {
            free[count] = column;
            count += 1;
        }
    }
    let free = &free[..count];
    // Two columns, by their places among the free ones, and the matrix row.
    let mut wanted = [[0_u16; 3]; 120];
    let mut ends = 0;
    for j in 1..count {
        for i in 0..j {
            let place = lattice.places[(set | 1 << free[i] | 1 << free[j]) as usize];
            wanted[ends] = [i as u16, j as u16, place];
            ends += usize::from(place != ColumnSets::NONE);
        }
    }
    let wanted = &wanted[..ends];
    if wanted.is_empty() {
        return 0;
    }
    let depth = family.rows.len();
    let t = unsafe { std::arch::x86_64::_rdtsc() };
    let end = merge::<T, L>(lattice, &scratch.levels[depth - 1], family.rows[depth - 1], set, &mut scratch.last, 0);
    if end == 0 {
        return 0;
    }
    let t = tick(1, t);
    let longest = deal::<T, L>(group, &scratch.last[..end], &mut scratch.slots, &mut scratch.lengths);
    let octets = longest.div_ceil(8) as usize;
    let mut t = tick(2, t);
    add(8, end as u64); add(9, octets as u64 * 8 * L as u64);add(10,1);
    for from in (0..octets).step_by(OCTETS_MAX) {
        let octets = (octets - from).min(OCTETS_MAX);
        scratch.tables.resize((16 * 16 * OCTETS_MAX).max(scratch.tables.len()), Bytes([0; L]));
        for at in 0..octets {
            table::<T, L>(group, lattice, family, free, from + at, [at, octets], scratch);
        }
        t = tick(3, t);
        let leaf = Leaf { family, free, wanted, height: lattice.height, tables: &scratch.tables };
        match octets {
            1 => leaf.run::<C, 1>(matrix),
            2 => leaf.run::<C, 2>(matrix),
            3 => leaf.run::<C, 3>(matrix),
            4 => leaf.run::<C, 4>(matrix),
            5 => leaf.run::<C, 5>(matrix),
            6 => leaf.run::<C, 6>(matrix),
            7 => leaf.run::<C, 7>(matrix),
            _ => leaf.run::<C, OCTETS_MAX>(matrix),
        }
        t = tick(4, t);
    }
    (end * wanted.len() * family.pairs.len()) as u64
}

/// Deals elements to the lanes' slots; returns how many the longest lane has.
#[inline(always)]
fn deal<T: Vectors<L>, const L: usize>(
    group: LaneGroup<'_>,
    from: &[u64],
    slots: &mut Vec<u64>,
    lengths: &mut [u32; L],
) -> u32 {
    let mut ends: [u32; L] = std::array::from_fn(|lane| lane as u32);
    for &mask in from {
        let lane = (mask.unbounded_shr(group.bits) as usize + group.lane) % L;
        let slot = ends[lane] as usize;
        if slot >= slots.len() {
            slots.resize(((slot / L + 1) * L).next_multiple_of(8 * L).next_power_of_two(), 0);
        }
        slots[slot] = mask;
        ends[lane] = (slot + L) as u32;
    }
    let mut longest = 0;
    for (lane, end) in ends.into_iter().enumerate() {
        let length = end / L as u32;
        lengths[T::byte(lane)] = length;
        longest = length.max(longest);
    }
    longest
}

/// Tables an octet of each lane, one of `count`: for each free cell of the outer rows the elements that leave it free.
#[inline(always)]
fn table<T: Vectors<L>, const L: usize>(
    group: LaneGroup<'_>,
    lattice: &Lattice,
    family: &Family,
    free: &[u32],
    octet: usize,
    [to, count]: [usize; 2],
    scratch: &mut LatticeScratch<L>,
) {
    transpose::<T, L>(&scratch.slots[octet * 8 * L..(octet + 1) * 8 * L], group.bits, &mut scratch.planes);
    let mut valid = [0u8; L];
    for (valid, length) in valid.iter_mut().zip(&scratch.lengths) {
        #[expect(clippy::cast_possible_truncation, reason = "eight bits")]
        let bits = ((1u32 << length.saturating_sub(octet as u32 * 8).min(8)) - 1) as u8;
        *valid = bits;
    }
    let mut tables = scratch.tables.chunks_exact_mut(count);
    for &row in &family.outer {
        for &column in free {
            let queen = lattice.queens[row as usize][column as usize];
            let mut left = valid;
            if queen != 0 {
                let one = scratch.planes[queen.trailing_zeros() as usize].0;
                let other = scratch.planes[queen.ilog2() as usize].0;
                for l in 0..L {
                    left[l] &= !(one[l] | other[l]);
                }
            }
            tables.next().expect("16 rows and columns")[to].0 = left;
        }
    }
}

pub static T: [std::sync::atomic::AtomicU64; 12] = [const { std::sync::atomic::AtomicU64::new(0) }; 12];
fn tick(at: usize, from: u64) -> u64 { let now = unsafe { std::arch::x86_64::_rdtsc() }; T[at].fetch_add(now - from, std::sync::atomic::Ordering::Relaxed); now }
fn add(at: usize, n: u64) { T[at].fetch_add(n, std::sync::atomic::Ordering::Relaxed); }
struct Leaf<'a, const L: usize> {
    family: &'a Family,
    free: &'a [u32],
    wanted: &'a [[u16; 3]],
    height: usize,
    tables: &'a [Bytes<L>],
}

impl<const L: usize> Leaf<'_, L> {
    #[inline(always)]
    fn run<C: FitCount, const V: usize>(&self, matrix: &mut [MatrixRow<C, L>]) {
        let width = self.free.len();
        for &[i, j, place] in self.wanted {
            let [i, j, place] = [i, j, place].map(usize::from);
            let distance = self.free[j] - self.free[i];
            for pair in &self.family.pairs {
                if pair.distance == distance {
                    continue;
                }
                let cell = |row: usize, column: usize| -> &[Bytes<L>; V] {
                    self.tables[(pair.at[row] * width + column) * V..][..V].try_into().expect("V octets")
                };
                let [a, b, c, d] = [cell(0, i), cell(1, j), cell(0, j), cell(1, i)];
                let mut fits = [0_u8; L];
                for v in 0..V {
                    for l in 0..L {
                        #[expect(clippy::cast_possible_truncation, reason = "16 bits")]
                        let more = ((a[v].0[l] & b[v].0[l]).count_ones() + (c[v].0[l] & d[v].0[l]).count_ones()) as u8;
                        fits[l] += more;
                    }
                }
                let counts = &mut matrix[pair.set as usize * self.height + place].0;
                for l in 0..L {
                    counts[l] = counts[l].add(fits[l]);
                }
            }
        }
    }
}
