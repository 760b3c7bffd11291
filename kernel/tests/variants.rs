//! Given queens, blocked cells and the torus, held against brute force and published counts.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::known::{published, toroidal};
use nqueens_kernel::ladder::{Form, Rung};
use nqueens_kernel::solution::Solution;
use nqueens_kernel::variant::{Cell, Cells, Piece, PieceFingerprinter, Variant, VariantPlan};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn board(n: u32) -> BoardSize {
    BoardSize::new(n).unwrap()
}

fn count(plan: &VariantPlan, kernel: Kernel) -> u128 {
    let pieces: Vec<_> = plan.pieces().collect();
    let mut engine = kernel.engine().unwrap();
    let tallies = Piece::count(&pieces, engine.as_mut(), &Control::default()).unwrap();
    tallies.iter().map(|tally| u128::from(tally.completions)).sum()
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
        (n, given, blocked) in variants(), states_per_piece in prop_oneof![Just(u64::MAX), 1_u64..200]
    ) {
        let expected = brute_force(n, &given, &blocked);
        let Ok(cells) = Cells::read(n, &drawing(n, &given, &blocked)) else {
            // Two given queens attack each other.
            prop_assert!(expected.is_empty() && given.len() > 1);
            return Ok(());
        };
        prop_assert_eq!((cells.given().len(), cells.blocked() as usize), (given.len(), blocked.len()));
        prop_assert_eq!(cells.solutions().collect::<Vec<_>>(), &expected[..]);
        let plan = VariantPlan::with_states_per_piece(Variant::Cells(cells), states_per_piece);
        for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
            prop_assert_eq!(count(&plan, kernel), expected.len() as u128, "{}", kernel);
        }
    }
}

#[test]
fn the_open_board_has_all_solutions() {
    for n in BoardSize::MIN.up_to(board(10)) {
        let total = published(n).unwrap().total;
        let variant = Variant::Cells(Cells::open(n));
        assert_eq!(count(&VariantPlan::new(variant.clone()), Kernel::best()), total, "N = {n}");
        let many = VariantPlan::with_states_per_piece(variant, 50);
        assert!(n.get() < 8 || many.pieces().count() > 8);
        assert_eq!(count(&many, Kernel::best()), total, "N = {n}");
    }
}

#[test]
fn a_queen_given_on_each_cell_of_a_row_sums_up_to_all() {
    let n = board(11);
    let by_column: Vec<_> = n
        .lines()
        .map(|column| {
            let cells = Cells::open(n).with_queen(Cell { row: 4, column }).unwrap();
            count(&VariantPlan::new(Variant::Cells(cells)), Kernel::best())
        })
        .collect();
    assert_eq!(by_column.iter().sum::<u128>(), published(n).unwrap().total);
    assert!(by_column.iter().eq(by_column.iter().rev()), "left and right are alike: {by_column:?}");
}

#[test]
fn toroidal_queens_are_as_many_as_published() {
    for n in BoardSize::MIN.up_to(board(19)) {
        let plan = VariantPlan::new(Variant::Torus(n));
        assert_eq!(count(&plan, Kernel::Reference), toroidal(n), "N = {n}");
        assert_eq!(plan.variant().published(), Some(toroidal(n)));
    }
    for n in [21, 22, 24, 30] {
        assert_eq!((VariantPlan::new(Variant::Torus(board(n))).pieces().count(), toroidal(board(n))), (0, 0));
    }
}

#[test]
fn pieces_stay_what_they_are() {
    let cells = Cells::read(board(6), "......\n#.....\n......\n....Q.\n......\n......").unwrap();
    let prints: Vec<_> = [Variant::Cells(cells), Variant::Torus(board(7))]
        .map(|variant| {
            let plan = VariantPlan::with_states_per_piece(variant, 5);
            let mut fingerprinter = PieceFingerprinter::new(&plan);
            plan.pieces().for_each(|piece| fingerprinter.add(&piece));
            fingerprinter.finish().to_string()
        })
        .to_vec();
    // Progress files name them: a change makes files of earlier versions useless.
    let pinned = [
        "91fef8ae05b5a131e4501333099ee744d157243cbe4af82898049f49cb4f0c2c",
        "a31c0f2dcaf86acabea0b203301551cd3c42e430a14a0c7e13be67df40597477",
    ];
    assert_eq!(prints, pinned);
}

#[test]
fn counting_ends_when_it_is_told_to() {
    let control = Control::default();
    control.stop();
    for variant in [Variant::Cells(Cells::open(board(20))), Variant::Torus(board(29))] {
        let pieces: Vec<_> = VariantPlan::new(variant).pieces().take(2).collect();
        let mut engine = Kernel::best().engine().unwrap();
        assert_eq!(Piece::count(&pieces, engine.as_mut(), &control), Err(Stopped));
    }
}

#[test]
fn large_boards_have_some_thousand_pieces() {
    for n in [16, 18] {
        let plan = VariantPlan::new(Variant::Cells(Cells::open(board(n))));
        assert!((500..50_000).contains(&plan.pieces().count()), "N = {n}");
    }
}
