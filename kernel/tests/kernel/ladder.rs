//! The rungs of the ladder against the published counts, the class tables and one another.

use std::collections::{BTreeMap, BTreeSet};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::known::published;
use nqueens_kernel::ladder::{self, Rung, StandsFor};
use nqueens_kernel::solution::{Solution, Symmetry};

fn sizes(first: u32, last: u32) -> impl Iterator<Item = BoardSize> {
    BoardSize::new(first).unwrap().up_to(BoardSize::new(last).unwrap())
}

/// What a search gives its visitor, in order.
fn found(rung: Rung, n: BoardSize) -> Vec<(Solution, StandsFor)> {
    let mut all = Vec::new();
    rung.search(n, &mut |board, stands_for| all.push((board, stands_for)));
    all
}

fn only(symmetry: Symmetry) -> Counts {
    match symmetry {
        Symmetry::Identity => Counts::only8(1),
        Symmetry::HalfTurn => Counts { count4: 1, ..Counts::ZERO },
        Symmetry::QuarterTurn => Counts { count2: 1, ..Counts::ZERO },
    }
}

#[test]
fn every_rung_counts_as_published() {
    for rung in Rung::ALL {
        let last = match rung {
            Rung::BruteForce => 7,
            Rung::Backtracking | Rung::Flags => 12,
            Rung::Bitmap | Rung::Mirror | Rung::Symmetry => 14,
        };
        for n in sizes(1, last) {
            let known = published(n).unwrap();
            let count = rung.count(n);
            assert_eq!((count.total, count.orbits), (known.total, known.orbits), "{rung}, N = {n}");
        }
    }
}

#[test]
fn every_rung_enumerates_the_same_solutions_in_the_same_order() {
    for n in sizes(1, 8) {
        let listed: Vec<_> = ladder::solutions(n).collect();
        assert_eq!(listed.len() as u128, published(n).unwrap().total, "N = {n}");
        assert!(listed.iter().all(|solution| Solution::new(solution.columns()) == Some(*solution)));
        for rung in Rung::ALL.into_iter().filter(|&rung| rung != Rung::BruteForce || n.get() < 8) {
            let boards = found(rung, n);
            assert!(boards.is_sorted_by(|a, b| a.0 < b.0), "{rung}, N = {n}");
            let mut meant = Vec::new();
            for (board, stands_for) in boards {
                let solutions = stands_for.solutions(&board);
                assert_eq!(solutions.len(), usize::from(stands_for.members(n)), "{rung}: {board}");
                assert_eq!(solutions[0], board, "{rung} finds the smallest");
                meant.extend(solutions);
            }
            meant.sort_unstable();
            assert_eq!(meant, listed, "{rung}, N = {n}");
        }
    }
}

#[test]
fn each_rung_does_the_work_its_essay_says() {
    let states = |rung: Rung, n| rung.count(n).states;
    for n in sizes(2, 7) {
        let leaves_and_inner = (1..=n.get()).map(|k| u64::from(n.get()).pow(k)).sum::<u64>();
        assert_eq!(states(Rung::BruteForce, n), leaves_and_inner, "N = {n}");
        assert_eq!(states(Rung::Backtracking, n), states(Rung::Flags, n), "N = {n}");
        assert_eq!(states(Rung::Backtracking, n), states(Rung::Bitmap, n), "N = {n}");
    }
    for n in sizes(4, 12) {
        let (all, half, eighth) =
            (states(Rung::Bitmap, n), states(Rung::Mirror, n), states(Rung::Symmetry, n));
        assert!(eighth < half && half < all, "N = {n}");
        if n.get() % 2 == 0 {
            assert_eq!(2 * half, all, "N = {n}");
        }
    }
}

/// Orbits by class and BOUND1, which the representative's first two queens tell.
#[test]
fn the_symmetry_rung_agrees_with_the_class_tables() {
    let table = include_str!("../../data/bound_tables.csv").lines().skip(1);
    let mut expected = BTreeMap::new();
    for line in table {
        let fields: Vec<_> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        if number(1) <= 11 {
            let counts = Counts { count2: number(3), count4: number(4), count8: number(5), ..Counts::ZERO };
            expected.insert((number(1), fields[0], number(2)), counts);
        }
    }
    let mut sums: BTreeMap<_, _> = expected.keys().map(|&key| (key, Counts::ZERO)).collect();
    for n in sizes(4, 11) {
        for (board, symmetry) in ladder::unique_solutions(n) {
            let (class, bound1) = match *board.columns() {
                [0, second, ..] => ("corner", second),
                [first, ..] => ("edge", first),
                [] => unreachable!("no board is empty"),
            };
            let sum =
                sums.get_mut(&(u64::from(n.get()), class, bound1.into())).expect("a class of the table");
            *sum = sum.checked_add(only(symmetry)).unwrap();
        }
    }
    assert_eq!(sums, expected);
}

/// The short cut of the symmetry rung against the definition: a solution that equals its canonical image.
#[test]
fn unique_solutions_are_the_canonical_ones() {
    for n in sizes(1, 10) {
        let canonical = ladder::solutions(n).filter(|solution| solution.canonical() == *solution);
        let expected: Vec<_> = canonical.map(|solution| (solution, solution.symmetry())).collect();
        assert_eq!(ladder::unique_solutions(n).collect::<Vec<_>>(), expected, "N = {n}");
        assert_eq!(expected.len() as u128, published(n).unwrap().unique, "N = {n}");
    }
}

#[test]
fn the_lists_are_lazy() {
    let n = BoardSize::new(20).unwrap();
    let first: Vec<_> = ladder::solutions(n).take(3).collect();
    assert_eq!(first[0].to_string(), "0 2 4 1 3 12 14 11 17 19 16 8 15 18 7 9 6 13 5 10");
    assert!(first.is_sorted_by(|a, b| a < b));
    assert!(ladder::unique_solutions(n).take(3).all(|(board, _)| board.is_canonical()));
}

#[test]
fn a_rung_is_known_by_its_name() {
    for rung in Rung::ALL {
        assert_eq!(rung.name().parse(), Ok(rung));
        assert!(BTreeSet::from(Rung::ALL).range(..rung).all(|lower| lower.n_max() <= rung.n_max()));
    }
    assert_eq!(
        "bitmaps".parse::<Rung>().unwrap_err().to_string(),
        "unknown algorithm 'bitmaps'; known are: brute-force, backtracking, flags, bitmap, mirror, symmetry"
    );
}
