//! Tasks whose counts are known: in every launch some are counted again.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::subproblem::Subproblem;

use crate::masks::Masks;
use crate::runner::Task;

/// Every so many tasks there is a canary, one at the beginning, and one at the end of a launch.
pub(crate) const EVERY: usize = 512;

/// Whether the task `at` of a launch of so many is a canary.
pub(crate) fn is_canary(at: usize, tasks: usize) -> bool {
    at.is_multiple_of(EVERY + 1) || at + 1 == tasks
}

/// The canaries of a launch: each begins with another, so that none finds what was left by the one before in its place.
pub(crate) fn of_launch(canaries: &[Canary], launch: usize) -> impl Iterator<Item = &Canary> {
    canaries.iter().cycle().skip(launch % canaries.len())
}

/// A task, and its completions as plain recursion counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Canary {
    pub(crate) task: Task,
    pub(crate) completions: u32,
}

/// Boards for canaries, which are the first that a device gets to know, and the canaries on them: 100 to
/// 1,000 steps each: no lane has to wait for them.
pub(crate) fn canaries() -> (Vec<Masks>, Vec<Canary>) {
    let board = |n| Subproblem::empty(BoardSize::new(n).expect("a board"));
    let settled = |n, row, column| board(n).place(row, column).expect("an empty board");
    // Whole boards, and some with a queen above, below, or between open rows.
    let boards = [board(7), board(8), settled(8, 0, 3), settled(9, 8, 0), settled(9, 4, 7)];
    let masks: Vec<_> = boards.iter().map(|board| Masks::of(board).expect("real queens")).collect();
    let canaries = (0..).zip(&masks).map(|(number, masks)| {
        let task = Task { left: 0, right: 0, free: masks.free, board: number };
        let completions = u32::try_from(completions(masks, task)).expect("small boards");
        Canary { task, completions }
    });
    let canaries = canaries.collect();
    (masks, canaries)
}

/// The completions of a task, by plain recursion: the obvious twin of `search.cl`.
pub(crate) fn completions(masks: &Masks, task: Task) -> u64 {
    descend(masks, task.left >> 1, task.right, task.free)
}

fn descend(masks: &Masks, left: u32, right: u32, free: u32) -> u64 {
    if free == 0 {
        return 1;
    }
    let cells = masks.allowed[free.count_ones() as usize] & free & !(left | right);
    let bits = (0..u32::BITS).map(|column| 1 << column).filter(|bit| cells & bit != 0);
    bits.map(|bit| descend(masks, (left | bit) << 1, (right | bit) >> 1, free ^ bit)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canaries_have_the_known_counts() {
        let (_, canaries) = canaries();
        let counts: Vec<_> = canaries.iter().map(|canary| canary.completions).collect();
        // Whole boards; solutions of N = 8 with a queen on the fourth cell of the first row; and so on.
        assert_eq!(counts[..2], [40, 92]);
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
        let differ: std::collections::HashSet<_> = counts.iter().collect();
        assert_eq!(
            differ.len(),
            counts.len(),
            "one that is found in the place of another is noticed: {counts:?}"
        );
    }
}
