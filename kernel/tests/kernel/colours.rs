//! Orbits of row sets by several roads: multiplied, found one by one, and by any engine with a mask a row.

use std::collections::BTreeMap;
use std::ops::Range;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::{
    ColourTally, Multiplier, Part, RowSets, recount_each, recount_part, recount_states,
};
use nqueens_kernel::engine::{Control, Engine, Kernel};
use nqueens_kernel::known::published;
use nqueens_kernel::ladder::Rung;
use nqueens_kernel::random::Random;
use nqueens_kernel::subproblem::{OpenRow, Subproblem};

use crate::board;

fn row_sets(n: u32) -> RowSets {
    RowSets::new(board(n)).unwrap()
}

/// One of each instruction set that this machine has.
fn multipliers() -> Vec<Multiplier> {
    Kernel::ALL.into_iter().filter_map(|kernel| Multiplier::new(kernel, 1 << 28)).collect()
}

fn solutions(tally: ColourTally) -> u64 {
    tally.weighted_solutions
}

/// The solutions of a range, found one by one.
fn recounted(sets: &RowSets, range: Range<u64>) -> u64 {
    solutions(recount_each(sets, range, &mut |_, _| {}, &Control::default()).unwrap())
}

/// The same, multiplied.
fn multiplied(multiplier: &mut Multiplier, sets: &RowSets, range: Range<u64>) -> u64 {
    solutions(multiplier.count_each(sets, range, &mut |_, _| {}, &Control::default()).unwrap())
}

/// Holds each of `multipliers` against the recount of a range.
fn compare(multipliers: &mut [Multiplier], sets: &RowSets, range: Range<u64>) {
    let expected = recounted(sets, range.clone());
    for multiplier in multipliers {
        let found = multiplied(multiplier, sets, range.clone());
        assert_eq!(found, expected, "{multiplier:?} N = {}, {range:?}", sets.n());
    }
}

/// Orbits drawn by a fixed rule.
fn some_orbits(sets: &RowSets, number: u64) -> impl Iterator<Item = u64> {
    let (all, mut random) = (sets.len(), Random::new(sets.n().get().into()));
    (0..number).map(move |_| random.bits() % all)
}

#[test]
fn every_orbit_of_small_boards_equals_its_recount() {
    let mut multipliers = multipliers();
    for sets in (4..=12).map(row_sets) {
        for number in 0..sets.len() {
            compare(&mut multipliers, &sets, number..number + 1);
        }
    }
}

#[test]
fn orbits_of_larger_boards_equal_their_recount() {
    let mut multipliers = multipliers();
    for (n, orbits) in [(13, 20), (14, 20), (15, 20), (16, 20), (17, 10), (18, 8), (19, 2), (20, 2)] {
        let sets = row_sets(n);
        for number in some_orbits(&sets, orbits) {
            compare(&mut multipliers, &sets, number..number + 1);
        }
    }
}

#[test]
fn ranges_have_the_sum_of_their_orbits() {
    let mut multipliers = multipliers();
    for sets in [8, 11, 14].map(row_sets) {
        let mut random = Random::new(1);
        for _ in 0..4 * multipliers.len() {
            let mut ends = [random.bits(), random.bits()].map(|end| end % sets.len());
            ends.sort_unstable();
            compare(&mut multipliers, &sets, ends[0]..ends[1] + 1);
        }
    }
}

/// Queens on white cells in these rows and on black cells in the others.
fn coloured(n: BoardSize, rows: u32) -> Subproblem {
    let open = |row: u8| {
        let even_columns = (rows >> row & 1 == 1) == row.is_multiple_of(2);
        OpenRow { row, allowed: n.full() & if even_columns { 0x5555_5555 } else { 0xaaaa_aaaa } }
    };
    Subproblem::new(n, n.full(), &n.lines().map(open).collect::<Vec<_>>()).unwrap()
}

#[test]
fn engines_agree_on_the_boards_of_row_sets() {
    let control = Control::default();
    let kernels = Kernel::ALL.into_iter().filter(|&kernel| kernel != Kernel::Reference);
    let mut engines: Vec<_> = kernels.filter_map(Kernel::engine).collect();
    for (n, orbits) in [(4, 9), (5, 9), (8, 30), (11, 50), (12, 50), (15, 10), (16, 10), (18, 2)] {
        let sets = row_sets(n);
        for rows in some_orbits(&sets, orbits).map(|number| sets.get(number).rows) {
            let problem = coloured(board(n), rows);
            let count = |engine: &mut Box<dyn Engine>| engine.count(&problem, &control).unwrap().completions;
            let counted: Vec<_> = engines.iter_mut().map(count).collect();
            assert!(counted.iter().all(|found| *found == counted[0]), "N = {n}, {rows:b}: {counted:?}");
        }
    }
}

#[test]
fn strata_have_as_many_solutions_as_their_colour_patterns() {
    for n in 4..=9 {
        let sets = row_sets(n);
        // For even N a mirror image makes white queens black: of `h` even rows there are as many white ones in one as
        // black ones in the other.
        let key = |white: u32| if n % 2 == 0 { white.min(n / 2 - white) } else { white };
        let mut expected = BTreeMap::new();
        Rung::Backtracking.search(board(n), &mut |solution, _| {
            let even_rows = solution.columns().iter().step_by(2);
            let white = even_rows.filter(|column| column.is_multiple_of(2)).count();
            *expected.entry(key(u32::try_from(white).unwrap())).or_default() += 1;
        });
        let mut found = BTreeMap::<u32, u64>::new();
        for number in 0..sets.len() {
            let white = (sets.get(number).rows & 0x5555_5555).count_ones();
            *found.entry(key(white)).or_default() += recounted(&sets, number..number + 1);
        }
        found.retain(|_, solutions| *solutions > 0);
        assert_eq!(found, expected, "N = {n}");
    }
}

#[test]
fn totals_are_as_published() {
    for multiplier in &mut multipliers() {
        for sets in (4..=16).map(row_sets) {
            let found = multiplied(multiplier, &sets, 0..sets.len());
            let known = published(sets.n()).unwrap();
            assert_eq!(u128::from(found), known.total, "{multiplier:?} N = {}", sets.n());
        }
    }
}

#[test]
fn the_parts_of_an_orbit_make_it_up() {
    let control = Control::default();
    let mut multipliers = multipliers();
    for (n, orbits) in [(7, 5), (8, 5), (11, 4), (12, 4)] {
        let sets = row_sets(n);
        let even = 0x5555_5555 & board(n).full();
        for number in some_orbits(&sets, orbits) {
            let expected = recounted(&sets, number..number + 1);
            let (mut sum, mut columns) = (0, even);
            loop {
                let part = Part { number, given: even, columns };
                let found = solutions(recount_part(&sets, part, &control).unwrap());
                for multiplier in &mut multipliers {
                    let by_product = solutions(multiplier.count_part(&sets, part, &control).unwrap());
                    assert_eq!(by_product, found, "{multiplier:?} N = {n}, {part:?}");
                }
                sum += found;
                // All subsets, the largest first.
                if columns == 0 {
                    break;
                }
                columns = (columns - 1) & even;
            }
            assert_eq!(sum, expected, "N = {n}, {:?}", sets.get(number));
        }
    }
}

#[test]
fn parts_that_are_drawn_are_small_and_count() {
    let control = Control::default();
    let mut multipliers = multipliers();
    for (n, states_max, given, least) in [(12, u64::MAX, 0, 2), (20, 40_000_000, 10, 5), (21, 1, 21, 0)] {
        let (sets, mut random) = (row_sets(n), Random::new(3));
        let mut some = 0;
        for _ in 0..10 {
            let part = Part::draw(&sets, &(0..sets.len()), states_max, &mut random);
            assert_eq!((part.given.count_ones(), part.columns & !part.given), (given, 0));
            let found = recount_part(&sets, part, &control).unwrap();
            assert!(found.states < states_max.max(10_000_000), "{part:?} {found:?}");
            some += u32::from(found.weighted_solutions > 0);
            for multiplier in &mut multipliers {
                let by_product = multiplier.count_part(&sets, part, &control).unwrap();
                assert_eq!(solutions(by_product), solutions(found), "{multiplier:?} N = {n}, {part:?}");
            }
        }
        assert!(some >= least, "N = {n}: {some} of 10 parts have solutions");
    }
}

#[test]
fn the_work_of_a_recount_is_foreseen() {
    let control = Control::default();
    for (n, orbits) in [(12, 267), (15, 100), (16, 60), (17, 20)] {
        let sets = row_sets(n);
        let (mut guessed, mut visited) = (0, 0);
        for number in some_orbits(&sets, orbits) {
            guessed += recount_states(&sets, &(number..number + 1));
            visited += recount_each(&sets, number..number + 1, &mut |_, _| {}, &control).unwrap().states;
        }
        assert!(visited < 2 * guessed && guessed < 4 * visited, "N = {n}: {guessed}, {visited}");
    }
}
