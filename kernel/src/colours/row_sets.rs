//! The jobs: row sets up to symmetry, numbered so that any one of them can be had at once on every machine.

use std::ops::Range;

use super::lines::{Lines, Parity};
use crate::board::BoardSize;

/// One orbit of row sets, by a representative, and which column sets are counted for it.
///
/// The rows of one parity, the **major** ones, are the ones of higher [rank](Lines::rank). They decide alone which
/// column sets are counted, so that the orbits with the same major rows share lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSet {
    /// The rows whose queens stand on white cells, where row plus column is even; bit r is row r.
    pub rows: u32,
    /// How many times what is counted for this orbit goes into the total: 1, 2 or 4.
    pub weight: u32,
    pub(super) lines: Lines,
    /// The parity of the major rows.
    pub(super) major: Parity,
    /// The rank of the major rows: column sets of higher rank are counted for their transposed images.
    pub(super) rank: u32,
}

impl RowSet {
    /// How many times a solution counts that has its queens of these columns (bit c is column c), and no others, on
    /// white cells: 0, 1, 2 or 4. The orbit's [`weight`](Self::weight) comes on top.
    pub fn columns_weight(&self, columns: u32) -> u32 {
        let weigh = |parity| self.lines.weigh(parity, self.lines.some(parity, columns), self.rank);
        let [even, odd] = [Parity::Even, Parity::Odd].map(weigh);
        match (even, odd) {
            (Some(even), Some(odd)) => even.mirrored * odd.mirrored * if even.below && odd.below { 2 } else { 1 },
            _ => 0,
        }
    }
}

/// The row sets with the same number of white queens in even rows, and major rows of one parity.
#[derive(Clone, Debug)]
struct Stratum {
    major: Parity,
    /// The sets of major rows, each with its rank and the number of its first orbit.
    majors: Vec<Major>,
    /// All sets of minor rows: such that have their first central rows in common stand together.
    minors: Vec<u32>,
    /// Their ranks, ascending.
    ranks: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Major {
    rows: u32,
    rank: u32,
    first: u64,
}

/// All orbits of an N, numbered `0..len`.
///
/// For even N the mirror images and the half turn map a row set R to its complement, to its reverse or to both: of the
/// four one is kept. The half turn exchanges even rows with odd ones, so odd rows can always be the major ones. For odd
/// N only the upside-down image changes R, to its reverse. `docs/colours.md` tells the weights.
#[derive(Clone, Debug)]
pub struct RowSets {
    lines: Lines,
    strata: Vec<Stratum>,
    len: u64,
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
        let mut sets = Self { lines, strata: Vec::new(), len: 0 };
        for white in lines.strata() {
            if lines.is_even() {
                sets.add(white, Parity::Odd);
            } else {
                sets.add(white, Parity::Odd);
                sets.add(white, Parity::Even);
            }
        }
        Some(sets)
    }

    /// Adds the orbits with `white` queens on white cells in even rows.
    fn add(&mut self, white: u32, major: Parity) {
        let lines = self.lines;
        let minor = major.other();
        let mut minors: Vec<u32> = lines.sets(minor, lines.white(minor, white)).collect();
        let mut ranks: Vec<u32> = minors.iter().map(|&rows| lines.rank(minor, rows)).collect();
        ranks.sort_unstable();
        minors.sort_unstable_by_key(|&rows| lines.central_first(minor, rows));
        let mut majors = Vec::new();
        for rows in lines.sets(major, lines.white(major, white)) {
            let rank = lines.rank(major, rows);
            let below = ranks.partition_point(|&minor| minor <= rank) as u64;
            if lines.is_representative(major, rows) && below > 0 {
                majors.push(Major { rows, rank, first: self.len });
                self.len += below;
            }
        }
        if !majors.is_empty() {
            self.strata.push(Stratum { major, majors, minors, ranks });
        }
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

    /// The orbit of this number, below [`len`](Self::len).
    pub fn get(&self, number: u64) -> RowSet {
        let (stratum, major) = self.major(number);
        let minor = stratum.minors_of(self.lines, major).nth(usize::try_from(number - major.first).expect("few"));
        self.row_set(stratum, major, minor.expect("a number of this stratum"))
    }

    /// The stratum and the major rows of an orbit.
    fn major(&self, number: u64) -> (&Stratum, Major) {
        assert!(number < self.len, "orbit {number} of {}", self.len);
        let after = self.strata.partition_point(|stratum| stratum.majors[0].first <= number);
        let stratum = &self.strata[after - 1];
        let at = stratum.majors.partition_point(|major| major.first <= number);
        (stratum, stratum.majors[at - 1])
    }

    fn row_set(&self, stratum: &Stratum, major: Major, minor: u32) -> RowSet {
        let lines = self.lines;
        let mirrored = lines.row_weight(stratum.major, [major.rows, minor]);
        let rows = lines.spread(stratum.major, major.rows) | lines.spread(stratum.major.other(), minor);
        RowSet { rows, weight: mirrored, lines, major: stratum.major, rank: major.rank }
    }

    /// The orbits of a range that have the same major rows, in turn: their sets of minor rows and weights.
    pub(super) fn groups(&self, range: Range<u64>) -> impl Iterator<Item = Group> {
        let mut next = range.start;
        std::iter::from_fn(move || {
            if next >= range.end {
                return None;
            }
            let (stratum, major) = self.major(next);
            let skipped = usize::try_from(next - major.first).expect("few");
            let left = usize::try_from(range.end - next).unwrap_or(usize::MAX);
            let minors: Vec<u32> = stratum.minors_of(self.lines, major).skip(skipped).take(left).collect();
            next += minors.len() as u64;
            let weigh = |&minor: &u32| self.lines.row_weight(stratum.major, [major.rows, minor]);
            let weights = minors.iter().map(weigh).collect();
            let rows = major.rows;
            Some(Group { major: stratum.major, rows, rank: major.rank, minors, weights })
        })
    }

    pub(super) fn lines(&self) -> Lines {
        self.lines
    }
}

impl Stratum {
    /// The sets of minor rows that go with these major rows.
    fn minors_of(&self, lines: Lines, major: Major) -> impl Iterator<Item = u32> {
        let parity = self.major.other();
        self.minors.iter().copied().filter(move |&rows| lines.rank(parity, rows) <= major.rank)
    }
}

/// Orbits with the same major rows.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The parity of the major rows.
    pub(super) major: Parity,
    /// The white ones among the major rows; bit i is the i-th row of the parity.
    pub(super) rows: u32,
    /// Their rank.
    pub(super) rank: u32,
    /// The white ones among the minor rows, for each orbit.
    pub(super) minors: Vec<u32>,
    /// The weight of each orbit.
    pub(super) weights: Vec<u32>,
}
