//! The OEIS sequences, against a brute force that knows the definitions and nothing of the crate.

use std::collections::BTreeSet;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::known::{first_counted, published};
use nqueens_kernel::sequence::Sequence;

type Cells = BTreeSet<(i32, i32)>;

/// All ways to place N queens, one a row, so that no two attack each other.
fn solutions(n: i32, above: &[(i32, i32)], found: &mut Vec<Cells>) {
    let row = i32::try_from(above.len()).unwrap();
    if row == n {
        found.push(above.iter().copied().collect());
        return;
    }
    for column in 0..n {
        let attacked =
            above.iter().any(|&(r, c)| c == column || r + c == row + column || r - c == row - column);
        if !attacked {
            solutions(n, &[above, &[(row, column)]].concat(), found);
        }
    }
}

fn quarter_turn(cells: &Cells, n: i32) -> Cells {
    cells.iter().map(|&(r, c)| (c, n - 1 - r)).collect()
}

fn mirror(cells: &Cells, n: i32) -> Cells {
    cells.iter().map(|&(r, c)| (r, n - 1 - c)).collect()
}

fn orbit(cells: &Cells, n: i32) -> BTreeSet<Cells> {
    let turns = std::iter::successors(Some(cells.clone()), |cells| Some(quarter_turn(cells, n))).take(4);
    turns.flat_map(|turn| [mirror(&turn, n), turn]).collect()
}

#[test]
fn terms_are_those_of_brute_force() {
    for n in 1..=9_i32 {
        let size = BoardSize::new(n.unsigned_abs()).unwrap();
        let mut all = Vec::new();
        solutions(n, &[], &mut all);
        let count = |which: &dyn Fn(&Cells) -> bool| all.iter().filter(|cells| which(cells)).count() as u128;
        let quarter = |cells: &Cells| quarter_turn(cells, n) == *cells;
        let half = |cells: &Cells| quarter_turn(&quarter_turn(cells, n), n) == *cells;
        let orbits: BTreeSet<_> = all.iter().map(|cells| orbit(cells, n)).collect();
        let of_symmetry = |which: &dyn Fn(&Cells) -> bool| {
            orbits.iter().filter(|orbit| orbit.iter().all(which)).count() as u128
        };
        let count2 = of_symmetry(&quarter);
        let count4 = of_symmetry(&|cells| half(cells) && !quarter(cells));
        let count8 = of_symmetry(&|cells| !half(cells));
        let expected = |sequence| match sequence {
            Sequence::Solutions => all.len() as u128,
            Sequence::Unique => orbits.len() as u128,
            Sequence::Count2 => count2,
            Sequence::Count4 => count4,
            Sequence::Count8 => count8,
            Sequence::HalfTurn => count(&half),
            Sequence::QuarterTurn => count(&quarter),
        };
        let totals = if n == 1 {
            // The single queen is in the sequence of the quarter turn, and in none of the three counts.
            assert_eq!((count2, count4, count8), (1, 0, 0));
            Totals::default()
        } else {
            assert_eq!(count2 + count4 + count8, orbits.len() as u128, "N = {n}");
            assert_eq!(2 * count2 + 4 * count4 + 8 * count8, all.len() as u128, "N = {n}");
            assert_eq!(2 * count2, count(&quarter), "N = {n}");
            assert_eq!(2 * count2 + 4 * count4, count(&half), "N = {n}");
            Totals { count2, count4, count8, solutions: 0 }
        };
        assert_eq!(published(size).unwrap().orbits, totals);
        for sequence in Sequence::ALL {
            assert_eq!(sequence.term(size, totals), Ok(expected(*sequence)), "{sequence}, N = {n}");
        }
    }
}

#[test]
fn published_terms_agree_with_the_published_orbits() {
    for n in BoardSize::MIN.up_to(BoardSize::new(27).unwrap()) {
        let known = published(n).unwrap();
        let terms = [Sequence::Solutions, Sequence::Unique, Sequence::HalfTurn, Sequence::QuarterTurn];
        let counts = [known.total, known.unique, known.half_turn.into(), known.quarter_turn.into()];
        assert_eq!(terms.map(|sequence| sequence.term(n, known.orbits)), counts.map(Ok), "N = {n}");
        assert_eq!(first_counted(n).is_some(), n.get() > 20, "N = {n}");
    }
    let next = BoardSize::new(28).unwrap();
    assert_eq!((published(next), first_counted(next)), (None, None));
}

#[test]
fn names_are_numbers_of_the_oeis() {
    for sequence in Sequence::ALL {
        let digits = sequence.name().strip_prefix('A').unwrap();
        assert!(digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_digit()), "{sequence}");
        assert_eq!(sequence.name().parse(), Ok(*sequence));
    }
}
