//! The jobs: row sets up to symmetry, numbered so that any one of them can be had at once on every machine.

use std::ops::{Range, RangeInclusive};

use super::lines::{Lines, Parity};
use super::{memory, work};
use crate::board::BoardSize;

/// One orbit of row sets, by a representative, and which column sets are counted for it.
///
/// The rows of one parity, the **major** ones, are those of higher rank (`lines.rs`). They decide alone which
/// column sets are counted, so that the orbits with the same major rows share lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSet {
    /// The rows whose queens stand on white cells, where row plus column is even; bit r is row r.
    pub rows: u32,
    /// How many times what is counted for this orbit goes into the total: 1, 2 or 4.
    pub weight: u32,
    lines: Lines,
    /// The rank of the major rows: column sets of higher rank are counted for their transposed images.
    rank: u32,
}

impl RowSet {
    /// How many times a solution counts that has its queens of these columns (bit c is column c), and no others, on
    /// white cells: 0, 1, 2 or 4. The orbit's [`weight`](Self::weight) comes on top.
    pub fn columns_weight(&self, columns: u32) -> u32 {
        let white = self.lines.some(Parity::Even, self.rows).count_ones();
        let weigh = |parity| self.lines.weigh(parity, white, self.lines.some(parity, columns), self.rank);
        let [even, odd] = [Parity::Even, Parity::Odd].map(weigh);
        match (even, odd) {
            (Some(even), Some(odd)) => {
                even.mirrored * odd.mirrored * if even.below && odd.below { 2 } else { 1 }
            }
            _ => 0,
        }
    }
}

/// Major rows of an orbit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Major {
    /// The white ones among the rows; bit i is the i-th row of the parity.
    pub(super) rows: u32,
    pub(super) rank: u32,
}

/// The row sets with the same number of white queens in even rows.
#[derive(Clone, Debug)]
pub(super) struct Stratum {
    pub(super) lines: Lines,
    /// White queens in even rows.
    pub(super) white: u32,
    /// The major rows by rank, in batches.
    majors: Vec<Major>,
    batches: Vec<Batch>,
    /// All minor rows, by their central ones.
    minors: Vec<Minor>,
}

/// Minor rows of an orbit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Minor {
    /// Which lines they have, the most central one in the highest bit.
    central_first: u32,
    rank: u32,
    rows: u32,
}

/// Minor rows of a block, at most. With 26 N = 28 takes longer (7 white queens, 1 GB), with 12 N = 20 does.
const BLOCK_MAX: usize = 16;

/// Cuts minor rows, of which `lines` may tell them apart, into blocks: by as many of their central lines as it takes.
fn cut_up<'a>(minors: &'a [Minor], lines: u32, blocks: &mut Vec<&'a [Minor]>) {
    if minors.len() <= BLOCK_MAX {
        blocks.push(minors);
        return;
    }
    let lines = lines - 1;
    let (without, with) =
        minors.split_at(minors.partition_point(|minor| minor.central_first >> lines & 1 == 0));
    for half in [without, with].into_iter().filter(|half| !half.is_empty()) {
        cut_up(half, lines, blocks);
    }
}

/// A place among the orbits.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    number: u64,
    work_before: u128,
}

/// Major rows of nearby ranks.
#[derive(Clone, Copy, Debug)]
struct Batch {
    /// The first orbit.
    first: u64,
    /// The guess at the work of all orbits before, and of each of its own.
    work_before: u128,
    work_each: u64,
}

/// Orbits that are counted together: those of a range with major rows of one batch and minor rows of one block.
#[derive(Debug)]
pub(super) struct Tile<'a> {
    pub(super) stratum: &'a Stratum,
    /// The majors of the batch, by rank.
    pub(super) batch: &'a [Major],
    /// The minors of the block with their ranks, by rank.
    pub(super) block: Vec<(u32, u32)>,
    /// For some of the majors the minors that are counted with it.
    pub(super) parts: Vec<TilePart>,
}

impl Tile<'_> {
    /// The lowest and the highest rank of the batch.
    pub(super) fn ranks(&self) -> RangeInclusive<u32> {
        self.batch[0].rank..=self.batch[self.batch.len() - 1].rank
    }

    /// The orbits of all its parts, while these are whole.
    fn orbits(&self) -> Range<u64> {
        let last = &self.parts[self.parts.len() - 1];
        self.parts[0].first..last.first + last.minors.end as u64
    }

    /// The part that has this orbit of the tile.
    fn part(&self, number: u64) -> &TilePart {
        &self.parts[self.parts.partition_point(|part| part.first <= number) - 1]
    }
}

/// Orbits of a tile with the same major rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TilePart {
    pub(super) major: Major,
    /// The number of the orbit that has the block's first minor.
    pub(super) first: u64,
    /// Which minors of the block.
    pub(super) minors: Range<usize>,
}

impl Stratum {
    fn new(lines: Lines, white: u32, first: Place) -> Option<(Self, Place)> {
        let (major, minor) = (lines.major(), lines.major().other());
        let central: Vec<u32> = lines.central_lines(minor).collect();
        let central_first = |rows: u32| central.iter().fold(0, |key, line| key << 1 | (rows >> line & 1));
        let minor_of =
            |rows| Minor { central_first: central_first(rows), rank: lines.rank(minor, rows), rows };
        let mut minors: Vec<Minor> = lines.sets(minor, lines.white(minor, white)).map(minor_of).collect();
        minors.sort_unstable();
        let mut ranks: Vec<u32> = minors.iter().map(|minor| minor.rank).collect();
        ranks.sort_unstable();
        let sets = lines.sets(major, lines.white(major, white)).filter(|&rows| lines.is_representative(rows));
        let mut majors: Vec<Major> = sets.map(|rows| Major { rows, rank: lines.rank(major, rows) }).collect();
        majors.retain(|major| ranks[0] <= major.rank);
        majors.sort_unstable_by_key(|major| (major.rank, major.rows));
        let major_ranks: Vec<u32> = {
            let sets = lines.sets(major, lines.white(major, white));
            let mut ranks: Vec<u32> = sets.map(|rows| lines.rank(major, rows)).collect();
            ranks.sort_unstable();
            ranks
        };
        let mut next = first;
        let mut batches = Vec::new();
        for batch in majors.chunks(Lines::BATCH) {
            let highest = batch[batch.len() - 1].rank;
            let share = |ranks: &[u32]| (ranks.partition_point(|&rank| rank <= highest), ranks.len());
            let work_each = work::of_batch(lines.n(), [share(&ranks), share(&major_ranks)]);
            batches.push(Batch { first: next.number, work_before: next.work_before, work_each });
            let orbits: usize = batch.iter().map(|m| ranks.partition_point(|&rank| rank <= m.rank)).sum();
            next.number += orbits as u64;
            next.work_before += orbits as u128 * u128::from(work_each);
        }
        (next.number > first.number).then_some((Self { lines, white, majors, batches, minors }, next))
    }

    fn batch(&self, number: usize) -> &[Major] {
        self.majors.chunks(Lines::BATCH).nth(number).expect("a batch of the stratum")
    }

    /// The tile of an orbit, with all of its parts.
    fn tile(&self, number: u64) -> Tile<'_> {
        let at = self.batches.partition_point(|batch| batch.first <= number) - 1;
        let batch = self.batch(at);
        let mut first = self.batches[at].first;
        let ranked = |rank: u32| move |minor: &&Minor| minor.rank <= rank;
        let highest = batch[batch.len() - 1].rank;
        let wanted: Vec<Minor> = self.minors.iter().filter(ranked(highest)).copied().collect();
        let mut blocks = Vec::new();
        cut_up(&wanted, self.lines.count(self.lines.major().other()), &mut blocks);
        for block in blocks {
            let majors = |minor: &Minor| batch.len() - batch.partition_point(|major| major.rank < minor.rank);
            let orbits: usize = block.iter().map(majors).sum();
            if number < first + orbits as u64 {
                let mut next = first;
                let part = |&major: &Major| {
                    let (first, minors) = (next, 0..block.iter().filter(ranked(major.rank)).count());
                    next += minors.len() as u64;
                    TilePart { major, first, minors }
                };
                let parts = batch.iter().map(part).filter(|part| !part.minors.is_empty()).collect();
                let mut block: Vec<_> = block.iter().map(|minor| (minor.rows, minor.rank)).collect();
                block.sort_unstable_by_key(|(rows, rank)| (*rank, *rows));
                return Tile { stratum: self, batch, block, parts };
            }
            first += orbits as u64;
        }
        unreachable!("an orbit of this stratum")
    }

    pub(super) fn weight(&self, major: Major, minor: u32) -> u32 {
        self.lines.row_weight([major.rows, minor])
    }
}

/// All orbits of an N, numbered `0..len`.
///
/// For even N the mirror images and the half turn map a row set R to its complement, to its reverse or to both: of the
/// four one is kept. The half turn exchanges even rows with odd ones, so odd rows can always be the major ones. For odd
/// N only the upside-down image changes R, to its reverse. `docs/colours.md` tells the weights.
///
/// Orbits that share lists, filters and tables stand together.
#[derive(Clone, Debug)]
pub struct RowSets {
    lines: Lines,
    strata: Vec<Stratum>,
    len: u64,
    work: u128,
}

impl RowSets {
    /// Smaller boards are not counted by colours.
    pub const N_MIN: u32 = 4;

    /// The orbits for boards of `n`; `None` below [`N_MIN`](Self::N_MIN).
    pub fn new(n: BoardSize) -> Option<Self> {
        if n.get() < Self::N_MIN {
            return None;
        }
        let lines = Lines::new(n);
        let (mut strata, mut end) = (Vec::new(), Place::default());
        for white in lines.strata() {
            if let Some((stratum, next)) = Stratum::new(lines, white, end) {
                strata.push(stratum);
                end = next;
            }
        }
        Some(Self { lines, strata, len: end.number, work: end.work_before })
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.lines.n()
    }

    /// The number of orbits, fewer than 2^32.
    #[expect(clippy::len_without_is_empty, reason = "there always are some")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The ranges of orbits that have the same number of white queens in even rows, and these numbers.
    pub fn strata(&self) -> impl Iterator<Item = (u32, Range<u64>)> {
        let firsts = self.strata.iter().map(|stratum| stratum.batches[0].first);
        let ends = firsts.clone().skip(1).chain([self.len]);
        let ranges = self.strata.iter().zip(firsts.zip(ends));
        ranges.map(|(stratum, (first, end))| (stratum.white, first..end))
    }

    /// The range of orbits around this one that are counted together.
    pub fn together(&self, number: u64) -> Range<u64> {
        self.stratum(number).tile(number).orbits()
    }

    /// Where the orbits that are counted with this one begin, and where those of them begin that have its major rows.
    pub(super) fn starts(&self, number: u64) -> [u64; 2] {
        let tile = self.stratum(number).tile(number);
        [tile.orbits().start, tile.part(number).first]
    }

    /// A guess at the time that a range takes, in nanoseconds of a core of today; at least 1.
    pub fn work(&self, range: &Range<u64>) -> u64 {
        u64::try_from((self.work_before(range.end) - self.work_before(range.start)).max(1))
            .unwrap_or(u64::MAX)
    }

    /// The same for all orbits, which may be more than 2^64.
    pub fn work_of_all(&self) -> u128 {
        self.work_before(self.len())
    }

    /// The same for the orbit that takes longest.
    pub(crate) fn work_of_heaviest(&self) -> u64 {
        let batches = self.strata.iter().flat_map(|stratum| &stratum.batches);
        batches.map(|batch| batch.work_each).max().expect("there always are some")
    }

    /// Bytes that a thread needs to multiply a range, however few it is given for it, and beside what it is given.
    pub fn memory_least(&self, range: &Range<u64>) -> u64 {
        let met = self.strata().filter(|(_, orbits)| orbits.start < range.end && range.start < orbits.end);
        met.map(|(white, _)| memory::least(self.lines, white)).max().unwrap_or(0)
    }

    /// The end of the range that begins at `from` and takes about so long: after `from`, not after the last. Orbits that
    /// are counted together are left together where that makes the range shorter by a third at most.
    pub fn cut(&self, from: u64, work: u64) -> u64 {
        let until = self.work_before(from) + u128::from(work);
        // The last number with no more work before it.
        let (mut low, mut high) = (from + 1, self.len());
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.work_before(middle) <= until {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if low == self.len() {
            return low;
        }
        let shortest = from + 1 + (low - from) * 2 / 3;
        let starts = self.starts(low);
        starts.into_iter().find(|start| (shortest..=low).contains(start)).unwrap_or(low)
    }

    /// The range around an orbit of so much work, as [`cut`](Self::cut) makes them of those that are counted together.
    pub fn piece(&self, number: u64, work: u64) -> Range<u64> {
        let Range { mut start, end: last } = self.together(number);
        loop {
            let end = self.cut(start, work).min(last);
            if number < end {
                return start..end;
            }
            start = end;
        }
    }

    /// The guess at the work of all orbits before this one.
    fn work_before(&self, number: u64) -> u128 {
        if number == self.len {
            return self.work;
        }
        let batches = &self.stratum(number).batches;
        let batch = &batches[batches.partition_point(|batch| batch.first <= number) - 1];
        batch.work_before + u128::from(number - batch.first) * u128::from(batch.work_each)
    }

    /// The orbit of this number, below [`len`](Self::len).
    pub fn get(&self, number: u64) -> RowSet {
        let tile = self.stratum(number).tile(number);
        let part = tile.part(number);
        let (minor, _) = tile.block[usize::try_from(number - part.first).expect("orbits of a tile")];
        let major = self.lines.major();
        let rows = self.lines.spread(major, part.major.rows) | self.lines.spread(major.other(), minor);
        let weight = tile.stratum.weight(part.major, minor);
        RowSet { rows, weight, lines: self.lines, rank: part.major.rank }
    }

    fn stratum(&self, number: u64) -> &Stratum {
        assert!(number < self.len, "orbit {number} of {}", self.len);
        let after = self.strata.partition_point(|stratum| stratum.batches[0].first <= number);
        &self.strata[after - 1]
    }

    /// A range of orbits, tile by tile.
    pub(super) fn tiles(&self, range: Range<u64>) -> impl Iterator<Item = Tile<'_>> {
        let mut next = range.start;
        std::iter::from_fn(move || {
            if next >= range.end {
                return None;
            }
            let mut tile = self.stratum(next).tile(next);
            let end = tile.orbits().end;
            for part in &mut tile.parts {
                let cut = |number: u64| {
                    let before = number.saturating_sub(part.first).min(part.minors.end as u64);
                    usize::try_from(before).expect("orbits of a tile")
                };
                part.minors = cut(next)..cut(range.end);
            }
            tile.parts.retain(|part| !part.minors.is_empty());
            next = end;
            Some(tile)
        })
    }

    pub(super) fn lines(&self) -> Lines {
        self.lines
    }
}
