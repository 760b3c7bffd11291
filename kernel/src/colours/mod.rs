//! Counting by colours: queens on white cells and queens on black cells share no diagonal, so the placements of one
//! colour are counted by rows and columns, and these counts are multiplied.
//!
//! `docs/colours.md` tells the method, its measurements and what did not pay.

mod lines;
mod row_sets;
#[cfg(test)]
mod tests;

pub use row_sets::{RowSet, RowSets};
