//! Diagonals as bits.

use super::lines::{Lines, Parity};

/// The colour of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// Row plus column is even.
    White,
    Black,
}

impl Colour {
    pub(super) const ALL: [Self; 2] = [Self::White, Self::Black];

    /// Those of the rows (or columns) of a parity that have queens of this colour, if the `white` ones have white queens.
    pub(super) fn of(self, lines: Lines, parity: Parity, white: u32) -> u32 {
        match self {
            Self::White => white,
            Self::Black => lines.full(parity) & !white,
        }
    }

    /// The parity of the columns where rows of this parity have their cells of this colour.
    pub(super) const fn columns(self, rows: Parity) -> Parity {
        match self {
            Self::White => rows,
            Self::Black => rows.other(),
        }
    }
}

/// For the cells of one colour the bits of the diagonals that they lie on.
///
/// Only diagonals that meet both classes of the colour (even rows and odd rows) have a bit: at most 60, at N = 31.
#[derive(Clone, Debug)]
pub(super) struct Diagonals {
    /// By the parity of the row, the row and the column: bit i of the sets of that parity.
    cells: [[[u64; 16]; 16]; 2],
    /// The number of bits.
    bits: u32,
}

impl Diagonals {
    pub(super) fn new(lines: Lines, colour: Colour) -> Self {
        // Falling diagonals have a number below 62, rising ones one from 64 on.
        let mut met = [0u128; 2];
        let mut of = [[[0u128; 16]; 16]; 2];
        let last = lines.n().get() - 1;
        for rows in [Parity::Even, Parity::Odd] {
            let columns = colour.columns(rows);
            for i in 0..lines.count(rows) {
                for j in 0..lines.count(columns) {
                    let [row, column] = [2 * i + rows.bit(), 2 * j + columns.bit()];
                    let diagonals = 1 << (row + last - column) | 1 << (64 + row + column);
                    of[rows.bit() as usize][i as usize][j as usize] = diagonals;
                    met[rows.bit() as usize] |= diagonals;
                }
            }
        }
        let shared = met[0] & met[1];
        let number = |diagonal: u128| (shared & (diagonal - 1)).count_ones();
        let mask = |mut diagonals: u128| {
            let mut mask = 0u64;
            diagonals &= shared;
            while diagonals != 0 {
                mask |= 1 << number(diagonals & diagonals.wrapping_neg());
                diagonals &= diagonals - 1;
            }
            mask
        };
        Self { cells: of.map(|rows| rows.map(|row| row.map(mask))), bits: shared.count_ones() }
    }

    /// The diagonals of a cell.
    #[inline]
    pub(super) fn cell(&self, rows: Parity, row: usize, column: usize) -> u64 {
        self.cells[rows.bit() as usize][row][column]
    }

    /// The number of bits in use.
    pub(super) fn bits(&self) -> u32 {
        self.bits
    }
}
