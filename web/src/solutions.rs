//! The unique solutions of a small board, one at a time, each with its images.

use std::sync::OnceLock;

use axum::Json;
use axum::extract::Query;
use axum::http::StatusCode;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::ladder::unique_solutions;
use nqueens_kernel::solution::{Image, Solution, Symmetry};
use serde::Deserialize;
use serde_json::{Value, json};

/// The boards that are shown: those that have solutions and are found at once.
const SIZES: std::ops::RangeInclusive<u32> = 4..=12;

/// Each is filled when it is first asked for; all together have 2,500 solutions.
static SOLUTIONS: [OnceLock<Vec<(Solution, Symmetry)>>; 9] = [const { OnceLock::new() }; 9];

/// All unique solutions of one of these boards.
fn find(n: u32) -> &'static [(Solution, Symmetry)] {
    let board = BoardSize::new(n).expect("a small board");
    SOLUTIONS[(n - SIZES.start()) as usize].get_or_init(|| unique_solutions(board).collect())
}

/// What makes each of [`Image::ALL`] of a board.
const TURNS: [&str; 8] = [
    "as it is",
    "quarter turn",
    "half turn",
    "three-quarter turn",
    "left and right exchanged",
    "top and bottom exchanged",
    "mirrored at the diagonal",
    "mirrored at the other diagonal",
];

#[derive(Deserialize)]
pub(crate) struct SolutionQuery {
    n: u32,
    /// From 1.
    number: usize,
}

type SolutionResult = Result<Json<Value>, (StatusCode, String)>;

pub(crate) async fn solution(Query(SolutionQuery { n, number }): Query<SolutionQuery>) -> SolutionResult {
    let refuse = |why: String| (StatusCode::NOT_FOUND, why);
    if !SIZES.contains(&n) {
        return Err(refuse(format!("boards of {} to {} are shown", SIZES.start(), SIZES.end())));
    }
    let found = tokio::task::spawn_blocking(move || find(n))
        .await
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let wanted = number.checked_sub(1).and_then(|index| found.get(index));
    let (solution, symmetry) =
        wanted.ok_or_else(|| refuse(format!("N = {n} has {} unique solutions", found.len())))?;
    Ok(Json(json!({
        "n": n,
        "number": number,
        "of": found.len(),
        "symmetry": symmetry.name(),
        "images": images(solution),
    })))
}

/// The distinct images, the board itself first, each with all that makes it.
fn images(solution: &Solution) -> Vec<Value> {
    let mut distinct: Vec<(Solution, Vec<&str>)> = Vec::new();
    for (turn, name) in Image::ALL.into_iter().zip(TURNS) {
        let image = solution.image(turn);
        match distinct.iter_mut().find(|(known, _)| *known == image) {
            Some((_, names)) => names.push(name),
            None => distinct.push((image, vec![name])),
        }
    }
    distinct.iter().map(|(image, names)| json!({ "columns": image.columns(), "turns": names })).collect()
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::known::published;

    use super::*;

    #[tokio::test]
    async fn solutions_come_one_by_one_with_their_images() {
        let ask = |n, number| solution(Query(SolutionQuery { n, number }));
        let Json(first) = ask(8, 1).await.expect("there is one");
        assert_eq!(
            (&first["of"], &first["images"][0]["columns"]),
            (&12.into(), &json!([0, 4, 7, 5, 2, 6, 1, 3]))
        );
        assert_eq!(first["images"].as_array().expect("a list").len(), 8);
        let Json(only) = ask(4, 1).await.expect("there is one");
        assert_eq!((&only["of"], &only["symmetry"]), (&1.into(), &"quarter-turn".into()));
        let turns = |image: usize| only["images"][image]["turns"].as_array().expect("a list").len();
        assert_eq!((turns(0), turns(1)), (4, 4), "two images, each made in four ways");
        for (n, number) in [(3, 1), (13, 1), (8, 0), (8, 13)] {
            assert_eq!(ask(n, number).await.expect_err("there is none").0, StatusCode::NOT_FOUND);
        }
        for n in SIZES {
            let published = published(BoardSize::new(n).expect("a board")).expect("known");
            assert_eq!(find(n).len() as u128, published.unique, "N = {n}");
        }
    }
}
