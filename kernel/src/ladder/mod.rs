//! The ladder that the field climbed: the N-Queens search as it is taught, from brute force to symmetry.
//!
//! Each rung is one file that opens with what it adds to the one before. They are written to be read and for small
//! boards; being so different from one another, they check each other and everything faster. `docs/ladder.md` tells
//! the whole story with figures.
//!
//! | rung | idea |
//! |---|---|
//! | [`brute-force`](Rung::BruteForce) | all N^N boards, tested when full |
//! | [`backtracking`](Rung::Backtracking) | test each queen against those above |
//! | [`flags`](Rung::Flags) | remember which columns and diagonals are taken |
//! | [`bitmap`](Rung::Bitmap) | a row's flags in one word |
//! | [`mirror`](Rung::Mirror) | search half, count double |
//! | [`symmetry`](Rung::Symmetry) | one representative of each orbit |
//!
//! ```
//! use nqueens_kernel::board::BoardSize;
//! use nqueens_kernel::ladder::Rung;
//!
//! let eight = BoardSize::new(8).unwrap();
//! for rung in [Rung::Backtracking, Rung::Flags, Rung::Bitmap] {
//!     let count = rung.count(eight);
//!     assert_eq!((count.total, count.orbits.unique(eight), count.states), (92, Ok(12), 2056));
//! }
//! assert_eq!(Rung::Mirror.count(eight).states, 1028);
//! ```

mod backtracking;
mod bitmap;
mod brute_force;
mod flags;
mod mirror;
mod symmetry;

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

use crate::board::BoardSize;
use crate::counts::Totals;
use crate::names::UnknownName;
use crate::solution::{Image, Solution, Symmetry};

/// All solutions of the `n` by `n` board in ascending order, found one at a time as they are asked for.
///
/// ```
/// use nqueens_kernel::{board::BoardSize, ladder};
///
/// let first = ladder::solutions(BoardSize::new(8).unwrap()).next().unwrap();
/// assert_eq!(first.to_string(), "0 4 7 5 2 6 1 3");
/// ```
pub fn solutions(n: BoardSize) -> impl Iterator<Item = Solution> {
    bitmap::solutions(n)
}

/// The solutions whose queen in row `r` stands on one of the columns `allowed[r]`, for every row, in the same way.
pub(crate) fn solutions_within(n: BoardSize, allowed: Vec<u32>) -> impl Iterator<Item = Solution> {
    bitmap::solutions_by(move |row, _| allowed[row], n)
}

/// One solution of each orbit, the smallest of its images, with its symmetry; ascending, found one at a time as
/// they are asked for.
///
/// ```
/// use nqueens_kernel::{board::BoardSize, ladder, solution::Symmetry};
///
/// let five: Vec<_> = ladder::unique_solutions(BoardSize::new(5).unwrap())
///     .map(|(solution, symmetry)| (solution.to_string(), symmetry))
///     .collect();
/// let expected = [("0 2 4 1 3", Symmetry::Identity), ("1 4 2 0 3", Symmetry::QuarterTurn)];
/// assert_eq!(five, expected.map(|(rows, symmetry)| (rows.to_owned(), symmetry)));
/// ```
pub fn unique_solutions(n: BoardSize) -> impl Iterator<Item = (Solution, Symmetry)> {
    symmetry::solutions(n)
}

/// A way to count, lowest rung first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Rung {
    /// All N^N boards, tested when full.
    BruteForce,
    /// Each queen is tested against those above before the next is placed.
    Backtracking,
    /// Columns and diagonals that are taken are flagged in three arrays.
    Flags,
    /// The flags of a row are the bits of a word.
    Bitmap,
    /// Only one of each pair of mirror images is searched for.
    Mirror,
    /// Only one representative of each orbit is searched for, and classified at the leaf.
    Symmetry,
}

/// For which solutions a board that a rung has found was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StandsFor {
    /// The board alone.
    Itself,
    /// It and its mirror image, of which it is the smaller.
    MirrorPair,
    /// All its images, of which it is the smallest; this is its symmetry.
    Orbit(Symmetry),
}

impl StandsFor {
    /// How many solutions these are on an `n` by `n` board: 1 to 8.
    pub fn members(self, n: BoardSize) -> u8 {
        match self {
            // The single cell of N = 1 is its own mirror image.
            Self::MirrorPair if n > BoardSize::MIN => 2,
            Self::Itself | Self::MirrorPair => 1,
            Self::Orbit(symmetry) => symmetry.members(n),
        }
    }

    /// Which solutions these are for the board `found`, ascending.
    pub fn solutions(self, found: &Solution) -> Vec<Solution> {
        match self {
            Self::MirrorPair if found.n() > BoardSize::MIN => vec![*found, found.image(Image::MIRROR)],
            Self::Itself | Self::MirrorPair => vec![*found],
            Self::Orbit(_) => found.orbit(),
        }
    }
}

/// What a rung has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LadderCount {
    /// All solutions.
    pub total: u128,
    /// Solutions up to rotation and reflection, by their symmetry.
    pub orbits: Totals,
    /// Queens put down on the way, the measure of work.
    pub states: u64,
}

impl LadderCount {
    /// Adds a board that a search has found, with those for which it stands.
    ///
    /// The lower rungs do not use symmetry. They count an orbit when they find the smallest of its members, which
    /// every rung finds.
    pub fn add(&mut self, board: &Solution, stands_for: StandsFor) {
        let n = board.n();
        self.total += u128::from(stands_for.members(n));
        let symmetry = match stands_for {
            StandsFor::Orbit(symmetry) => Some(symmetry),
            StandsFor::Itself | StandsFor::MirrorPair => board.is_canonical().then(|| board.symmetry()),
        };
        match symmetry.map(|symmetry| symmetry.members(n)) {
            Some(2) => self.orbits.count2 += 1,
            Some(4) => self.orbits.count4 += 1,
            Some(8) => self.orbits.count8 += 1,
            // Not the smallest of its orbit; or the orbit of N = 1, which stands in none of the three.
            _ => {}
        }
    }
}

impl Rung {
    /// All rungs, lowest first.
    pub const ALL: [Self; 6] =
        [Self::BruteForce, Self::Backtracking, Self::Flags, Self::Bitmap, Self::Mirror, Self::Symmetry];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The largest board that takes up to about a minute. Advice, not a limit: each row more takes six to eight
    /// times as long, with brute force thirty times.
    pub fn n_max(self) -> BoardSize {
        let n = match self {
            Self::BruteForce => 10,
            Self::Backtracking | Self::Flags => 15,
            Self::Bitmap => 16,
            Self::Mirror | Self::Symmetry => 17,
        };
        BoardSize::new(n).expect("in 1..=31")
    }

    /// Calls `visit` with each board found and what it stands for; together they stand for every solution of
    /// the `n` by `n` board exactly once. Returns the number of queens put down on the way.
    ///
    /// The order is ascending on every rung.
    pub fn search(self, n: BoardSize, visit: &mut dyn FnMut(Solution, StandsFor)) -> u64 {
        let found_as = if self == Self::Mirror { StandsFor::MirrorPair } else { StandsFor::Itself };
        let mut plain = |queens: &[u8]| visit(Solution::found(n, queens), found_as);
        match self {
            Self::BruteForce => brute_force::search(n, &mut plain),
            Self::Backtracking => backtracking::search(n, &mut plain),
            Self::Flags => flags::search(n, &mut plain),
            Self::Bitmap => bitmap::search(n, &mut plain),
            Self::Mirror => mirror::search(n, &mut plain),
            Self::Symmetry => {
                symmetry::search(n, &mut |board, symmetry| visit(board, StandsFor::Orbit(symmetry)))
            }
        }
    }

    /// Counts the solutions of the `n` by `n` board, all and up to symmetry.
    pub fn count(self, n: BoardSize) -> LadderCount {
        let mut count = LadderCount::default();
        count.states = self.search(n, &mut |board, stands_for| count.add(&board, stands_for));
        count
    }
}

fn unknown(name: &str) -> UnknownName {
    UnknownName::new("algorithm", name, Rung::VARIANTS)
}
