//! How many steps does a task take? A cheap guess.

use crate::masks::Masks;
use crate::runner::Task;

/// Share of a row's cells that a queen above it does not attack along a diagonal.
const KEPT: f32 = 0.86;

/// Steps of a task by the nodes below it: the kernel sees one row ahead. From tasks of N = 16 to 24, with 8 to 14 rows:
/// 0.54 to 0.92. Less on smaller boards, where it does not matter.
const STEPS_PER_NODE: f32 = 0.7;

/// A guess, at least 1, by a mean field: row by row, the number of nodes is multiplied by the cells that no queen above the
/// task attacks, and by the share of them that none of the task's own queens attacks. A row with one cell keeps it: counted
/// like others it makes guesses useless. Of 10,000 tasks one takes 4 times as many steps.
pub(crate) fn steps(masks: &Masks, task: Task) -> u32 {
    let rows = task.rows();
    let allowed = &masks.allowed[1..=rows];
    let open = allowed.iter().filter(|cells| is_open(**cells)).count();
    #[expect(clippy::cast_precision_loss, reason = "at most 31")]
    let (mut columns, share) = (open as f32, 1.0 / open.max(1) as f32);
    let (mut left, mut right) = (task.left >> 1, task.right);
    let (mut nodes, mut sum, mut unattacked) = (1.0f32, 0.0, 1.0);
    for cells in allowed.iter().rev() {
        if is_open(*cells) {
            let cells = cells & task.free & !(left | right);
            #[expect(clippy::cast_precision_loss, reason = "at most 31")]
            let cells = cells.count_ones() as f32;
            nodes *= cells * (columns * share) * unattacked;
            columns -= 1.0;
            unattacked *= KEPT;
        }
        sum += nodes;
        left <<= 1;
        right >>= 1;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; `as` saturates")]
    let steps = (STEPS_PER_NODE * sum) as u32;
    steps.max(1)
}

/// Whether a row has several cells, on a board without queens.
fn is_open(cells: u32) -> bool {
    cells & cells.wrapping_sub(1) != 0
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::plan::{Plan, PlanKind};

    use super::*;

    /// The steps of a node: `search.cl` takes one for each cell, and goes to a row whose own next row has a cell left.
    fn taken(allowed: &[u32; 32], left: u32, right: u32, free: u32) -> u32 {
        let cells = |left: u32, right: u32, free: u32, rows| free & !(left | right) & allowed[rows];
        let rows = free.count_ones() as usize;
        let mut here = cells(left, right, free, rows);
        let mut steps = here.count_ones();
        while here != 0 && rows > 1 {
            let queen = here & here.wrapping_neg();
            here ^= queen;
            let (left, right, free) = ((left | queen) << 1, (right | queen) >> 1, free ^ queen);
            let goes_on = rows > 2 && cells(left, right, free, rows - 1) != 0;
            if goes_on && cells(left << 1, right >> 1, free, rows - 2) != 0 {
                steps += taken(allowed, left, right, free);
            }
        }
        steps
    }

    #[test]
    fn guesses_are_right_on_the_whole_and_none_is_far_too_low() {
        for n in [13, 14] {
            let jobs = Plan::new(BoardSize::new(n).expect("a board"), PlanKind::Border).jobs();
            let units: Vec<_> = jobs.flat_map(|job| job.units(false)).collect();
            let (mut guessed, mut counted) = (0, 0);
            for masks in
                units.iter().filter_map(|unit| Masks::of(unit.board()?)).filter(|masks| masks.free != 0)
            {
                let task = Task { left: 0, right: 0, free: masks.free, board: 0 };
                let (guess, taken) = (steps(&masks, task), taken(&masks.allowed, 0, 0, masks.free));
                assert!(taken <= 5 * guess + 150, "{task:?}: {guess}, but {taken}");
                guessed += guess;
                counted += taken;
            }
            assert!(
                counted > 10_000 && guessed > counted / 2 && guessed < counted * 3,
                "{guessed} for {counted}"
            );
        }
    }
}
