//! The options of variants: given queens, blocked cells, the torus. And the command that counts a run's board again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::plan::Plan;
use nqueens_kernel::variant::{Cell, Cells, Variant};

use crate::exit::misuse;
use crate::headings::VARIANTS;

/// A variant of the problem in place of the whole board.
#[derive(Clone, Debug, Args)]
pub(crate) struct VariantOptions {
    /// Only solutions with these queens; cells as in chess, such as a1,c5 (a1 is at the lower left)
    #[arg(long, value_name = "CELLS", value_delimiter = ',', help_heading = VARIANTS)]
    given: Vec<String>,

    /// Only solutions that leave the blocked cells of a drawing empty: N lines of N cells, top row first; '.' open,
    /// '#' blocked, 'Q' a given queen
    #[arg(long, value_name = "FILE", help_heading = VARIANTS)]
    blocked: Option<PathBuf>,

    /// Toroidal (modular) queens: diagonals go on around the sides of the board
    #[arg(long, conflicts_with_all = ["given", "blocked"], help_heading = VARIANTS)]
    torus: bool,
}

/// A drawing of the largest board, with blanks and line ends, is smaller.
const DRAWING_MAX: u64 = 1 << 16;

impl VariantOptions {
    /// The variant that is asked for, if one is.
    pub(crate) fn read(&self, n: BoardSize) -> anyhow::Result<Option<Variant>> {
        if self.torus {
            return Ok(Some(Variant::Torus(n)));
        }
        if self.given.is_empty() && self.blocked.is_none() {
            return Ok(None);
        }
        let drawn = self.blocked.as_deref().map_or_else(|| Ok(Cells::open(n)), |path| drawing(n, path))?;
        let place = |cells: Cells, name: &String| cells.with_queen(Cell::read(n, name)?);
        let cells = self.given.iter().try_fold(drawn, place);
        let cells = cells.unwrap_or_else(|wrong| misuse(wrong).exit());
        if cells.is_open() {
            misuse("no queen is given and no cell is blocked: this is the whole board").exit();
        }
        Ok(Some(Variant::Cells(cells)))
    }
}

fn drawing(n: BoardSize, path: &Path) -> anyhow::Result<Cells> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(DRAWING_MAX).read_to_string(&mut text));
    read.with_context(|| path.display().to_string())?;
    Cells::read(n, &text).with_context(|| path.display().to_string())
}

/// What is counted or listed, in a few words.
pub(crate) fn subject(n: BoardSize, variant: Option<&Variant>) -> String {
    variant.map_or_else(|| format!("N = {n}"), Variant::to_string)
}

/// The command that counts the same again; blocked cells have to be drawn in the file `board`.
pub(crate) fn count_again(plan: &Plan) -> String {
    let n = plan.n();
    match plan.variant() {
        None => format!("nqueens run {n}"),
        Some(Variant::Torus(_)) => format!("nqueens run {n} --torus"),
        Some(Variant::Cells(cells)) if cells.blocked() > 0 => format!("nqueens run {n} --blocked board"),
        Some(Variant::Cells(cells)) => {
            let given: Vec<_> = cells.given().into_iter().map(|cell| cell.name(n)).collect();
            format!("nqueens run {n} --given {}", given.join(","))
        }
    }
}
