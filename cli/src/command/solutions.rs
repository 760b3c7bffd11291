//! `nqueens solutions`: prints the boards.

use std::io::Write;

use clap::{Args, ValueEnum};
use nqueens_kernel::cells::subject;
use nqueens_kernel::ladder;
use nqueens_kernel::solution::{Solution, Symmetry};
use serde_json::json;

use crate::board::Board;
use crate::output::stdout;

/// Prints the solutions of a board in lexicographic order, as they are found.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens solutions 8 --unique --limit 3")]
pub(crate) struct SolutionsCommand {
    #[command(flatten)]
    board: Board,

    /// Print one solution per orbit under rotation and reflection, with its symmetry
    #[arg(long, conflicts_with = "cells")]
    unique: bool,

    /// Stop after this many solutions
    #[arg(long, value_name = "K")]
    limit: Option<usize>,

    /// Output format
    #[arg(long, default_value = "boards")]
    format: SolutionFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SolutionFormat {
    /// Drawings, top row first
    Boards,
    /// One line each: the column of each row's queen, top row first, columns from 0
    Rows,
    /// One JSON object per line
    Json,
}

impl SolutionsCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        self.board.check();
        let Board { n, cells } = self.board;
        let solutions: Box<dyn Iterator<Item = (Solution, Option<Symmetry>)>> = match &cells {
            Some(cells) => Box::new(cells.solutions().map(|solution| (solution, None))),
            None if self.unique => {
                Box::new(ladder::unique_solutions(n).map(|(solution, symmetry)| (solution, Some(symmetry))))
            }
            None => Box::new(ladder::solutions(n).map(|solution| (solution, None))),
        };
        let mut out = stdout();
        let mut printed = 0_u64;
        for (solution, symmetry) in solutions.take(self.limit.unwrap_or(usize::MAX)) {
            printed += 1;
            // Whole lines, which are passed on at once: the next solution of a large board may be long in coming.
            out.write_all(self.format.print(printed, &solution, symmetry).as_bytes())?;
        }
        if printed == 0 && self.limit != Some(0) {
            let what = subject(n, cells.as_ref());
            eprintln!("nqueens: there is no solution for {what}");
        }
        Ok(())
    }
}

impl SolutionFormat {
    /// One solution, the `number`th, with the line end after it.
    fn print(self, number: u64, solution: &Solution, symmetry: Option<Symmetry>) -> String {
        let orbit = symmetry.map(|symmetry| (symmetry, symmetry.members(solution.n())));
        let queens = solution.columns();
        match (self, orbit) {
            (Self::Boards, None) => format!("{number}:\n{}\n\n", solution.board()),
            (Self::Boards, Some((symmetry, members))) => {
                format!("{number}: symmetry {symmetry}, orbit of {members}\n{}\n\n", solution.board())
            }
            (Self::Rows, None) => format!("{solution}\n"),
            (Self::Rows, Some((symmetry, _))) => format!("{solution}  {symmetry}\n"),
            (Self::Json, None) => format!("{}\n", json!({ "queens": queens })),
            (Self::Json, Some((symmetry, members))) => {
                format!("{}\n", json!({ "queens": queens, "symmetry": symmetry.name(), "orbit": members }))
            }
        }
    }
}
