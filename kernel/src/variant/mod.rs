//! Variants of the problem: queens given and cells blocked, and queens on a torus.
//!
//! A variant is cut into [pieces](Piece), which are counted one by one and have each solution once. Nothing is sorted into
//! orbits: given queens and blocked cells leave the board no symmetry in general, and the torus has other ones.

mod cells;
mod torus;

use sha2::{Digest, Sha256};

use crate::board::BoardSize;
use crate::engine::{Control, Engine, Stopped, Tally};
use crate::estimate;
use crate::known;
use crate::plan::Fingerprint;
use crate::solution::Solution;
use crate::subproblem::Subproblem;
pub use cells::{Cell, Cells, InvalidCells};
pub use torus::TorusPiece;

/// What is to be counted in place of all solutions of a board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Those with the given queens and without blocked cells.
    Cells(Cells),
    /// Toroidal (modular) queens: those of the board whose opposite sides are joined.
    Torus(BoardSize),
}

impl Variant {
    /// Board size.
    pub fn n(&self) -> BoardSize {
        match self {
            Self::Cells(cells) => cells.n(),
            Self::Torus(n) => *n,
        }
    }

    /// Its solutions in ascending order, found one at a time as they are asked for.
    pub fn solutions(&self) -> Box<dyn Iterator<Item = Solution>> {
        match self {
            Self::Cells(cells) => Box::new(cells.solutions()),
            Self::Torus(n) => Box::new(torus::solutions(*n)),
        }
    }

    /// Two variants with the same one are the same.
    pub fn fingerprint(&self) -> Fingerprint {
        let what = match self {
            Self::Cells(cells) => cells.to_string(),
            Self::Torus(_) => "torus".to_owned(),
        };
        Fingerprint(Sha256::digest(format!("nqueens variant 1\nn {}\n{what}\n", self.n())).into())
    }

    /// How many are published: of every torus, and of no board with given queens or blocked cells.
    pub fn published(&self) -> Option<u128> {
        match self {
            Self::Cells(_) => None,
            Self::Torus(n) => Some(known::toroidal(*n)),
        }
    }
}

/// How a variant is cut into pieces: always the same, in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantPlan {
    variant: Variant,
    states_per_piece: u64,
}

impl VariantPlan {
    /// A piece that any engine counts in less than a minute.
    const STATES: u128 = 20_000_000_000;
    /// Pieces of so many states would be more on large boards, whose pieces are larger for it. There are up to ten times as
    /// many pieces as are aimed at, for a board falls into many when it is too heavy by a little.
    const PIECES_MAX: u128 = 20_000;
    /// Fewer show no progress and starve threads.
    const PIECES_MIN: u128 = 1_000;
    /// Smaller pieces cost more to keep than to count.
    const STATES_MIN: u64 = 500_000;
    /// Rows to fill before the guess at the work is good enough.
    const SOUND_ROWS: usize = 3;

    /// With pieces of a size that suits the variant.
    pub fn new(variant: Variant) -> Self {
        let total: u128 = match &variant {
            Variant::Cells(cells) => {
                let board = cells.board();
                let open = board.rows().len();
                let sound = light(board, move |board| open - board.rows().len() >= Self::SOUND_ROWS);
                sound.map(|board| u128::from(estimate::states(&board))).sum()
            }
            Variant::Torus(_) => 0,
        };
        let pieces = (total / Self::STATES).clamp(Self::PIECES_MIN, Self::PIECES_MAX);
        let states_per_piece = u64::try_from(total / pieces).unwrap_or(u64::MAX).max(Self::STATES_MIN);
        Self { variant, states_per_piece }
    }

    /// With pieces of about this many states each; a hint. The pieces of a torus are the same for every hint.
    pub fn with_states_per_piece(variant: Variant, states_per_piece: u64) -> Self {
        Self { variant, states_per_piece: states_per_piece.max(1) }
    }

    /// What is cut.
    pub fn variant(&self) -> &Variant {
        &self.variant
    }

    /// The target size of a piece, in estimated states.
    pub fn states_per_piece(&self) -> u64 {
        self.states_per_piece
    }

    /// The pieces, made one by one.
    pub fn pieces(&self) -> Box<dyn Iterator<Item = Piece> + Send> {
        match &self.variant {
            Variant::Cells(cells) => {
                let target = self.states_per_piece;
                let boards = light(cells.board(), move |board| estimate::states(board) <= target);
                Box::new(boards.map(Piece::Board))
            }
            Variant::Torus(n) => Box::new(TorusPiece::all(*n).into_iter().map(Piece::Torus)),
        }
    }
}

/// A board, or in place of it all that it splits into, until each is light enough. Boards with a row without cells are left
/// out.
fn light(board: Subproblem, is_light: impl Fn(&Subproblem) -> bool) -> impl Iterator<Item = Subproblem> {
    let is_hopeful = board.rows().iter().all(|open| open.allowed != 0);
    let mut stack = if is_hopeful { vec![board] } else { Vec::new() };
    std::iter::from_fn(move || {
        loop {
            let board = stack.pop()?;
            if board.rows().is_empty() || is_light(&board) {
                return Some(board);
            }
            stack.extend(board.children().into_iter().rev());
        }
    })
}

/// A part of a variant that one thread counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The completions of a board.
    Board(Subproblem),
    /// Solutions of a torus.
    Torus(TorusPiece),
}

impl Piece {
    /// A guess at its share of the work.
    pub fn states_estimate(&self) -> u64 {
        match self {
            Self::Board(board) => estimate::states(board),
            // One is about as large as another.
            Self::Torus(_) => 1,
        }
    }

    /// Counts the solutions of some pieces of one variant; exactly, or not at all when stopped. The pieces of a torus are
    /// searched in a way of their own, whatever the engine.
    pub fn count(pieces: &[Self], engine: &mut dyn Engine, control: &Control) -> Result<Vec<Tally>, Stopped> {
        let boards: Vec<_> = pieces.iter().filter_map(Self::board).cloned().collect();
        let mut tallies = vec![Tally::default(); boards.len()];
        let batch_max = engine.batch_max();
        for (boards, tallies) in boards.chunks(batch_max).zip(tallies.chunks_mut(batch_max)) {
            engine.count_batch(boards, tallies, control)?;
        }
        let mut tallies = tallies.into_iter();
        let count = |piece: &Self| match piece {
            Self::Board(_) => Ok(tallies.next().expect("a tally for each board")),
            Self::Torus(piece) => piece.count(control),
        };
        pieces.iter().map(count).collect()
    }

    fn board(&self) -> Option<&Subproblem> {
        if let Self::Board(board) = self { Some(board) } else { None }
    }

    /// What it is, for the fingerprint.
    fn digest(&self, digest: &mut Sha256) {
        match self {
            Self::Board(board) => {
                digest.update(b"board");
                digest.update(board.free().to_be_bytes());
                for open in board.rows() {
                    digest.update([open.row]);
                    digest.update(open.allowed.to_be_bytes());
                }
            }
            Self::Torus(piece) => {
                digest.update(b"torus");
                digest.update(&piece.queens);
            }
        }
    }
}

/// Computes the fingerprint of a plan from its pieces, one at a time: two plans with the same one count the same in the same
/// pieces.
#[derive(Clone, Debug)]
pub struct PieceFingerprinter(Sha256);

impl PieceFingerprinter {
    /// Starts with the plan; all its pieces follow, in order.
    pub fn new(plan: &VariantPlan) -> Self {
        let head = Sha256::new_with_prefix(plan.variant.fingerprint().0);
        Self(head.chain_update(plan.states_per_piece.to_be_bytes()))
    }

    /// The next piece.
    pub fn add(&mut self, piece: &Piece) {
        piece.digest(&mut self.0);
    }

    /// The fingerprint of the plan and the pieces that were added.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}
