//! How much work is a subproblem? A cheap guess, the same on every machine.

use crate::subproblem::Subproblem;

/// A guess, at least 1, at the states that plain backtracking over `board` from its first open row visits.
///
/// A mean field: row by row, the number of boards is multiplied by the cells that the row's mask leaves, by the
/// share of them whose column is still free, and by the share that no queen placed on the way attacks along a
/// diagonal. That is too much by a little for every queen that was placed before, which is made good in the end.
///
/// Compared with the sampled sizes of whole boards (N = 20, 22, 27) the sum over a plan `border` is right within
/// 35 % at any size of job; over `rows` it is up to 3 times too large when jobs are small. A single job's guess
/// is off by a factor of 1.5 either way (one standard deviation, N = 14).
///
/// Only sums, products and quotients of IEEE numbers in a fixed order: no two machines differ.
pub fn states(board: &Subproblem) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; `as` saturates")]
    let states = mean_field(board) as u64;
    states.max(1)
}

fn mean_field(board: &Subproblem) -> f64 {
    let open = board.rows();
    let Some(first) = open.first() else { return 1.0 };
    let (mut boards, mut sum, mut unattacked) = (1.0, 1.0, 1.0);
    let (mut row, mut left) = (first.row, board.free().count_ones());
    let kept = 1.0 - 2.0 / f64::from(board.n().get());
    let columns = f64::from(left);
    for open in open {
        for _ in row..open.row {
            unattacked *= kept;
        }
        boards *= f64::from(open.allowed.count_ones() * left) / columns * unattacked;
        sum += boards;
        row = open.row;
        left -= 1;
    }
    let settled = board.n().get() - board.free().count_ones();
    (0..settled).fold(sum, |guess, _| guess * kept)
}
