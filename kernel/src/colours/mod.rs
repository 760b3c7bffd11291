//! Counting by colours: queens on white cells and queens on black cells share no diagonal, so the placements of one
//! colour are counted by rows and columns, and these counts are multiplied.
//!
//! `docs/colours.md` tells the method, its measurements and what did not pay.

mod dense;
mod diagonals;
mod lines;
mod lists;
mod loops;
mod multiply;
mod row_sets;
#[cfg(test)]
mod tests;
mod transpose;
mod trie;

pub use multiply::{ColourTally, Multiplier};
pub use row_sets::{RowSet, RowSets};
