//! The board that is counted: N by N, or with given queens and blocked cells.

use std::fs::File;
use std::io::Read;

use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;

use crate::exit::misuse;

/// A whole board, or one with given queens and blocked cells.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Board {
    /// Board size, 1 to 31
    #[arg(allow_negative_numbers = true)]
    pub(crate) n: BoardSize,

    /// Only the solutions of a drawing: N lines of N cells, top row first; '.' open, '#' blocked, 'Q' a given queen
    #[arg(long, value_name = "FILE", value_parser = drawing, display_order = 90)]
    pub(crate) cells: Option<Cells>,
}

impl Board {
    /// Ends this process if the drawing is one of another board, or of the whole one.
    pub(crate) fn check(&self) {
        let (Some(cells), n) = (self.cells, self.n) else { return };
        if cells.n() != n {
            misuse(format_args!("--cells: a drawing of the {} by {0} board, not of N = {n}", cells.n()))
                .exit();
        }
        if cells == Cells::open(n) {
            misuse("--cells: all cells are open: this is the whole board").exit();
        }
    }
}

/// A drawing of the largest board, with blanks and line ends, is smaller.
const DRAWING_MAX: u64 = 1 << 16;

fn drawing(path: &str) -> Result<Cells, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(DRAWING_MAX).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    text.parse().map_err(|error: nqueens_kernel::cells::InvalidCells| error.to_string())
}
