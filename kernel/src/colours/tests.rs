use std::collections::BTreeMap;

use super::*;
use crate::board::BoardSize;
use crate::known::published;

/// Calls back with the rows and the columns whose queens stand on white cells, for every solution.
fn solutions(n: u32, queens: &mut Vec<u32>, found: &mut impl FnMut(u32, u32)) {
    let row = queens.len();
    if row == n as usize {
        let white = (0..n).filter(|&row| (row + queens[row as usize]).is_multiple_of(2));
        let (rows, columns) = white.fold((0, 0), |(r, c), row| (r | 1 << row, c | 1 << queens[row as usize]));
        found(rows, columns);
        return;
    }
    for column in 0..n {
        let free =
            queens.iter().enumerate().all(|(r, &c)| c != column && c.abs_diff(column) as usize != row - r);
        if free {
            queens.push(column);
            solutions(n, queens, found);
            queens.pop();
        }
    }
}

#[test]
fn every_solution_is_counted_once() {
    for n in 4..=11 {
        let board = BoardSize::new(n).unwrap();
        let sets = RowSets::new(board).unwrap();
        let orbits: BTreeMap<u32, RowSet> =
            (0..sets.len()).map(|at| sets.get(at)).map(|set| (set.rows, set)).collect();
        assert_eq!(orbits.len() as u64, sets.len());
        let mut total = 0;
        solutions(n, &mut Vec::new(), &mut |rows, columns| {
            if let Some(set) = orbits.get(&rows) {
                total += u128::from(set.weight * set.columns_weight(columns));
            }
        });
        assert_eq!(Some(total), published(board).map(|known| known.total), "N = {n}");
    }
}
