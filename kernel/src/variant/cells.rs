//! Boards with cells that no queen may use and queens that stand already, and how people write them down.

use std::fmt;
use std::str::FromStr;

use crate::board::{BoardSize, columns_of};
use crate::ladder;
use crate::rows::last_line;
use crate::solution::Solution;
use crate::subproblem::Subproblem;

/// A cell by its row, from the top, and its column, from the left; both from 0.
///
/// People name it as in chess: the column by a letter, `a` the leftmost (`aa` follows `z`), and the row by its number from
/// the bottom, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Row from the top.
    pub row: u8,
    /// Column from the left.
    pub column: u8,
}

/// Letters of the alphabet.
const LETTERS: u8 = 26;

impl Cell {
    /// The cell of this name on an `n` by `n` board.
    ///
    /// ```
    /// use nqueens_kernel::{board::BoardSize, variant::Cell};
    ///
    /// let eight = BoardSize::new(8).unwrap();
    /// let corner = Cell::read(eight, "a1").unwrap();
    /// assert_eq!((corner.row, corner.column), (7, 0));
    /// assert!(Cell::read(eight, "i1").is_err());
    /// ```
    pub fn read(n: BoardSize, text: &str) -> Result<Self, InvalidCells> {
        let invalid = || InvalidCells::NoCell { n, text: text.to_owned() };
        let digits = text.find(|c: char| !c.is_ascii_lowercase()).ok_or_else(invalid)?;
        let (letters, digits) = text.split_at(digits);
        let number = |letter: u8| letter - b'a';
        let column = match *letters.as_bytes() {
            [letter] => Some(number(letter)),
            [b'a', letter] => Some(LETTERS + number(letter)),
            _ => None,
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let from_bottom: Option<u8> = digits.parse().ok().filter(|_| is_number);
        let row = from_bottom.and_then(|from_bottom| u8::try_from(n.get()).ok()?.checked_sub(from_bottom));
        let column = column.filter(|column| u32::from(*column) < n.get());
        row.zip(column).map(|(row, column)| Self { row, column }).ok_or_else(invalid)
    }

    /// Its name on an `n` by `n` board.
    pub fn name(self, n: BoardSize) -> String {
        let letter = |number| char::from(b'a' + number);
        let column = match self.column.checked_sub(LETTERS) {
            None => letter(self.column).to_string(),
            Some(beyond) => format!("a{}", letter(beyond)),
        };
        format!("{column}{}", last_line(n) - self.row + 1)
    }

    fn attacks(self, other: Self) -> bool {
        let [rows, columns] = [self.row.abs_diff(other.row), self.column.abs_diff(other.column)];
        rows == 0 || columns == 0 || rows == columns
    }
}

/// An N by N board with given queens, of which no two attack each other, and blocked cells.
///
/// Its solutions are those of the whole board that have all the given queens and none on a blocked cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cells {
    n: BoardSize,
    /// Columns of each row where a queen may stand; where one is given, its column alone. Nothing beyond row N-1.
    masks: [u32; BoardSize::MAX.index()],
    /// The rows with a given queen.
    given: u32,
}

impl Cells {
    /// An open cell, a blocked cell and a given queen, as they are drawn.
    const SIGNS: [char; 3] = ['.', '#', 'Q'];

    /// No queen is given, and no cell blocked.
    pub fn open(n: BoardSize) -> Self {
        let mut masks = [0; BoardSize::MAX.index()];
        masks[..n.index()].fill(n.full());
        Self { n, masks, given: 0 }
    }

    /// Reads a drawing: N lines from the top row down, of N cells each. `.` is an open cell, `#` a blocked one, `Q` a given
    /// queen, whose row needs no other signs. Blanks and empty lines mean nothing.
    ///
    /// ```
    /// use nqueens_kernel::{board::BoardSize, variant::Cells};
    ///
    /// let cells = Cells::read(BoardSize::new(4).unwrap(), ". . # .\n....\n....\n..Q.").unwrap();
    /// assert_eq!(cells.to_string(), "..#.\n....\n....\n..Q.");
    /// assert_eq!(cells.solutions().map(|found| found.to_string()).collect::<Vec<_>>(), ["1 3 0 2"]);
    /// ```
    pub fn read(n: BoardSize, text: &str) -> Result<Self, InvalidCells> {
        let lines = drawn_lines(text);
        if lines.len() != n.index() {
            return Err(InvalidCells::Rows { n, rows: lines.len() });
        }
        let (mut cells, mut queens) = (Self::open(n), Vec::new());
        for (row, line) in n.lines().zip(&lines) {
            let found = line.chars().count();
            if found != n.index() {
                return Err(InvalidCells::Columns { n, row: row + 1, cells: found });
            }
            for (column, sign) in n.lines().zip(line.chars()) {
                let [open, blocked, queen] = Self::SIGNS.map(|known| known == sign);
                if blocked {
                    cells.masks[usize::from(row)] &= !(1 << column);
                } else if queen {
                    queens.push(Cell { row, column });
                } else if !open {
                    return Err(InvalidCells::Sign { row: row + 1, sign });
                }
            }
        }
        queens.into_iter().try_fold(cells, Self::with_queen)
    }

    /// The same with one more given queen; a queen that is given already changes nothing.
    pub fn with_queen(mut self, queen: Cell) -> Result<Self, InvalidCells> {
        let name = |cell: Cell| cell.name(self.n);
        let given = self.given();
        if given.contains(&queen) {
            return Ok(self);
        }
        if let Some(&other) = given.iter().find(|other| other.attacks(queen)) {
            return Err(InvalidCells::Attack(name(other), name(queen)));
        }
        let mask = &mut self.masks[usize::from(queen.row)];
        if *mask >> queen.column & 1 == 0 {
            return Err(InvalidCells::Blocked(name(queen)));
        }
        *mask = 1 << queen.column;
        self.given |= 1 << queen.row;
        Ok(self)
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    fn is_given(&self, row: u8) -> bool {
        self.given >> row & 1 == 1
    }

    /// The given queens, by rows from the top.
    pub fn given(&self) -> Vec<Cell> {
        let rows = self.n.lines().filter(|row| self.is_given(*row));
        rows.flat_map(|row| columns_of(self.masks[usize::from(row)]).map(move |column| Cell { row, column }))
            .collect()
    }

    /// Number of blocked cells in the rows without a given queen.
    pub fn blocked(&self) -> u32 {
        let rows = self.n.lines().filter(|row| !self.is_given(*row));
        rows.map(|row| self.n.get() - self.masks[usize::from(row)].count_ones()).sum()
    }

    /// Whether nothing sets it apart from the whole board.
    pub fn is_open(&self) -> bool {
        *self == Self::open(self.n)
    }

    /// The columns of each row, from the top, where a queen may stand; where one is given, its column alone.
    pub fn masks(&self) -> &[u32] {
        &self.masks[..self.n.index()]
    }

    /// Its solutions in ascending order, found one at a time as they are asked for.
    pub fn solutions(&self) -> impl Iterator<Item = Solution> + use<> {
        // All that a given queen attacks, too: without it, a search from the top comes late to a queen at the bottom.
        let board = Subproblem::of_masks(self.n, self.masks());
        let place = |board: Option<Subproblem>, queen: Cell| board?.place(queen.row, queen.column);
        let mut allowed = self.masks().to_vec();
        if let Some(board) = self.given().into_iter().fold(Some(board), place) {
            for open in board.rows() {
                allowed[usize::from(open.row)] = open.allowed;
            }
        }
        ladder::solutions_within(self.n, allowed)
    }
}

/// The rows of a drawing, without blanks.
fn drawn_lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<String>());
    lines.filter(|line| !line.is_empty()).collect()
}

impl fmt::Display for Cells {
    /// The drawing that [`read`](Self::read) reads, without a line end after the last row.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [open, blocked, queen] = Self::SIGNS;
        let sign =
            |row: u8, column: u8| match (self.is_given(row), self.masks[usize::from(row)] >> column & 1) {
                (true, 1) => queen,
                (false, 0) => blocked,
                _ => open,
            };
        let line = |row| self.n.lines().map(|column| sign(row, column)).collect::<String>();
        f.write_str(&self.n.lines().map(line).collect::<Vec<_>>().join("\n"))
    }
}

impl FromStr for Cells {
    type Err = InvalidCells;

    /// As [`read`](Self::read), of a board of as many rows as the drawing has.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rows = drawn_lines(text).len();
        let n = u32::try_from(rows).ok().and_then(|rows| BoardSize::new(rows).ok());
        Self::read(n.ok_or(InvalidCells::Size(rows))?, text)
    }
}

/// Why a text means no board of given queens and blocked cells.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCells {
    /// It names no cell of the board.
    #[error("'{text}' is no cell of the {n} by {n} board, whose cells are a1 to {last}", last = last_cell(*n))]
    NoCell {
        /// Board size.
        n: BoardSize,
        /// What was given.
        text: String,
    },
    /// A drawing of no board.
    #[error("a drawing of a board has 1 to {max} rows, not {0}", max = BoardSize::MAX)]
    Size(usize),
    /// The drawing has another height.
    #[error("a drawing of the {n} by {n} board has {n} rows, not {rows}")]
    Rows {
        /// Board size.
        n: BoardSize,
        /// Rows of the drawing.
        rows: usize,
    },
    /// A row of the drawing has another width.
    #[error("row {row} of the drawing, from the top, has {cells} cells, not {n}")]
    Columns {
        /// Board size.
        n: BoardSize,
        /// Number of the row, from 1.
        row: u8,
        /// Its cells.
        cells: usize,
    },
    /// A cell of the drawing is none.
    #[error(
        "row {row} of the drawing, from the top, has {sign:?}; a cell is '.' (open), '#' (blocked) or 'Q' (a given queen)"
    )]
    Sign {
        /// Number of the row, from 1.
        row: u8,
        /// What stands there.
        sign: char,
    },
    /// A queen is given on a blocked cell.
    #[error("a queen is given on {0}, which is blocked")]
    Blocked(String),
    /// Two given queens attack each other.
    #[error("the queens given on {0} and {1} attack each other")]
    Attack(String, String),
}

/// The name of the cell in the upper right corner.
fn last_cell(n: BoardSize) -> String {
    Cell { row: 0, column: last_line(n) }.name(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(n: u32) -> BoardSize {
        BoardSize::new(n).unwrap()
    }

    #[test]
    fn every_cell_is_read_by_its_name() {
        for n in [1, 8, 26, 27, 31].map(board) {
            for (row, column) in n.lines().flat_map(|row| n.lines().map(move |column| (row, column))) {
                let cell = Cell { row, column };
                assert_eq!(Cell::read(n, &cell.name(n)), Ok(cell));
            }
        }
        assert_eq!(Cell { row: 0, column: 30 }.name(board(31)), "ae31");
        for wrong in
            ["", "a", "1", "a0", "a9", "i1", "A1", "a01", "a+1", "1a", "aa1", "a1 ", "a1,b2", "\u{e4}1"]
        {
            let error = Cell::read(board(8), wrong).unwrap_err().to_string();
            assert_eq!(error, format!("'{wrong}' is no cell of the 8 by 8 board, whose cells are a1 to h8"));
        }
    }

    #[test]
    fn drawings_are_read_as_they_are_drawn() {
        let text = "Q....\n..#..\n.....\n.#.##\n.....";
        let cells = Cells::read(board(5), text).unwrap();
        assert_eq!((cells.to_string(), text.parse()), (text.to_owned(), Ok(cells)));
        assert_eq!((cells.given().len(), cells.blocked(), cells.is_open()), (1, 4, false));
        assert_eq!(Cells::read(board(5), "\nQ . . . .\r\n..#..\n\n.....\n.#.##\n  .....\n\n"), Ok(cells));
        assert!(Cells::open(board(3)).is_open());
        // Beside a given queen nothing else matters.
        let beside = Cells::read(board(2), "Q#\n..").unwrap();
        assert_eq!((beside.to_string().as_str(), beside.blocked()), ("Q.\n..", 0));
    }

    #[test]
    fn what_is_no_drawing_is_refused() {
        let error = |text: &str| Cells::read(board(2), text).unwrap_err().to_string();
        assert_eq!(error("..\n"), "a drawing of the 2 by 2 board has 2 rows, not 1");
        assert_eq!(error("..\n...\n"), "row 2 of the drawing, from the top, has 3 cells, not 2");
        assert!(
            error("..\n.x").starts_with("row 2 of the drawing, from the top, has 'x'; a cell is '.' (open)")
        );
        assert_eq!(error("Q.\n.Q"), "the queens given on a2 and b1 attack each other");
        for text in [String::new(), ".".repeat(32), ".\n".repeat(32)] {
            assert!(text.parse::<Cells>().is_err());
        }
        let cells = Cells::read(board(2), "..\n#.").unwrap();
        let corner = Cell::read(board(2), "a1").unwrap();
        assert_eq!(cells.with_queen(corner), Err(InvalidCells::Blocked("a1".to_owned())));
    }

    #[test]
    fn a_queen_given_twice_is_one_queen() {
        let queen = Cell { row: 1, column: 3 };
        let once = Cells::open(board(5)).with_queen(queen).unwrap();
        assert_eq!(once.with_queen(queen), Ok(once));
    }
}
