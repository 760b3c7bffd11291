use std::collections::BTreeMap;

use super::*;
use crate::board::BoardSize;
use crate::known::published;
use crate::ladder::Rung;

#[test]
fn every_solution_is_counted_once() {
    for n in 4..=11 {
        let board = BoardSize::new(n).unwrap();
        let sets = RowSets::new(board).unwrap();
        let orbits: BTreeMap<u32, RowSet> =
            (0..sets.len()).map(|at| sets.get(at)).map(|set| (set.rows, set)).collect();
        assert_eq!(orbits.len() as u64, sets.len());
        let mut total = 0;
        Rung::Backtracking.search(board, &mut |solution, _| {
            // Whose queens stand on white cells.
            let white =
                (0..).zip(solution.columns()).filter(|(row, column)| (row + *column).is_multiple_of(2));
            let (rows, columns) = white.fold((0, 0), |(r, c), (row, column)| (r | 1 << row, c | 1 << column));
            if let Some(set) = orbits.get(&rows) {
                total += u128::from(set.weight * set.columns_weight(columns));
            }
        });
        assert_eq!(Some(total), published(board).map(|known| known.total), "N = {n}");
    }
}
