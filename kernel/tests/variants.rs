//! Given queens, blocked cells and the torus, held against brute force and published counts.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::job::Job;
use nqueens_kernel::known::{published, toroidal};
use nqueens_kernel::ladder::{Form, Rung};
use nqueens_kernel::plan::Plan;
use nqueens_kernel::sampling::{STATES_LEFT, Sampler};
use nqueens_kernel::solution::Solution;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::variant::{Cell, Cells, Variant};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn board(n: u32) -> BoardSize {
    BoardSize::new(n).unwrap()
}

/// All solutions of a plan; each job is read from its bytes, and counts no more than it can.
fn count(plan: &Plan, solver: &mut Solver) -> u128 {
    let count = |(job, weight): (Job, _)| {
        let job = Job::decode(job.n(), job.class(), job.bound1(), &job.encode()).unwrap();
        assert_eq!(job.weight(), weight);
        let tally = solver.count_job(&job, &Control::default()).unwrap().unwrap();
        assert!(tally.counts.within(weight.counts_max) && tally.states > 0, "{job:?} {tally:?}");
        tally.counts.total()
    };
    plan.weighed_jobs().map(count).sum()
}

/// Counts by an engine, and by it alone.
fn solver(kernel: Kernel) -> Solver {
    Solver::recounting(kernel.engine().unwrap())
}

fn count_fast(variant: Variant) -> u128 {
    count(&Plan::of_variant(variant), &mut solver(Kernel::best()))
}

/// By the definition, from all ways to put a queen on each row: those with all given queens and no queen on a blocked cell.
fn brute_force(n: BoardSize, given: &[Cell], blocked: &[Cell]) -> Vec<Solution> {
    let has = |solution: &Solution, cell: &Cell| solution.columns()[usize::from(cell.row)] == cell.column;
    let mut found = Vec::new();
    Rung::BruteForce.search(Form::Iterative, n, &mut |solution, _| {
        let keeps = given.iter().all(|queen| has(&solution, queen));
        if keeps && !blocked.iter().any(|cell| has(&solution, cell)) {
            found.push(solution);
        }
    });
    found
}

/// A drawing, in which given queens may attack each other.
fn drawing(n: BoardSize, given: &[Cell], blocked: &[Cell]) -> String {
    let sign = |cell: Cell| match cell {
        cell if given.contains(&cell) => 'Q',
        cell if blocked.contains(&cell) => '#',
        _ => '.',
    };
    let line = |row| n.lines().map(|column| sign(Cell { row, column })).chain(['\n']).collect::<String>();
    n.lines().map(line).collect()
}

/// N, some cells to give queens on and some others to block: few or many.
fn variants() -> impl Strategy<Value = (BoardSize, Vec<Cell>, Vec<Cell>)> {
    (1_u32..=7, 0_usize..=3).prop_flat_map(|(n, queens)| {
        let n = board(n);
        let cells = n.lines().flat_map(|row| n.lines().map(move |column| Cell { row, column }));
        let cells: Vec<_> = cells.collect();
        let (queens, most) = (queens.min(cells.len()), cells.len());
        let given = prop::sample::subsequence(cells.clone(), queens);
        let blocked = prop_oneof![0..=most.min(4), 0..=most / 2]
            .prop_flat_map(move |number| prop::sample::subsequence(cells.clone(), number));
        (Just(n), given, blocked).prop_map(|(n, given, mut blocked)| {
            blocked.retain(|cell| !given.contains(cell));
            (n, given, blocked)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300, rng_seed: RngSeed::Fixed(8), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn boards_have_the_solutions_that_brute_force_finds(
        (n, given, blocked) in variants(), states_per_job in prop_oneof![Just(u64::MAX), 1_u64..200]
    ) {
        let expected = brute_force(n, &given, &blocked);
        let Ok(cells) = Cells::read(n, &drawing(n, &given, &blocked)) else {
            // Two given queens attack each other.
            prop_assert!(expected.is_empty() && given.len() > 1);
            return Ok(());
        };
        let beside_no_queen = blocked.iter().filter(|cell| given.iter().all(|queen| queen.row != cell.row));
        prop_assert_eq!((cells.given().len(), cells.blocked() as usize), (given.len(), beside_no_queen.count()));
        prop_assert_eq!(cells.to_string().parse::<Cells>(), Ok(cells));
        prop_assert_eq!(cells.solutions().collect::<Vec<_>>(), &expected[..]);
        let plan = Plan::of_variant_with(Variant::Cells(cells), states_per_job);
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
            prop_assert_eq!(count(&plan, &mut solver(kernel)), expected.len() as u128, "{}", kernel);
        }
        let sampled = Sampler::of(&plan).count(&mut solver(Kernel::Scalar), &Control::default()).unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let found = expected.len() as f64;
        prop_assert!((sampled.solutions.value - found).abs() < 0.5);
    }
}

#[test]
fn the_open_board_has_all_solutions() {
    for n in BoardSize::MIN.up_to(board(10)) {
        let total = published(n).unwrap().total;
        let variant = Variant::Cells(Cells::open(n));
        assert_eq!(count_fast(variant), total, "N = {n}");
        let many = Plan::of_variant_with(variant, 50);
        assert!(n.get() < 8 || many.jobs().count() > 8);
        assert_eq!(count(&many, &mut solver(Kernel::best())), total, "N = {n}");
    }
}

#[test]
fn a_queen_given_on_each_cell_of_a_row_sums_up_to_all() {
    let n = board(11);
    let by_column: Vec<_> = n
        .lines()
        .map(|column| {
            let cells = Cells::open(n).with_queen(Cell { row: 4, column }).unwrap();
            count_fast(Variant::Cells(cells))
        })
        .collect();
    assert_eq!(by_column.iter().sum::<u128>(), published(n).unwrap().total);
    assert!(by_column.iter().eq(by_column.iter().rev()), "left and right are alike: {by_column:?}");
}

#[test]
fn toroidal_queens_are_as_many_as_published() {
    // The one solution of N = 1 has no job, as on whole boards.
    for n in board(2).up_to(board(19)) {
        let variant = Variant::Torus(n);
        assert_eq!(variant.published(), Some(toroidal(n)));
        let plans = [Plan::of_variant(variant), Plan::of_variant_with(variant, 1)];
        for plan in &plans[..if n.get() <= 13 { 2 } else { 1 }] {
            assert_eq!(count(plan, &mut solver(Kernel::Portable)), toroidal(n), "N = {n}");
            if n.get() <= 17 {
                assert_eq!(count(plan, &mut solver(Kernel::Scalar)), toroidal(n), "N = {n}");
            }
        }
    }
    for n in [1, 21, 22, 24, 30] {
        assert_eq!(Plan::of_variant(Variant::Torus(board(n))).jobs().count(), 0);
    }
}

#[test]
fn estimates_hold_what_is_counted() {
    let cells = Cells::open(board(13)).with_queen(Cell { row: 6, column: 2 }).unwrap();
    for variant in [Variant::Cells(cells), Variant::Torus(board(13))] {
        let (plan, mut solver) = (Plan::of_variant(variant), solver(Kernel::Portable));
        let sampler = Sampler::of(&plan);
        let mut draw = |number| {
            sampler.draw((number, 400), 3, STATES_LEFT / 100, &mut solver, &Control::default()).unwrap()
        };
        let estimate = sampler.estimate(&(0..400).map(&mut draw).collect::<Vec<_>>()).solutions;
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let counted = count_fast(variant) as f64;
        assert!((estimate.value - counted).abs() < 3.0 * estimate.reach + 1.0, "{estimate:?} {counted}");
        assert!(estimate.reach < 0.2 * counted, "{estimate:?} {counted}");
    }
}

#[test]
fn plans_stay_what_they_are() {
    let cells: Cells = "......\n#.....\n......\n....Q.\n......\n......".parse().unwrap();
    let prints = [Variant::Cells(cells), Variant::Torus(board(7))]
        .map(|variant| Plan::of_variant_with(variant, 5).fingerprint().to_string());
    // A change makes ledgers of earlier versions useless.
    let pinned = [
        "5675618eec48e256990fa96473e15e56265eaf4761f05150970707e46e9264ba",
        "705feacaec1f7f929d633297b9d9a050e40c6880f76096718e95d9e242be591d",
    ];
    assert_eq!(prints, pinned);
}

#[test]
fn boards_that_differ_have_plans_that_differ() {
    let n = board(4);
    // The given queen leaves no more in the first than the blocked cells in the second.
    let boards = [
        "Q...\n....\n....\n....",
        ".###\n....\n....\n....",
        "#...\n....\n....\n....",
        "....\n....\n....\n....",
    ];
    let mut prints: Vec<_> = boards
        .map(|text| Plan::of_variant(Variant::Cells(text.parse().unwrap())))
        .into_iter()
        .chain([Plan::of_variant(Variant::Torus(n))])
        .map(|plan| plan.fingerprint().0)
        .collect();
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), 5);
}

#[test]
fn counting_ends_when_it_is_told_to() {
    let control = Control::default();
    control.stop();
    for variant in [Variant::Cells(Cells::open(board(20))), Variant::Torus(board(29))] {
        let job = Plan::of_variant(variant).jobs().next().unwrap();
        assert_eq!(solver(Kernel::best()).count_job(&job, &control), Err(Stopped));
    }
}

#[test]
fn plans_have_some_thousand_jobs() {
    for n in [16, 18, 20] {
        let plan = Plan::of_variant(Variant::Cells(Cells::open(board(n))));
        let (jobs, size) = (plan.jobs().count() as u128, plan.size());
        assert!((500..50_000).contains(&jobs), "N = {n}: {jobs}");
        assert!(size.at_least <= jobs && size.about < 4 * jobs && jobs < 4 * size.about, "{size:?} {jobs}");
    }
    for n in [17, 19, 23] {
        let plan = Plan::of_variant(Variant::Torus(board(n)));
        let (jobs, size) = (plan.jobs().count() as u128, plan.size());
        assert!((2..50_000).contains(&jobs) && size.at_least <= jobs, "N = {n}: {jobs} {size:?}");
    }
}
