//! Given queens and blocked cells, held against brute force.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::job::Job;
use nqueens_kernel::known::published;
use nqueens_kernel::ladder::Rung;
use nqueens_kernel::plan::Plan;
use nqueens_kernel::sampling::{STATES_LEFT, Sampler};
use nqueens_kernel::solution::Solution;
use nqueens_kernel::solver::Solver;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::board;

/// Row from the top, and column.
type Cell = (u8, u8);

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

fn count_fast(cells: Cells) -> u128 {
    count(&Plan::of_cells(cells), &mut solver(Kernel::best()))
}

/// The open board with a queen.
fn with_queen(n: BoardSize, queen: Cell) -> Cells {
    drawing(n, &[queen], &[]).parse().unwrap()
}

/// By the definition, from all ways to put a queen on each row: those with all given queens and no queen on a blocked cell.
fn brute_force(n: BoardSize, given: &[Cell], blocked: &[Cell]) -> Vec<Solution> {
    let has = |solution: &Solution, cell: &Cell| solution.columns()[usize::from(cell.0)] == cell.1;
    let mut found = Vec::new();
    Rung::BruteForce.search(n, &mut |solution, _| {
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
    let line = |row| n.lines().map(|column| sign((row, column))).chain(['\n']).collect::<String>();
    n.lines().map(line).collect()
}

/// N, some cells to give queens on and some others to block: few or many.
fn drawings() -> impl Strategy<Value = (BoardSize, Vec<Cell>, Vec<Cell>)> {
    (1_u32..=7, 0_usize..=3).prop_flat_map(|(n, queens)| {
        let n = board(n);
        let cells = n.lines().flat_map(|row| n.lines().map(move |column| (row, column)));
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
        (n, given, blocked) in drawings(), states_per_job in prop_oneof![Just(u64::MAX), 1_u64..200]
    ) {
        let expected = brute_force(n, &given, &blocked);
        let cells: Cells = drawing(n, &given, &blocked).parse().unwrap();
        prop_assert_eq!(cells.to_string().parse::<Cells>(), Ok(cells));
        prop_assert_eq!(cells.solutions().collect::<Vec<_>>(), &expected[..]);
        let plan = Plan::of_cells_with(cells, states_per_job);
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
        let open = Cells::open(n);
        assert_eq!(count_fast(open), total, "N = {n}");
        let many = Plan::of_cells_with(open, 50);
        assert!(n.get() < 8 || many.jobs().count() > 8);
        assert_eq!(count(&many, &mut solver(Kernel::best())), total, "N = {n}");
    }
}

#[test]
fn a_queen_given_on_each_cell_of_a_row_sums_up_to_all() {
    let n = board(11);
    let by_column: Vec<_> = n.lines().map(|column| count_fast(with_queen(n, (4, column)))).collect();
    assert_eq!(by_column.iter().sum::<u128>(), published(n).unwrap().total);
    assert!(by_column.iter().eq(by_column.iter().rev()), "left and right are alike: {by_column:?}");
}

#[test]
fn estimates_hold_what_is_counted() {
    let cells = with_queen(board(13), (6, 2));
    let (plan, mut solver) = (Plan::of_cells(cells), solver(Kernel::Portable));
    let sampler = Sampler::of(&plan);
    let mut draw =
        |number| sampler.draw((number, 400), 3, STATES_LEFT / 100, &mut solver, &Control::default()).unwrap();
    let estimate = sampler.estimate(&(0..400).map(&mut draw).collect::<Vec<_>>()).solutions;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let counted = count_fast(cells) as f64;
    assert!((estimate.value - counted).abs() < 3.0 * estimate.reach + 1.0, "{estimate:?} {counted}");
    assert!(estimate.reach < 0.2 * counted, "{estimate:?} {counted}");
}

#[test]
fn plans_stay_what_they_are() {
    let cells: Cells = "......\n#.....\n......\n....Q.\n......\n......".parse().unwrap();
    // A change makes ledgers of earlier versions useless.
    let pinned = "5675618eec48e256990fa96473e15e56265eaf4761f05150970707e46e9264ba";
    assert_eq!(Plan::of_cells_with(cells, 5).fingerprint().to_string(), pinned);
}

#[test]
fn boards_that_differ_have_plans_that_differ() {
    let boards = [".###\n....\n....\n....", "#...\n....\n....\n....", "....\n....\n....\n...."];
    let mut prints = boards.map(|text| Plan::of_cells(text.parse().unwrap()).fingerprint().0).to_vec();
    prints.sort_unstable();
    prints.dedup();
    assert_eq!(prints.len(), 3);
}

#[test]
fn counting_ends_when_it_is_told_to() {
    let control = Control::default();
    control.stop();
    let job = Plan::of_cells(Cells::open(board(20))).jobs().next().unwrap();
    assert_eq!(solver(Kernel::best()).count_job(&job, &control), Err(Stopped));
}

#[test]
fn plans_have_hundreds_or_thousands_of_jobs() {
    for n in [16, 18, 20] {
        let plan = Plan::of_cells(Cells::open(board(n)));
        let (jobs, size) = (plan.jobs().count() as u128, plan.size());
        assert!((200..50_000).contains(&jobs), "N = {n}: {jobs}");
        assert!(size.at_least <= jobs && size.about < 4 * jobs && jobs < 4 * size.about, "{size:?} {jobs}");
    }
}
