//! A prefix: some queens of a class of solutions, placed; the piece that plans split and jobs are made of.

use crate::board::{BoardSize, columns_of};
use crate::border::{self, Border};
use crate::counts::Counts;
use crate::estimate;
use crate::job::class::Class;
use crate::job::weight::Weight;
use crate::known::{self, Published};
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
        Class::Edge | Class::Cells => 1,
        Class::Corner => 2,
        Class::Border => 4,
        Class::Colours => unreachable!("row sets have no prefixes"),
    }
}

/// The values BOUND1 that a class has.
pub(crate) fn class_bounds(n: BoardSize, class: Class) -> Vec<u8> {
    match class {
        Class::Corner => rows::corner_bounds(n).collect(),
        Class::Edge => rows::edge_bounds(n).collect(),
        Class::Border => border::bounds(n).collect(),
        Class::Colours | Class::Cells => vec![0],
    }
}

impl Prefix {
    /// The prefix that these bytes mean; `None` if they mean none. The class has this BOUND1, and class `cells` a board with
    /// these masks.
    pub(crate) fn new(n: BoardSize, class: Class, bound1: u8, masks: &[u32], queens: &[u8]) -> Option<Self> {
        let (start, inner) = if class == Class::Border {
            let (border, inner) = queens.split_first_chunk()?;
            let border = Border::new(n, *border).filter(|border| border.bound1() == bound1)?;
            (Self::of_border(border, bound1), inner)
        } else {
            (Self::start(n, class, bound1, masks), queens)
        };
        let whole = queens.len() >= usize::from(width_min(class));
        let prefix = inner.iter().try_fold(start, |prefix, &column| prefix.with_queen(column));
        prefix.filter(|_| whole)
    }

    /// Without any queen.
    fn start(n: BoardSize, class: Class, bound1: u8, masks: &[u32]) -> Self {
        let board = match class {
            Class::Corner => rows::corner_class(n, bound1),
            Class::Edge => rows::edge_class(n, bound1),
            Class::Cells => Subproblem::of_masks(n, masks),
            Class::Border | Class::Colours => unreachable!("no prefix of these is empty"),
        };
        Self { class, bound1, queens: Vec::new(), board, stabiliser: 1 }
    }

    fn of_border(border: Border, bound1: u8) -> Self {
        let (board, stabiliser) = (border.board(), border.stabiliser());
        Self { class: Class::Border, bound1, queens: border.lines().to_vec(), board, stabiliser }
    }

    /// The shortest prefixes of a class, by BOUND1: together they cover it, each solution once. Class `cells` has a board with
    /// these masks.
    pub(crate) fn shortest(
        n: BoardSize,
        class: Class,
        masks: &[u32],
    ) -> Box<dyn Iterator<Item = Self> + Send> {
        let known =
            move |bound1, queens: &[u8]| Self::new(n, class, bound1, &[], queens).expect("a valid prefix");
        match class {
            Class::Corner => Box::new(rows::corner_bounds(n).map(move |bound1| known(bound1, &[0, bound1]))),
            Class::Edge => Box::new(rows::edge_bounds(n).map(move |bound1| known(bound1, &[bound1]))),
            Class::Border => {
                let oriented = |border: Border| Self::of_border(border.oriented(), border.bound1());
                Box::new(Border::canonical_ones(n).map(oriented))
            }
            Class::Cells => Box::new(Self::start(n, class, 0, masks).split().into_iter().flatten()),
            Class::Colours => unreachable!("row sets have no prefixes"),
        }
    }

    /// The row of the next queen; `None` where there is no way to go on. A symmetric configuration is followed by
    /// one queen at most, the leader (see [`Symmetric::parts`]).
    fn next_row(&self) -> Option<u8> {
        let leads = || self.queens.len() == 4 && Symmetric::can_split(&self.board);
        let open = self.board.rows().first()?;
        (self.stabiliser == 1 || leads()).then_some(open.row)
    }

    fn with_queen(&self, column: u8) -> Option<Self> {
        let row = self.next_row()?;
        let board = self.board.place(row, column)?;
        let queens = self.queens.iter().copied().chain([column]).collect();
        Some(Self { queens, board, ..*self })
    }

    /// The prefixes with one queen more, which together have the same solutions (those without a solution, as one
    /// look at their rows tells, are left out); `None` where there is no way to go on.
    pub(crate) fn split(&self) -> Option<Vec<Self>> {
        self.next_row()?;
        let longer = columns_of(self.board.rows()[0].allowed).filter_map(|column| self.with_queen(column));
        Some(longer.filter(|prefix| prefix.board.rows().iter().all(|open| open.allowed != 0)).collect())
    }

    /// A guess at the states of its search.
    pub(crate) fn states_estimate(&self) -> u64 {
        if self.stabiliser > 1 {
            return self.units(false).iter().fold(0, |sum, unit| unit.states_estimate().saturating_add(sum));
        }
        match self.class {
            Class::Cells => estimate::states(&self.board.settled()),
            _ => estimate::states(&self.board),
        }
    }

    /// What it is expected to cost, and what it can find at most: no more than its free cells admit or than are
    /// published for the whole board, and symmetric solutions only where there can be some.
    pub(crate) fn weight(&self) -> Weight {
        let n = self.board.n();
        let admitted = self.board.completions_max().min(i64::MAX.unsigned_abs());
        if self.class.counts_plainly() {
            let published = known::published(n).and_then(|known| u64::try_from(known.total).ok());
            let counts_max = Counts::plain(admitted.min(published.unwrap_or(u64::MAX)));
            return Weight { states: self.states_estimate(), counts_max };
        }
        let [count2, count4, count8] = known::published(n)
            .map_or([u128::MAX; 3], |Published { orbits, .. }| [orbits.count2, orbits.count4, orbits.count8]);
        let at_most = |published: u128| admitted.min(u64::try_from(published).unwrap_or(u64::MAX));
        let may_be_symmetric = self.class == Class::Edge || self.stabiliser > 1;
        let quarter_turns_exist = n.get() % 4 <= 1;
        let counts_max = Counts {
            count2: if may_be_symmetric && quarter_turns_exist { at_most(count2) } else { 0 },
            count4: if may_be_symmetric { at_most(count4) } else { 0 },
            count8: at_most(count8),
            solutions: 0,
        };
        Weight { states: self.states_estimate(), counts_max }
    }

    /// The pieces to count. With `leaf_test` the edge class comes as one classic search that tests each of its
    /// solutions; else only the solutions on a tie cell are tested, and the others purely counted.
    pub(crate) fn units(&self, leaf_test: bool) -> Vec<Unit> {
        match self.class {
            Class::Corner => vec![Unit::Count(self.board.clone())],
            Class::Edge => self.edge_units(leaf_test),
            Class::Border if self.stabiliser == 1 => vec![Unit::Count(self.board.clone())],
            Class::Border => {
                let border = self.queens.first_chunk().and_then(|lines| Border::new(self.board.n(), *lines));
                let board = border.expect("a prefix begins with its configuration").board();
                let symmetric = Symmetric::new(board, self.stabiliser);
                match self.queens.get(4) {
                    None => vec![Unit::Symmetric(symmetric)],
                    Some(&leader) => symmetric.parts(leader),
                }
            }
            Class::Cells => vec![Unit::Plain(self.board.settled())],
            Class::Colours => unreachable!("row sets have no prefixes"),
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
        units.extend(rest.map(|rest| Unit::Count(rest.board().clone())));
        units
    }
}
