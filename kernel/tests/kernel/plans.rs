//! Every plan covers every solution once, however its jobs are cut.

use std::collections::BTreeMap;
use std::slice;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::known::published;
use nqueens_kernel::ladder;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind, fastest};
use nqueens_kernel::solution::Solution;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_kernel::unit::{Unit, UnitTally};

use crate::{board, count, solver};

fn count_units(units: &[Unit], solver: &mut Solver) -> Counts {
    let tallies = solver.count(units, &Control::default()).unwrap();
    tallies.into_iter().fold(UnitTally::default(), |sum, tally| sum.checked_add(tally).unwrap()).counts
}

fn total(plan: Plan, kernel: Kernel) -> Totals {
    let (found, _) = solver(kernel).count_jobs(plan.jobs(), &Control::default()).unwrap();
    found.sorted(symmetric_counts(plan.n(), &Control::default()).unwrap()).unwrap()
}

fn available() -> impl Iterator<Item = Kernel> {
    Kernel::ALL.into_iter().filter(|kernel| kernel.is_available())
}

#[test]
fn totals_are_as_published() {
    for kernel in available() {
        for n in BoardSize::MIN.up_to(board(14)) {
            for kind in PlanKind::ALL {
                let found = total(Plan::new(n, kind), kernel);
                assert_eq!(found, published(n).unwrap().orbits, "{kernel} {kind} {n}");
            }
        }
    }
}

#[test]
fn block_engines_find_the_published_total_of_a_larger_board() {
    let n = board(16);
    let borders = available().filter(|&kernel| kernel.multiplies());
    for (kernel, kind) in
        borders.map(|kernel| (kernel, PlanKind::Border)).chain([(Kernel::best(), PlanKind::Rows)])
    {
        assert_eq!(total(Plan::new(n, kind), kernel), published(n).unwrap().orbits, "{kernel} {kind}");
    }
}

#[test]
fn every_engine_agrees_with_the_reference_job_by_job() {
    let mut reference = solver(Kernel::Reference);
    let mut solvers: Vec<_> = available().map(|kernel| (kernel, solver(kernel))).collect();
    for n in board(4).up_to(board(10)) {
        for kind in PlanKind::ALL {
            for states_per_job in [20, 2_000] {
                for job in Plan::with_states_per_job(n, kind, states_per_job).jobs() {
                    let expected = count(&job, &mut reference);
                    for (kernel, solver) in &mut solvers {
                        assert_eq!(count(&job, solver), expected, "{kernel} {job:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn totals_do_not_depend_on_the_size_of_jobs() {
    for n in board(4).up_to(board(13)) {
        for states_per_job in [1, 10, 100, 1_000, 10_000] {
            if n > board(11) && states_per_job < 100 {
                continue;
            }
            for kind in PlanKind::ALL {
                let plan = Plan::with_states_per_job(n, kind, states_per_job);
                assert_eq!(total(plan, Kernel::Scalar), published(n).unwrap().orbits, "{plan:?}");
            }
        }
    }
}

#[test]
fn classes_agree_with_the_table_of_another_program() {
    let mut expected = BTreeMap::new();
    for line in include_str!("../../data/bound_tables.csv").lines().skip(1) {
        let [class, n, bound1, rest @ ..] = &line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let counts: Vec<u128> = rest.iter().map(|count| count.parse().unwrap()).collect();
        let key = (n.parse().unwrap(), class.parse().unwrap(), bound1.parse().unwrap());
        expected
            .insert(key, Totals { count2: counts[0], count4: counts[1], count8: counts[2], solutions: 0 });
    }
    expected.retain(|&(n, ..), _| n <= board(13));
    let mut found: BTreeMap<(BoardSize, Class, u8), Totals> = BTreeMap::new();
    let mut solver = solver(Kernel::Scalar);
    for n in board(4).up_to(board(13)) {
        for job in Plan::with_states_per_job(n, PlanKind::Rows, 2_000).jobs() {
            let sum = found.entry((n, job.class(), job.bound1())).or_default();
            *sum = sum.checked_add(count(&job, &mut solver)).unwrap();
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn the_test_at_the_leaves_and_pure_counting_agree_job_by_job() {
    let mut solver = solver(Kernel::Scalar);
    for n in board(4).up_to(board(11)) {
        for job in Plan::with_states_per_job(n, PlanKind::Rows, 500).jobs() {
            let [pure, tested] =
                [false, true].map(|leaf_test| count_units(&job.units(leaf_test), &mut solver));
            assert_eq!(pure, tested, "{job:?}");
        }
    }
}

#[test]
fn units_split_into_units_with_the_same_orbits() {
    fn in_pieces(unit: Unit, depth: u32, solver: &mut Solver) -> Counts {
        if depth == 0 {
            return count_units(&[unit], solver);
        }
        let pieces = unit.split().into_iter().map(|piece| in_pieces(piece, depth - 1, solver));
        pieces.fold(Counts::ZERO, |sum, counts| sum.checked_add(counts).unwrap())
    }
    let mut solver = solver(Kernel::Scalar);
    for (n, depth) in [(5, 6), (8, 6), (9, 9), (10, 3), (11, 2), (12, 4)] {
        for plan in PlanKind::ALL.map(|kind| Plan::new(board(n), kind)) {
            for unit in plan.jobs().flat_map(|job| [job.units(false), job.units(true)].concat()) {
                // Splitting to the end is slow; the kinds of units that need the proof are few.
                let depth = if matches!(unit, Unit::Count(_)) { depth.min(2) } else { depth };
                let whole = count_units(slice::from_ref(&unit), &mut solver);
                assert_eq!(in_pieces(unit, depth, &mut solver), whole);
            }
        }
    }
}

#[test]
fn plans_are_what_they_were() {
    let prints =
        [(8, 100_000), (13, 1_000), (16, 170_000), (20, 1_000_000_000), (31, u64::MAX)].map(|(n, states)| {
            PlanKind::ALL.map(|kind| {
                let plan = Plan::with_states_per_job(board(n), kind, states);
                format!("{n} {kind} {} {}", plan.jobs().count(), plan.fingerprint())
            })
        });
    assert_eq!(prints.concat(), FINGERPRINTS);
    // The sizes of jobs of colours show every change of their estimates of work.
    let sizes: Vec<_> =
        board(22).up_to(BoardSize::MAX).map(|n| Plan::new(n, PlanKind::Colours).states_per_job()).collect();
    assert_eq!(sizes, SIZES_OF_COLOURS);
    assert_eq!(Fingerprint::of_all_plans().to_string(), ALL_PLANS);
}

/// Workers of another are refused.
const ALL_PLANS: &str = "b37267e11b5d476db9aaf7aa0256506dcb12b8743fb45243a8455408b6e2c0fc";

/// For N = 22 to 31.
const SIZES_OF_COLOURS: [u64; 10] = [
    383_709_864,
    1_756_717_206,
    10_375_154_812,
    20_003_066_030,
    20_000_520_959,
    20_000_012_880,
    80_423_869_239,
    120_564_072_601,
    801_871_111_088,
    1_208_842_643_975,
];

/// N, kind, jobs and fingerprint. A change here makes another plan of every run to come: a ledger that was made before
/// verifies only with a program that cuts boards as before.
const FINGERPRINTS: &[&str] = &[
    "8 rows 8 7be19c75d56bd3157345ea20d4b22f1b26a135de9316a13e225f3f7cc5a2a644",
    "8 border 4 d205dad6f1268faf97049d801bbfc0b6ec9bd2062270a9566302be741eaa8a69",
    "8 colours 1 feeebb70b83d68dfc317367410bf7dffc2e642cb917c7b7371ded82fd68e5f11",
    "13 rows 719 45d73c93983a8a0e117633a54d4a77292e5171cc562980297ac09c9239320040",
    "13 border 475 629fb747bc9cde67afcfbfc4a3fe2e71d933919f6a3a65186f0d559ccd65be6f",
    "13 colours 316 bf45ba7dec1a9d1567305b5a3e38d0bd4e791c910c581dca1c0174fecd686932",
    "16 rows 1556 1117cf18bef9310ff9fde4cfca3f82ef25867cb936a4dd1505c6feb9c1b8ad14",
    "16 border 897 f7768dafbd03d4137165538cfc428c080c1cb6933be13b6947a16d9242c823ae",
    "16 colours 125 dff3a918eeb75054f8bab4e7ac3bf34dd109dd10cb63891de544beecc6a8fc5f",
    "20 rows 895 44b8a35ad553a08e74ef77f1f86181758887ee2d484dceb664cf9ac08ad97cab",
    "20 border 581 ea13622443540bd69704768cfbdc25c92ae1b2ae3e508c02ddabf81e6aefc575",
    "20 colours 14 214a55f56e3cdc72b1353957c32ba7853d7f6e6caeda57ddf4f51312b3f804e2",
    "31 rows 23544 8b293a9e449cc6d51d7563fa687b07a28e69ab392fca4bd07fea8ed033ba1d45",
    "31 border 8447 71077c81bc73654bd0be2b065a8bc2c3c74bc1879da1d0d1e42fd2ffb9efe031",
    "31 colours 1 8eb68c0446d29044cca38de663295768482747e590b6778c74827277c54b72cc",
];

/// The columns of a solution's rows.
fn columns(solution: &Solution) -> Vec<usize> {
    solution.columns().iter().map(|&column| column.into()).collect()
}

/// The rotations of a solution, itself first.
fn rotations(queens: &[usize]) -> Vec<Vec<usize>> {
    let rotated = |queens: &Vec<usize>| {
        let mut turned = vec![0; queens.len()];
        for (row, &column) in queens.iter().enumerate() {
            turned[column] = queens.len() - 1 - row;
        }
        Some(turned)
    };
    std::iter::successors(Some(queens.to_vec()), rotated).take(4).collect()
}

/// Top column, right row, bottom column, left row.
fn border(queens: &[usize]) -> [usize; 4] {
    let last = queens.len() - 1;
    let row_of = |column| queens.iter().position(|&c| c == column).unwrap();
    [queens[0], row_of(last), queens[last], row_of(0)]
}

/// Whether a prefix means this solution, told from the definitions and nothing else.
fn means(job: &Job, prefix: &[u8], queens: &[usize]) -> bool {
    let last = queens.len() - 1;
    let prefix: Vec<_> = prefix.iter().map(|&line| usize::from(line)).collect();
    let bound1 = usize::from(job.bound1());
    match job.class() {
        Class::Corner => queens.starts_with(&prefix) && (2..bound1).all(|row| queens[row] != 1),
        Class::Edge => {
            let nearest = border(queens).map(|line| line.min(last - line)).into_iter().min();
            let first = rotations(queens).iter().all(|turned| queens <= turned);
            queens.starts_with(&prefix) && nearest == Some(bound1) && first
        }
        Class::Border => {
            let four = border(queens);
            let inner = (1..last).filter(|row| *row != four[1] && *row != four[3]);
            let keep = rotations(queens).into_iter().filter(|turned| border(turned) == four);
            let leads = |row: usize| keep.clone().all(|turned| queens[row] <= turned[row]);
            let symmetric = rotations(queens).iter().filter(|turned| border(turned) == four).count() > 1;
            prefix[..4] == four
                && prefix[4..]
                    .iter()
                    .zip(inner)
                    .all(|(&column, row)| queens[row] == column && (!symmetric || leads(row)))
        }
        _ => unreachable!("a class of the plans rows and border"),
    }
}

#[test]
fn every_orbit_belongs_to_one_prefix_of_one_job() {
    for n in board(4).up_to(board(10)) {
        let orbits: Vec<Vec<_>> = ladder::unique_solutions(n)
            .map(|(solution, _)| solution.orbit().iter().map(columns).collect())
            .collect();
        for kind in [PlanKind::Rows, PlanKind::Border] {
            for states_per_job in [20, 100_000] {
                let plan = Plan::with_states_per_job(n, kind, states_per_job);
                let jobs: Vec<_> = plan.jobs().collect();
                let prefixes: Vec<_> =
                    jobs.iter().flat_map(|job| job.prefixes().map(move |prefix| (job, prefix))).collect();
                for orbit in &orbits {
                    let meant = |(job, prefix): &&(&Job, &[u8])| orbit.iter().any(|q| means(job, prefix, q));
                    let homes: Vec<_> = prefixes.iter().filter(meant).collect();
                    assert_eq!(homes.len(), 1, "{plan:?} {:?} {homes:?}", orbit.first());
                }
            }
        }
    }
}

#[test]
fn every_row_set_belongs_to_one_job() {
    for n in board(4).up_to(board(22)) {
        let sets = RowSets::new(n).unwrap();
        let default = Plan::new(n, PlanKind::Colours);
        for plan in [default, Plan::with_states_per_job(n, PlanKind::Colours, default.states_per_job() / 8)] {
            let (mut next, mut states) = (0, 0);
            for (job, weight) in plan.weighed_jobs() {
                let range = job.row_sets().unwrap();
                assert_eq!((job.class(), range.start), (Class::Colours, next), "{plan:?}");
                assert!(weight.states <= 2 * plan.states_per_job() || range.end == next + 1, "{plan:?}");
                (next, states) = (range.end, states + weight.states);
            }
            assert_eq!(next, sets.len(), "{plan:?}");
            let all = sets.work(&(0..sets.len()));
            assert!(states.abs_diff(all) <= all / 50 + sets.len(), "{plan:?}: {states}, {all}");
        }
    }
    assert_eq!(Plan::new(board(3), PlanKind::Colours).jobs().count(), 0);
}

#[test]
fn pieces_part_what_is_counted_together() {
    for n in [12, 15] {
        let sets = RowSets::new(board(n)).unwrap();
        let (work, mut next) = (10 * sets.work(&(0..1)), 0);
        while next < sets.len() {
            let (piece, together) = (sets.piece(next, work), sets.together(next));
            assert!(piece.start == next && piece.end <= together.end, "{piece:?} of {together:?}");
            assert!(piece.clone().all(|number| sets.piece(number, work) == piece), "{piece:?}");
            assert_eq!(sets.piece(next, u64::MAX), together);
            next = piece.end;
        }
    }
}

#[test]
fn the_jobs_of_large_boards_are_neither_few_nor_too_many() {
    for n in board(23).up_to(BoardSize::MAX) {
        let sets = RowSets::new(n).unwrap();
        let plan = Plan::new(n, PlanKind::Colours);
        // Making them all takes seconds: those of some stretches stand for the others.
        let mean =
            (0..64).map(|at| at * sets.len() / 64).map(|from| sets.cut(from, plan.states_per_job()) - from);
        let jobs = sets.len() / (mean.sum::<u64>() / 64).max(1);
        assert!((500..=4_000_000).contains(&jobs), "N = {n}: about {jobs} jobs");
    }
}

#[test]
fn the_fastest_plan_follows_from_board_and_engine() {
    for kernel in Kernel::ALL {
        assert_eq!(fastest(board(12), Some(kernel)), PlanKind::Border, "{kernel}");
        let large = if kernel.multiplies() { PlanKind::Colours } else { PlanKind::Border };
        assert_eq!([20, 27, 31].map(|n| fastest(board(n), Some(kernel))), [large; 3], "{kernel}");
    }
    let on_gpus = [4, 20, 21, 31].map(|n| fastest(board(n), None));
    assert_eq!(on_gpus, [PlanKind::Border, PlanKind::Border, PlanKind::Colours, PlanKind::Colours]);
}
