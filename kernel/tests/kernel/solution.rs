//! Solutions and their images, against the board drawn cell by cell.

use std::collections::BTreeSet;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::ladder;
use nqueens_kernel::solution::{Image, Solution, Symmetry};

fn every_solution(last: u32) -> impl Iterator<Item = Solution> {
    BoardSize::MIN.up_to(BoardSize::new(last).unwrap()).flat_map(ladder::solutions)
}

/// Where a cell goes: `(N - 1, row, column)` to `(row, column)`.
type Move = fn(u8, u8, u8) -> (u8, u8);

/// The solution after each of its queens was moved.
fn moved(solution: &Solution, to: Move) -> Solution {
    let last = u8::try_from(solution.n().get()).unwrap() - 1;
    let mut cells: Vec<_> =
        (0..).zip(solution.columns()).map(|(row, &column)| to(last, row, column)).collect();
    cells.sort_unstable();
    Solution::new(&cells.into_iter().map(|(_, column)| column).collect::<Vec<_>>()).expect("still a solution")
}

#[test]
fn images_move_the_cells_as_their_names_say() {
    for solution in every_solution(8) {
        let cases: [(_, Move); 5] = [
            (Image::IDENTITY, |_, r, c| (r, c)),
            (Image::MIRROR, |last, r, c| (r, last - c)),
            (Image::QUARTER_TURN, |last, r, c| (c, last - r)),
            (Image::HALF_TURN, |last, r, c| (last - r, last - c)),
            (Image::THREE_QUARTER_TURN, |last, r, c| (last - c, r)),
        ];
        for (turn, to) in cases {
            assert_eq!(solution.image(turn), moved(&solution, to), "{turn:?} of {solution}");
        }
        let turns = Image::ALL[..4].iter().map(|&turn| solution.image(turn));
        let reflected = Image::ALL[..4].iter().map(|&turn| solution.image(turn).image(Image::MIRROR));
        let both: BTreeSet<_> = turns.chain(reflected).collect();
        assert_eq!(both, BTreeSet::from(Image::ALL.map(|turn| solution.image(turn))), "{solution}");
    }
}

#[test]
fn an_orbit_is_as_large_as_its_symmetry_says_and_has_one_canonical_member() {
    for solution in every_solution(9) {
        let (n, orbit) = (solution.n(), solution.orbit());
        assert_eq!(orbit.len(), usize::from(solution.symmetry().members(n)), "{solution}");
        assert!(orbit.contains(&solution) && orbit[0] == solution.canonical(), "{solution}");
        for member in &orbit {
            assert_eq!(member.orbit(), orbit, "{member} and {solution}");
            assert_eq!(member.symmetry(), solution.symmetry(), "{member} and {solution}");
            assert_eq!(member.is_canonical(), *member == orbit[0], "{member}");
        }
    }
}

#[test]
fn boards_that_are_no_solutions_cannot_be_built() {
    let no: [&[u8]; 7] =
        [&[], &[1], &[0, 1], &[1, 3, 0, 4], &[1, 3, 0, 1], &[0, 2, 4, 1], &[1, 3, 0, 2, 255]];
    for columns in no {
        assert_eq!(Solution::new(columns), None, "{columns:?}");
    }
    assert_eq!(Solution::new(&[0; 300]), None);
    let largest: Vec<_> = ladder::solutions(BoardSize::MAX).next().unwrap().columns().to_vec();
    assert_eq!(Solution::new(&largest).unwrap().columns(), largest);
}

#[test]
fn boards_are_printed_as_documented() {
    let single = Solution::new(&[0]).unwrap();
    assert_eq!((single.to_string().as_str(), single.board().as_str()), ("0", "Q"));
    assert_eq!(single.symmetry().members(single.n()), 1);
    let five = Solution::new(&[0, 2, 4, 1, 3]).unwrap();
    assert_eq!(five.to_string(), "0 2 4 1 3");
    assert_eq!(five.board(), "Q . . . .\n. . Q . .\n. . . . Q\n. Q . . .\n. . . Q .");
    let names = [Symmetry::Identity, Symmetry::HalfTurn, Symmetry::QuarterTurn].map(|s| format!("{s:>12}"));
    assert_eq!(names, ["        none", "   half-turn", "quarter-turn"]);
}
