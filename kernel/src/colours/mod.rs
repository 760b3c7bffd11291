//! Counting by colours: queens on white cells and queens on black cells share no diagonal, so the placements of one
//! colour are counted by rows and columns, and these counts are multiplied.
//!
//! `docs/colours.md` has the method, `docs/performance.md` its measurements and what did not pay.

mod dense;
mod depth;
mod device;
mod diagonals;
mod lines;
mod lists;
mod loops;
mod matrix;
mod memory;
mod multiply;
mod product;
mod recount;
mod row_sets;
#[cfg(test)]
mod tests;
mod trie;
mod vectors;
mod work;

pub use multiply::Multiplier;
pub use recount::{Part, recount_each, recount_part, recount_states};
pub use row_sets::{RowSet, RowSets};

/// What counting a range of orbits of row sets gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColourTally {
    /// Solutions, each with its weights; the sum over all orbits is the board's total.
    pub weighted_solutions: u64,
    /// The measure of work: pairs of placements compared, or boards visited by a search.
    pub states: u64,
}
