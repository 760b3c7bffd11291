//! Boards with given queens and blocked cells, and how people draw them.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::board::BoardSize;
use crate::ladder;
use crate::solution::Solution;
use crate::subproblem::Subproblem;

/// An N by N board of which some cells are open. A given queen leaves no other cell of its row open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cells {
    n: BoardSize,
    /// Open columns of each row, from the top. Nothing beyond row N-1.
    masks: [u32; BoardSize::MAX.index()],
}

impl Cells {
    /// All cells are open.
    pub fn open(n: BoardSize) -> Self {
        let mut masks = [0; BoardSize::MAX.index()];
        masks[..n.index()].fill(n.full());
        Self { n, masks }
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// The open columns of each row, from the top.
    pub fn masks(&self) -> &[u32] {
        &self.masks[..self.n.index()]
    }

    /// Its solutions in ascending order, found one at a time as they are asked for.
    pub fn solutions(&self) -> impl Iterator<Item = Solution> + use<> {
        let mut allowed = self.masks().to_vec();
        // Without what a queen at the bottom attacks, a search from the top comes late to it.
        for open in Subproblem::of_masks(self.n, self.masks()).settled().rows() {
            allowed[usize::from(open.row)] = open.allowed;
        }
        ladder::solutions_within(self.n, allowed)
    }
}

/// What is counted, in a few words.
pub fn subject(n: BoardSize, cells: Option<&Cells>) -> String {
    let Some(cells) = cells else { return format!("N = {n}") };
    let open = cells.masks().iter().map(|mask| mask.count_ones()).sum::<u32>();
    format!("N = {n} with {open} of {} cells open", n.get() * n.get())
}

/// What files about the solutions of a board are called, but for their endings: `nqueens-8`, and with some digits more where
/// cells are blocked.
pub fn file_stem(n: BoardSize, cells: Option<&Cells>) -> String {
    let digits = |cells: &Cells| format!("-{}", hex::encode(&Sha256::digest(cells.to_string())[..4]));
    format!("nqueens-{n}{}", cells.map_or_else(String::new, digits))
}

impl fmt::Display for Cells {
    /// The drawing that is read, without a line end after the last row. A row with one open cell is drawn as a given queen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = |mask: u32, column| match (mask >> column & 1 == 1, mask.is_power_of_two()) {
            (true, true) => 'Q',
            (false, false) => '#',
            _ => '.',
        };
        let line = |mask: &u32| self.n.lines().map(|column| sign(*mask, column)).collect::<String>();
        f.write_str(&self.masks().iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

impl FromStr for Cells {
    type Err = InvalidCells;

    /// Reads a drawing: N lines from the top row down, of N cells each. `.` is an open cell, `#` a blocked one, `Q` a given
    /// queen, whose row needs no other signs. Blanks and empty lines mean nothing.
    ///
    /// ```
    /// use nqueens_kernel::cells::Cells;
    ///
    /// let cells: Cells = ". . # .\n....\n....\n..Q.".parse().unwrap();
    /// assert_eq!(cells.to_string(), "..#.\n....\n....\n..Q.");
    /// assert_eq!(cells.solutions().map(|found| found.to_string()).collect::<Vec<_>>(), ["1 3 0 2"]);
    /// ```
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<String>());
        let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        let n = u32::try_from(lines.len()).ok().and_then(|rows| BoardSize::new(rows).ok());
        let n = n.ok_or(InvalidCells::Size(lines.len()))?;
        let mut cells = Self::open(n);
        for ((row, line), mask) in (1..).zip(&lines).zip(&mut cells.masks) {
            let found = line.chars().count();
            if found != n.index() {
                return Err(InvalidCells::Columns { n, row, cells: found });
            }
            let mut queens = 0_u32;
            for (column, sign) in n.lines().zip(line.chars()) {
                match sign {
                    '.' => {}
                    '#' => *mask &= !(1 << column),
                    'Q' => queens |= 1 << column,
                    _ => return Err(InvalidCells::Sign { row, sign }),
                }
            }
            match queens.count_ones() {
                0 => {}
                1 => *mask = queens,
                _ => *mask = 0,
            }
        }
        Ok(cells)
    }
}

/// Why a text is no drawing of a board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCells {
    /// Of no board.
    #[error("a drawing of a board has 1 to {max} rows, not {0}", max = BoardSize::MAX)]
    Size(usize),
    /// A row has another width.
    #[error("row {row} of the drawing, from the top, has {cells} cells, but the drawing has {n} rows")]
    Columns {
        /// Board size.
        n: BoardSize,
        /// Number of the row, from 1.
        row: u32,
        /// Its cells.
        cells: usize,
    },
    /// A cell is none.
    #[error(
        "row {row} of the drawing, from the top, has {sign:?}; a cell is '.' (open), '#' (blocked) or 'Q' (a given queen)"
    )]
    Sign {
        /// Number of the row, from 1.
        row: u32,
        /// What stands there.
        sign: char,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_are_read_as_they_are_drawn() {
        let text = "Q....\n..#..\n.....\n.#.##\n#####";
        let cells: Cells = text.parse().unwrap();
        assert_eq!((cells.to_string(), cells.masks()[4]), (text.to_owned(), 0));
        assert_eq!("\nQ . . . .\r\n..#..\n\n.....\n.#.##\n  #####\n\n".parse(), Ok(cells));
        // Beside a given queen nothing else matters, and there is no place for a second one.
        assert_eq!("Q#\n..".parse(), "Q.\n..".parse::<Cells>());
        assert_eq!("QQ\n..".parse(), "##\n..".parse::<Cells>());
    }

    #[test]
    fn what_is_no_drawing_is_refused() {
        let error = |text: &str| text.parse::<Cells>().unwrap_err().to_string();
        assert_eq!(
            error("..\n...\n"),
            "row 2 of the drawing, from the top, has 3 cells, but the drawing has 2 rows"
        );
        assert!(
            error("..\n.x").starts_with("row 2 of the drawing, from the top, has 'x'; a cell is '.' (open)")
        );
        for text in [String::new(), ".".repeat(32), ".\n".repeat(32)] {
            assert!(text.parse::<Cells>().is_err());
        }
    }
}
