//! The option for given queens and blocked cells.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;

/// A board with given queens and blocked cells in place of the whole one.
#[derive(Clone, Debug, Args)]
pub(crate) struct Drawing {
    /// Only the solutions of a drawing: N lines of N cells, top row first; '.' open, '#' blocked, 'Q' a given queen
    #[arg(long, value_name = "FILE")]
    cells: Option<PathBuf>,
}

/// A drawing of the largest board, with blanks and line ends, is smaller.
const DRAWING_MAX: u64 = 1 << 16;

impl Drawing {
    /// The board that is drawn, if one is.
    pub(crate) fn read(&self, n: BoardSize) -> anyhow::Result<Option<Cells>> {
        let Some(path) = &self.cells else { return Ok(None) };
        let (mut text, name) = (String::new(), || path.display().to_string());
        let read = File::open(path).and_then(|file| file.take(DRAWING_MAX).read_to_string(&mut text));
        read.with_context(name)?;
        let cells: Cells = text.parse().with_context(name)?;
        ensure!(cells.n() == n, "{}: a drawing of the {} by {1} board, not of N = {n}", name(), cells.n());
        ensure!(cells != Cells::open(n), "{}: all cells are open: this is the whole board", name());
        Ok(Some(cells))
    }
}
