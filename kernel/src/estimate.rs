//! How much work is a subproblem? A cheap guess, the same on every machine.

use crate::subproblem::Subproblem;

/// A guess at the states that the search of `board` visits. TODO calibrate
pub(crate) fn states(board: &Subproblem) -> u64 {
    let (n, m) = (f64::from(board.n().get()), board.rows().len());
    let mut attack_free = 1.0;
    let (mut width, mut sum, mut left) = (1.0, 1.0, m as f64);
    let share = 1.0 / left;
    let mut row = board.rows().first().map_or(0, |open| open.row);
    let alpha = 2.0 / (n * n);
    for open in board.rows() {
        let gap = open.row - row;
        for _ in 0..gap {
            attack_free *= 1.0 - alpha * n;
        }
        width *= f64::from(open.allowed.count_ones()) * left * share * attack_free;
        sum += width;
        left -= 1.0;
        row = open.row;
    }
    sum as u64
}
