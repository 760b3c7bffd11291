//! Boards for engines, those of CPUs and those of devices.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::subproblem::{OpenRow, Subproblem};
use proptest::prelude::*;

/// Boards of any size with up to `most` open rows and as many free columns anywhere; masks from empty to full.
pub(crate) fn boards(most: usize) -> impl Strategy<Value = Subproblem> {
    let lines = |n: u32, open: usize| prop::sample::subsequence((0..n).collect::<Vec<_>>(), open);
    let two = || (any::<u32>(), any::<u32>());
    let mask = prop_oneof![
        3 => Just(u32::MAX),
        2 => two().prop_map(|(a, b)| a | b),
        1 => any::<u32>(),
        1 => two().prop_map(|(a, b)| a & b),
    ];
    (0..=most)
        .prop_flat_map(|open| (u32::try_from(open.max(1)).unwrap()..=31, Just(open)))
        .prop_flat_map(move |(n, open)| {
            (Just(n), lines(n, open), lines(n, open), prop::collection::vec(mask.clone(), open))
        })
        .prop_map(|(n, rows, columns, masks)| {
            let free = columns.iter().fold(0, |free, column| free | 1 << column);
            let row = |(&row, &allowed): (&u32, &u32)| OpenRow { row: u8::try_from(row).unwrap(), allowed };
            let rows: Vec<_> = rows.iter().zip(&masks).map(row).collect();
            Subproblem::new(BoardSize::new(n).unwrap(), free, &rows).unwrap()
        })
}
