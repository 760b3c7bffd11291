//! How many queens filter lists before what is left of these is tabled.

use super::lines::Lines;
use super::lists::{CellClass, ColumnSets, Placed};
use super::trie::Set;
use crate::board::take_lowest;
use crate::engine::{Control, Stopped};

/// The placements in the rows of one row set: what a tree of such sets costs.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// By the number of rows that are filled, the first ones; of all rows only those with column sets that are counted.
    placements: Vec<u64>,
    listed: Listed,
}

/// The lists that a tree is joined with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    /// Placements by column set, on average.
    mean: f64,
    /// Queens in each.
    queens: f64,
    lanes: f64,
    costs: &'static Costs,
}

/// What the parts of a join take, in clocks: guesses that decide how deep trees are.
#[derive(Debug)]
pub(super) struct Costs {
    /// To filter a list of a lane, and for each placement that is on it.
    pub(super) sift: [f64; 2],
    /// For what a branch leaves of a lane's list, and for each placement of that.
    pub(super) left: [f64; 2],
    /// Vectors that a placement of each lane, on average, needs beyond the first.
    pub(super) vectors: f64,
    /// To transpose a vector of 32 lanes.
    pub(super) transpose: f64,
    /// To table it for one queen.
    pub(super) table: f64,
    /// For a leaf, for each vector that it asks, and for each queen that it has below its branch.
    pub(super) leaf: [f64; 3],
}

impl Costs {
    /// Fits to measurements by plain code, which takes octets of 32 lanes.
    pub(super) const PORTABLE: Self = Self {
        sift: [0.5, 1.5],
        left: [1.5, 2.2],
        vectors: 0.28,
        transpose: 700.0,
        table: 5.0,
        leaf: [2.5, 5.0, 0.0],
    };

    /// The same by AVX2, adjusted by hand and not fitted anew.
    #[cfg(target_arch = "x86_64")]
    pub(super) const AVX2: Self = Self {
        sift: [0.5, 1.0],
        left: [1.5, 2.2],
        vectors: 0.28,
        transpose: 260.0,
        table: 5.0,
        leaf: [2.5, 2.5, 0.0],
    };

    /// The same by AVX-512, which takes octets of 64 lanes; adjusted by hand and not fitted anew.
    #[cfg(target_arch = "x86_64")]
    pub(super) const AVX512: Self = Self {
        sift: [0.5, 0.45],
        left: [1.5, 2.2],
        vectors: 0.28,
        transpose: 180.0,
        table: 3.0,
        leaf: [2.5, 2.5, 0.0],
    };

    /// Clocks of a scheduler by the machine code of `kernel/gpu`, which takes 16 placements of 64 lanes. On an H100 branches of
    /// a queen more or less are slower (N = 21).
    pub(super) const DEVICE: Self = Self {
        sift: [0.95, 1.35],
        left: [0.0, 0.0],
        vectors: 0.11,
        transpose: 480.0,
        table: 18.0,
        leaf: [0.0, 21.0, 2.5],
    };
}

impl Listed {
    /// Lists of so many placements of so many queens, for some column sets, of which as many as there are `lanes` are
    /// joined at once.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(super) fn new(
        placements: usize,
        sets: usize,
        queens: u32,
        lanes: usize,
        costs: &'static Costs,
    ) -> Self {
        Self { mean: placements as f64 / sets as f64, queens: queens.into(), lanes: lanes as f64, costs }
    }
}

impl Shape {
    /// Counts the placements on these rows, given in the order in which they are filled.
    pub(super) fn new(
        class: &CellClass<'_>,
        rows: &[u32],
        columns: &ColumnSets,
        listed: Listed,
        control: &Control,
    ) -> Result<Self, Stopped> {
        let mut shape = Self { placements: vec![0; rows.len() + 1], listed };
        shape.count(class, rows, columns, Placed::default(), control)?;
        Ok(shape)
    }

    fn count(
        &mut self,
        class: &CellClass<'_>,
        rows: &[u32],
        columns: &ColumnSets,
        placed: Placed,
        control: &Control,
    ) -> Result<(), Stopped> {
        let filled = self.placements.len() - 1 - rows.len();
        let Some((&row, rest)) = rows.split_first() else {
            let wanted = columns.place(class.colour, placed.columns) != ColumnSets::NONE;
            self.placements[filled] += u64::from(wanted);
            return Ok(());
        };
        self.placements[filled] += 1;
        if filled == 2 {
            control.advance(0)?;
        }
        let mut free = class.free(placed, row);
        while let Some(bit) = take_lowest(&mut free) {
            self.count(class, rest, columns, CellClass::place(placed, row, bit), control)?;
        }
        Ok(())
    }

    /// Memory that the tree takes for each row set, in bytes: about two words a leaf.
    pub(super) fn bytes(&self) -> usize {
        let leaves = self.placements[self.placements.len() - 1];
        usize::try_from(8 * leaves).unwrap_or(usize::MAX)
    }

    /// The cheapest number of queens in a branch for these sorted sets of rows: from `least` to one less than there are
    /// rows, or 0.
    pub(super) fn depth(&self, lines: Lines, sets: &[Set], least: usize) -> usize {
        let queens = self.placements.len() - 1;
        let cost = |depth: &usize| self.cost(lines, sets, *depth);
        let depths = least.max(1)..queens;
        depths.min_by(|one, other| cost(one).total_cmp(&cost(other))).unwrap_or(0)
    }

    /// A guess at the time of one group of column sets, in clocks.
    fn cost(&self, lines: Lines, sets: &[Set], depth: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let real = |count: usize| count as f64;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let placements = |rows: usize| self.placements[rows] as f64;
        let Listed { mean, queens, lanes, costs } = self.listed;
        // Of the diagonals of one direction each queen of a list lies on one.
        let diagonals = f64::from(lines.n().get()) - 2.0;
        let survive = (1.0 - 1.57 * queens / diagonals).max(0.1).powi(2);
        let branches = |rows: usize| {
            let prefixes = sets.chunk_by(|(one, _), (other, _)| one[..rows] == other[..rows]).count();
            real(prefixes) * placements(rows)
        };
        let (mut cost, mut mean) = (0.0, mean);
        for rows in 1..=depth {
            cost += branches(rows) * lanes * (costs.sift[0] + costs.sift[1] * mean);
            mean *= survive;
        }
        let asked: f64 = sets
            .chunk_by(|(one, _), (other, _)| one[..depth] == other[..depth])
            .map(|sets| {
                let rows =
                    sets.iter().flat_map(|(rows, _)| &rows[depth..]).fold(0_u32, |rows, row| rows | 1 << row);
                f64::from(rows.count_ones() * lines.n().get() / 3)
            })
            .sum();
        let vectors = (1.0 - (-lanes * mean).exp()) * (1.0 + costs.vectors * mean);
        let width = lanes / 32.0;
        let queens_left = self.placements.len() - 1 - depth;
        cost += branches(depth)
            * (lanes * (costs.left[0] + costs.left[1] * mean) + vectors * costs.transpose * width);
        cost += placements(depth) * asked * vectors * costs.table;
        cost + placements(self.placements.len() - 1)
            * real(sets.len())
            * (costs.leaf[0] + (costs.leaf[1] + costs.leaf[2] * real(queens_left)) * vectors)
    }
}
