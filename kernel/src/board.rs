//! The board: its size, and the bitmaps that describe a row of it.

use std::fmt;
use std::str::FromStr;

/// Side length N of a board, always in `1..=31`.
///
/// 31 is the widest board whose rows fit a `u32` with one bit to spare for the shifts of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardSize(u8);

impl BoardSize {
    /// The smallest board.
    pub const MIN: Self = Self(1);
    /// The largest board that every engine, table and wire format is made for.
    pub const MAX: Self = Self(31);

    /// A board of `n` by `n` cells; an error unless `n` is in `1..=31`.
    pub fn new(n: u32) -> Result<Self, InvalidBoardSize> {
        match u8::try_from(n) {
            Ok(small @ 1..=31) => Ok(Self(small)),
            _ => Err(InvalidBoardSize(n.to_string())),
        }
    }

    /// All sizes from `self` to `last`, both included.
    pub fn up_to(self, last: Self) -> impl Iterator<Item = Self> {
        (self.0..=last.0).map(Self)
    }

    /// N, in `1..=31`.
    pub const fn get(self) -> u32 {
        self.0 as u32
    }

    /// N as an index or length.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The row numbers from the top, which are the column numbers too: `0..N`.
    pub fn lines(self) -> impl DoubleEndedIterator<Item = u8> + ExactSizeIterator {
        0..self.0
    }

    /// The bitmap of a whole row: bit `c` is column `c`, for every column.
    pub const fn full(self) -> u32 {
        (1 << self.0) - 1
    }
}

impl fmt::Display for BoardSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for BoardSize {
    type Err = InvalidBoardSize;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let n = text.parse::<u32>().map_err(|_| InvalidBoardSize(text.to_owned()))?;
        Self::new(n)
    }
}

/// What was given is no board size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("N must be a whole number from {min} to {max}, not '{0}'", min = BoardSize::MIN, max = BoardSize::MAX)]
pub struct InvalidBoardSize(String);

/// Takes the lowest column out of a bitmap: `Some(its bit)` and the bitmap without it, `None` when empty.
#[inline]
pub(crate) fn take_lowest(columns: &mut u32) -> Option<u32> {
    let bit = *columns & columns.wrapping_neg();
    *columns ^= bit;
    (bit != 0).then_some(bit)
}

/// The column numbers of a bitmap, ascending.
pub(crate) fn columns_of(mut bitmap: u32) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        take_lowest(&mut bitmap).map(|bit| u8::try_from(bit.trailing_zeros()).expect("below 32"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_outside_1_to_31_cannot_be_built() {
        for text in ["0", "32", "-1", "4294967296", "8.0", "eight", ""] {
            let error = text.parse::<BoardSize>().unwrap_err().to_string();
            assert_eq!(error, format!("N must be a whole number from 1 to 31, not '{text}'"));
        }
        assert_eq!("31".parse::<BoardSize>().unwrap().full(), 0x7fff_ffff);
        assert_eq!(BoardSize::MIN.up_to(BoardSize::MAX).count(), 31);
    }
}
