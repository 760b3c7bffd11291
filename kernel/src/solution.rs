//! One solution: a board with N queens of which no two attack each other, and its images under rotation and
//! reflection.

use std::fmt;

use strum::{Display, IntoStaticStr};

use crate::board::BoardSize;

/// Whether no two queens, one a row, share a column or a diagonal: `columns[r]` is the column of row `r`'s queen.
///
/// This is the definition of the problem, and the only rule that the brute-force rung knows.
pub(crate) fn no_two_attack(columns: &[u8]) -> bool {
    (1..columns.len()).all(|row| is_safe(&columns[..row], columns[row]))
}

/// Whether a queen on `column` in the row below `above`, which holds one queen a row, is attacked by none of
/// them.
pub(crate) fn is_safe(above: &[u8], column: u8) -> bool {
    (1..).zip(above.iter().rev()).all(|(distance, &other)| {
        let shift = other.abs_diff(column);
        shift != 0 && shift != distance
    })
}

/// N queens on an N by N board, one a row, no two on one column or diagonal.
///
/// Ordered by the columns of its queens from the top row down, which is the order that [`ladder::solutions`]
/// lists them in; a smaller board comes before a larger one.
///
/// ```
/// use nqueens_kernel::solution::{Solution, Symmetry};
///
/// let solution = Solution::new(&[1, 3, 0, 2]).unwrap();
/// assert_eq!(solution.to_string(), "1 3 0 2");
/// assert_eq!(solution.board(), ". Q . .\n. . . Q\nQ . . .\n. . Q .");
/// assert_eq!(solution.symmetry(), Symmetry::QuarterTurn);
/// assert!(Solution::new(&[0, 1, 3, 2]).is_none());
/// ```
///
/// [`ladder::solutions`]: crate::ladder::solutions
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Solution {
    n: BoardSize,
    /// The first N are the columns of the queens, by row; the rest is zero.
    columns: [u8; BoardSize::MAX.index()],
}

impl Solution {
    /// The solution whose queen in row `r` stands on column `columns[r]`, rows from the top, columns `0..N`.
    ///
    /// `None` if there are no queens or more than 31, one is off the board, or two attack each other.
    pub fn new(columns: &[u8]) -> Option<Self> {
        let n = BoardSize::new(u32::try_from(columns.len()).ok()?).ok()?;
        let on_board = columns.iter().all(|&column| usize::from(column) < n.index());
        (on_board && no_two_attack(columns)).then(|| Self::found(n, columns))
    }

    /// What a search has found. Searches are trusted outside debug builds: the tests hold them to this check.
    pub(crate) fn found(n: BoardSize, queens: &[u8]) -> Self {
        debug_assert!(queens.len() == n.index() && no_two_attack(queens), "a search found {queens:?}");
        let mut columns = [0; BoardSize::MAX.index()];
        columns[..n.index()].copy_from_slice(queens);
        Self { n, columns }
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// The column of each row's queen, from the top row down: N numbers in `0..N`.
    pub fn columns(&self) -> &[u8] {
        &self.columns[..self.n.index()]
    }

    /// The solution seen after `turn`.
    #[must_use]
    pub fn image(&self, turn: Image) -> Self {
        let mut columns = [0; BoardSize::MAX.index()];
        for (to, column) in columns.iter_mut().zip(self.image_columns(turn)) {
            *to = column;
        }
        Self { n: self.n, columns }
    }

    /// The distinct images of the solution, ascending: 8, 4 or 2 of them, 1 for N = 1.
    pub fn orbit(&self) -> Vec<Self> {
        let mut images = Image::ALL.map(|turn| self.image(turn)).to_vec();
        images.sort_unstable();
        images.dedup();
        images
    }

    /// The smallest of its images, which stands for the whole orbit.
    #[must_use]
    pub fn canonical(&self) -> Self {
        Image::ALL.map(|turn| self.image(turn)).into_iter().min().expect("eight images")
    }

    /// Whether none of its images is smaller. Cheaper than [`canonical`](Self::canonical): the images are
    /// compared row by row and seldom looked at beyond the first.
    pub fn is_canonical(&self) -> bool {
        let own = || self.columns().iter().copied();
        Image::ALL.into_iter().all(|turn| self.image_columns(turn).ge(own()))
    }

    /// Which turns of the board leave the solution as it is. No reflection does, for N >= 2.
    pub fn symmetry(&self) -> Symmetry {
        if self.image(Image::QUARTER_TURN) == *self {
            Symmetry::QuarterTurn
        } else if self.image(Image::HALF_TURN) == *self {
            Symmetry::HalfTurn
        } else {
            Symmetry::Identity
        }
    }

    /// The board drawn row by row from the top, `Q` a queen and `.` an empty cell, separated by blanks; no line
    /// end after the last row.
    ///
    /// Column 0 is drawn leftmost, so that a drawing reads like the row of numbers of `Display`. (The classic
    /// texts, which print bitmaps, draw it rightmost: their boards are the mirror images of these.)
    pub fn board(&self) -> String {
        let cell = |queen, column| if queen == column { "Q" } else { "." };
        let row =
            |&queen: &u8| self.n.lines().map(|column| cell(queen, column)).collect::<Vec<_>>().join(" ");
        self.columns().iter().map(row).collect::<Vec<_>>().join("\n")
    }

    /// The columns of the image's queens, from the top; each is worked out only when asked for.
    fn image_columns(&self, turn: Image) -> impl Iterator<Item = u8> {
        let last = self.n.lines().next_back().expect("at least one line");
        let flip = move |line, wanted| if wanted { last - line } else { line };
        self.n.lines().map(move |row| {
            let line = flip(row, turn.rows_flipped);
            let queen = if turn.transposed { self.row_of(line) } else { self.columns[usize::from(line)] };
            flip(queen, turn.columns_flipped)
        })
    }

    /// The row of the queen in `column`.
    fn row_of(&self, column: u8) -> u8 {
        let mut queens = self.n.lines().zip(self.columns());
        queens.find(|&(_, &queen)| queen == column).expect("every column has its queen").0
    }
}

/// The columns from the top row down, as in `0 4 7 5 2 6 1 3`.
impl fmt::Display for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, column) in self.columns().iter().enumerate() {
            let blank = if row == 0 { "" } else { " " };
            write!(f, "{blank}{column}")?;
        }
        Ok(())
    }
}

/// One of the 8 rotations and reflections of the board, the dihedral group D4.
///
/// Each is a transposition or none, then the rows put upside down or not, then the columns reversed or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    transposed: bool,
    rows_flipped: bool,
    columns_flipped: bool,
}

impl Image {
    /// The board as it is.
    pub const IDENTITY: Self = Self::new(false, false, false);
    /// Left and right exchanged: row `r`, column `c` goes to row `r`, column `N-1-c`.
    pub const MIRROR: Self = Self::new(false, false, true);
    /// 90 degrees clockwise: row `r`, column `c` goes to row `c`, column `N-1-r`.
    pub const QUARTER_TURN: Self = Self::new(true, false, true);
    /// 180 degrees.
    pub const HALF_TURN: Self = Self::new(false, true, true);
    /// 270 degrees clockwise: row `r`, column `c` goes to row `N-1-c`, column `r`.
    pub const THREE_QUARTER_TURN: Self = Self::new(true, true, false);

    /// The four rotations, then the four reflections.
    pub const ALL: [Self; 8] = [
        Self::IDENTITY,
        Self::QUARTER_TURN,
        Self::HALF_TURN,
        Self::THREE_QUARTER_TURN,
        Self::MIRROR,
        Self::new(false, true, false),
        Self::new(true, false, false),
        Self::new(true, true, true),
    ];

    const fn new(transposed: bool, rows_flipped: bool, columns_flipped: bool) -> Self {
        Self { transposed, rows_flipped, columns_flipped }
    }
}

/// The turns that leave a solution as it is. The more of them, the fewer different images it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Symmetry {
    /// None but the full turn: 8 images, counted by COUNT8.
    #[strum(serialize = "none")]
    Identity,
    /// The half turn: 4 images, counted by COUNT4.
    HalfTurn,
    /// The quarter turn: 2 images, counted by COUNT2; but on the board of one cell, 1 image.
    QuarterTurn,
}

impl Symmetry {
    /// Number of different images of such a solution on an `n` by `n` board.
    pub fn members(self, n: BoardSize) -> u8 {
        match self {
            Self::Identity => 8,
            Self::HalfTurn => 4,
            Self::QuarterTurn if n == BoardSize::MIN => 1,
            Self::QuarterTurn => 2,
        }
    }

    /// The name to print: `none`, `half-turn` or `quarter-turn`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
