//! A prefix: some queens of a class of solutions, placed; the piece that plans split and jobs are made of.

use crate::board::{BoardSize, columns_of};
use crate::border::{self, Border};
use crate::estimate;
use crate::job::Class;
use crate::rows;
use crate::subproblem::Subproblem;
use crate::unit::{Leaves, Symmetric, Unit};

/// One prefix of a class, and the board that it leaves open. See [`Job`](crate::job::Job) for the meaning of
/// its bytes.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    pub(crate) class: Class,
    pub(crate) bound1: u8,
    /// One byte a queen.
    pub(crate) queens: Vec<u8>,
    /// What is left to fill.
    board: Subproblem,
    /// Rotations that map the border configuration to itself; 1 in the other classes.
    stabiliser: u8,
}

/// Fewest queens that a prefix of a class has.
pub(crate) fn width_min(class: Class) -> u8 {
    match class {
        Class::Corner => 2,
        Class::Edge => 1,
        Class::Border => 4,
    }
}

/// The values BOUND1 that a class has.
pub(crate) fn class_bounds(n: BoardSize, class: Class) -> Vec<u8> {
    match class {
        Class::Corner => rows::corner_bounds(n).collect(),
        Class::Edge => rows::edge_bounds(n).collect(),
        Class::Border => border::bounds(n).collect(),
    }
}

impl Prefix {
    /// The prefix that these bytes mean; `None` if they mean none.
    pub(crate) fn new(n: BoardSize, class: Class, bound1: u8, queens: &[u8]) -> Option<Self> {
        let (start, stabiliser) = match class {
            Class::Corner => (rows::corner_class(n, bound1), 1),
            Class::Edge => (rows::edge_class(n, bound1), 1),
            Class::Border => {
                let border = Border::new(n, *queens.first_chunk()?)?;
                (border.board(), if border.bound1() == bound1 { border.stabiliser() } else { return None })
            }
        };
        let first = if class == Class::Border { 4 } else { 0 };
        let place = |board: Subproblem, &column: &u8| {
            let row = board.rows().first()?.row;
            // a column beyond the mask's 32 bits is no column
            (column < 32).then(|| board.place(row, column))?
        };
        let board = queens[first..].iter().try_fold(start, place)?;
        let whole = queens.len() >= usize::from(width_min(class));
        let prefix = Self { class, bound1, queens: queens.to_vec(), board, stabiliser };
        (whole && !prefix.is_too_deep()).then_some(prefix)
    }

    /// The shortest prefixes of a class, by BOUND1: together they cover it, each solution once.
    pub(crate) fn shortest(n: BoardSize, class: Class) -> Box<dyn Iterator<Item = Self> + Send> {
        let known = move |bound1, queens: &[u8]| Self::new(n, class, bound1, queens).expect("a valid prefix");
        match class {
            Class::Corner => Box::new(rows::corner_bounds(n).map(move |bound1| known(bound1, &[0, bound1]))),
            Class::Edge => Box::new(rows::edge_bounds(n).map(move |bound1| known(bound1, &[bound1]))),
            Class::Border => Box::new(
                Border::canonical_ones(n)
                    .map(move |border| known(border.bound1(), &border.oriented().lines())),
            ),
        }
    }

    /// A symmetric configuration is split by one queen only (see [`Symmetric::split`]).
    fn is_too_deep(&self) -> bool {
        self.stabiliser > 1 && self.queens.len() > 5
    }

    /// The prefixes with one queen more, which together have the same solutions; `None` where there is no way to
    /// split further.
    pub(crate) fn split(&self) -> Option<Vec<Self>> {
        let first = self.board.rows().first()?;
        if self.stabiliser > 1 && (self.queens.len() > 4 || !Symmetric::can_split(&self.board)) {
            return None;
        }
        let longer = |column| {
            let board = self.board.place(first.row, column)?;
            let queens = self.queens.iter().copied().chain([column]).collect();
            Some(Self { queens, board, ..*self })
        };
        let dead = |prefix: &Self| prefix.board.rows().iter().any(|open| open.allowed == 0);
        Some(columns_of(first.allowed).filter_map(longer).filter(|prefix| !dead(prefix)).collect())
    }

    /// A guess at the states of its search.
    pub(crate) fn states_estimate(&self) -> u64 {
        if self.stabiliser > 1 {
            return self.units(false).iter().fold(0, |sum, unit| unit.states_estimate().saturating_add(sum));
        }
        estimate::states(&self.board)
    }

    /// A number of solutions that it can't exceed.
    pub(crate) fn completions_max(&self) -> u64 {
        self.board.completions_max()
    }

    /// Whether solutions with a symmetry may begin like this.
    pub(crate) fn may_be_symmetric(&self) -> bool {
        self.class == Class::Edge || self.stabiliser > 1
    }

    /// The pieces to count. With `leaf_test` the edge class comes as one classic search that tests each of its
    /// solutions; else only the solutions on a tie cell are tested, and the others purely counted.
    pub(crate) fn units(&self, leaf_test: bool) -> Vec<Unit> {
        match self.class {
            Class::Corner => vec![Unit::Count(self.board.clone())],
            Class::Edge => self.edge_units(leaf_test),
            Class::Border if self.stabiliser == 1 => vec![Unit::Count(self.board.clone())],
            Class::Border => {
                let four: [u8; 4] = *self.queens.first_chunk().expect("four border queens");
                let whole = Border::new(self.board.n(), four).expect("checked").board();
                let whole = Symmetric::new(whole, self.stabiliser);
                match self.queens.get(4) {
                    None => vec![Unit::Symmetric(whole)],
                    Some(&leader) => whole.parts(leader),
                }
            }
        }
    }

    fn edge_units(&self, leaf_test: bool) -> Vec<Unit> {
        let leaves = Leaves::new(self.board.clone(), self.bound1, &self.queens);
        if leaf_test {
            return vec![Unit::Leaves(leaves)];
        }
        let mut units = Vec::with_capacity(4);
        let mut rest = Some(leaves);
        for (row, column) in rows::tie_cells(self.board.n(), self.bound1) {
            let Some(open) = rest.take() else { break };
            units.extend(open.with_queen(row, column).map(Unit::Leaves));
            rest = open.without_queen(row, column);
        }
        units.extend(rest.map(|rest| Unit::Count(rest.into_board())));
        units
    }
}
