//! Border configurations, built as plainly as can be: boards for tests and benchmarks whose weighted counts add
//! up to all solutions.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::subproblem::Subproblem;

/// Top queen's column, right queen's row, bottom queen's column, left queen's row.
type Border = [u8; 4];

fn quarter_turn(last: u8, [top, right, bottom, left]: Border) -> Border {
    [last - left, top, last - right, bottom]
}

fn mirror(last: u8, [top, right, bottom, left]: Border) -> Border {
    [last - top, left, last - bottom, right]
}

/// The board with just these queens; `None` if there is none.
fn board(n: BoardSize, [top, right, bottom, left]: Border) -> Option<Subproblem> {
    let last = n.lines().last()?;
    let queens = [(0, top), (right, last), (last, bottom), (left, 0)];
    // A queen in a corner is on two borders, which must both say so.
    let on_border = |(row, column): (u8, u8)| [row == 0, column == last, row == last, column == 0];
    let agree = |queen| on_border(queen).iter().zip(queens).all(|(&on, other)| !on || other == queen);
    if !queens.into_iter().all(agree) {
        return None;
    }
    let mut settled = Vec::new();
    queens.into_iter().try_fold(Subproblem::empty(n), |board, queen| {
        if settled.contains(&queen) {
            return Some(board);
        }
        settled.push(queen);
        board.place(queen.0, queen.1)
    })
}

/// Estimated work below a board: the first rows count most.
fn work(board: &Subproblem) -> f64 {
    let choices = board.rows().iter().rev().map(|open| (f64::from(open.allowed.count_ones()) + 0.1).ln());
    (1_u8..).zip(choices).map(|(weight, choices)| f64::from(weight) * choices).sum()
}

/// A board for each border configuration up to rotation and reflection, in the rotation that is least work, with
/// the number of its images: `N >= 2`.
pub(crate) fn border_configurations(n: BoardSize) -> Vec<(u64, Subproblem)> {
    let last = n.lines().last().expect("a board has lines");
    let lines = || n.lines();
    let borders = lines().flat_map(|top| {
        let sides = lines().flat_map(move |right| lines().map(move |bottom| (right, bottom)));
        sides.flat_map(move |(right, bottom)| lines().map(move |left| [top, right, bottom, left]))
    });
    let images =
        |border| std::iter::successors(Some(border), move |&border| Some(quarter_turn(last, border))).take(4);
    let smallest = borders.filter(|&border| {
        images(border).flat_map(|image| [image, mirror(last, image)]).all(|image| border <= image)
    });
    let configurations = smallest.filter_map(|border| {
        let turned = images(border).filter_map(|image| board(n, image));
        let best = turned.min_by(|a, b| work(a).total_cmp(&work(b)))?;
        let mut all: Vec<_> = images(border).flat_map(|image| [image, mirror(last, image)]).collect();
        all.sort_unstable();
        all.dedup();
        Some((all.len() as u64, best))
    });
    configurations.collect()
}
