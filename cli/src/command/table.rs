//! `nqueens table`: the classic table, counted by any algorithm, or as published.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Args;
use nqueens_evidence::total::outcome;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::{Overflow, Totals};
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::known::{Published, first_counted, published};
use nqueens_kernel::ladder::{LadderCount, Rung};
use nqueens_kernel::plan::fastest;
use nqueens_kernel::sequence::Sequence;
use nqueens_model::operator::{Checked, Outcome};
use serde_json::json;

use crate::choices::one_of;
use crate::counting::{self, BoardCount, distrust};
use crate::exit::misuse;
use crate::memory::default_memory;
use crate::output::{hours, print_line, print_table, stdout, thousands};

/// Prints the classic table: solutions, all and by symmetry, counted here or as published.
///
/// The second line has the numbers under which the OEIS lists the columns. The last column compares each line with the
/// published counts, which end at N = 27; a line that differs is an error. Below stand the solutions that are equal to their half
/// turn, and to their quarter turn.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens table --to 12 --algorithm backtracking")]
pub(crate) struct TableCommand {
    /// First board size
    #[arg(long, value_name = "N", default_value_t = BoardSize::MIN, allow_negative_numbers = true)]
    from: BoardSize,

    /// Last board size [default: the largest that takes seconds; of published counts the last]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    to: Option<BoardSize>,

    /// Algorithm of the ladder [default: the fastest kernel, on one thread]
    #[arg(long, value_name = "NAME", value_parser = one_of::<Rung>(Rung::ALL.map(Rung::name)))]
    algorithm: Option<Rung>,

    /// Count nothing: print the published counts, their sources, and who counted them first
    #[arg(long, conflicts_with = "algorithm")]
    published: bool,

    /// With --published: print JSON; counts are decimal strings because they can exceed 2^53
    #[arg(short, long, requires = "published")]
    json: bool,
}

impl TableCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let last = self.to.unwrap_or_else(|| self.n_usual().max(self.from));
        if self.from > last {
            misuse(format_args!("--from {} is greater than --to {last}", self.from)).exit();
        }
        if self.published { self.print_published(last) } else { self.count(last) }
    }

    /// The last board where none was asked for.
    fn n_usual(&self) -> BoardSize {
        match self.algorithm {
            _ if self.published => BoardSize::new(Published::N_MAX).expect("a board"),
            Some(rung) => BoardSize::new(rung.n_max().get() - 2).expect("no rung ends so low"),
            None => BoardSize::new(16).expect("in 1..=31"),
        }
    }

    fn count(&self, last: BoardSize) -> anyhow::Result<()> {
        if let Some(rung) = self.algorithm.filter(|rung| last > rung.n_max()) {
            eprintln!("nqueens: {rung} takes minutes to hours beyond N = {}", rung.n_max());
        }
        let widths = widths(last)?;
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            padded.collect::<Vec<_>>().join("  ")
        };
        let names = |name: fn(&Column) -> &str| ORBITS.each_ref().map(|column| name(column).to_owned());
        let mut counted = Vec::new();
        let mut out = stdout();
        writeln!(out, " N  {}  hh:mm:ss.ms  published", line(&names(|(title, _)| title)))?;
        writeln!(out, "    {}", line(&names(|(_, sequence)| sequence.name())))?;
        for n in self.from.up_to(last) {
            let count = self.algorithm.map_or_else(|| by_kernel(n), |rung| climb(rung, n))?;
            let Outcome { totals, checked, .. } = count.outcome;
            let published = if checked == Checked::Published { "equal" } else { "-" };
            let (counts, time) = (line(&cells(&ORBITS, n, totals, thousands)?), hours(count.elapsed));
            writeln!(out, "{n:>2}  {counts}  {time:>11}  {published}")?;
            out.flush()?;
            counted.push((n, totals));
        }
        drop(out);
        // On their own, so that the table above fits a terminal.
        print_line("")?;
        print_columns(&SYMMETRIC, &counted, thousands)
    }

    fn print_published(&self, last: BoardSize) -> anyhow::Result<()> {
        let boards: Vec<_> = self.from.up_to(last).filter_map(|n| Some((n, published(n)?.orbits))).collect();
        let end = format!("the published counts end at N = {}", Published::N_MAX);
        if boards.is_empty() {
            misuse(format_args!("{end}; 'nqueens estimate {}' estimates", self.from)).exit();
        }
        if last.get() > Published::N_MAX {
            eprintln!("nqueens: {end}");
        }
        if self.json {
            let board = |(n, orbits): &(BoardSize, Totals)| {
                let mut board = json!({ "n": n.get(), "first_counted": first_counted(*n) });
                for sequence in Sequence::ALL {
                    board[sequence.name()] = sequence.term(*n, *orbits)?.to_string().into();
                }
                anyhow::Ok(board)
            };
            let sequence = |it: &Sequence| json!({ "oeis": it.name(), "counts": it.describe() });
            let sequences: Vec<_> = Sequence::ALL.iter().map(sequence).collect();
            let boards = boards.iter().map(board).collect::<anyhow::Result<Vec<_>>>()?;
            return Ok(print_line(json!({ "boards": boards, "sequences": sequences }))?);
        }
        print_columns(&ORBITS, &boards, |count| count.to_string())?;
        print_line("")?;
        print_columns(&SYMMETRIC, &boards, |count| count.to_string())?;
        print_line("\nSources: https://oeis.org/A000170 and the other numbers")?;
        for sequence in Sequence::ALL {
            print_line(format_args!("{sequence}  {}", sequence.describe()))?;
        }
        print_line("N = 1: A260318 has 1 here; this program's three counts leave out the only queen")?;
        print_line("\nFirst counted by")?;
        for (n, who) in boards.iter().filter_map(|(n, _)| Some((n, first_counted(*n)?))) {
            print_line(format_args!("N = {n}: {who}"))?;
        }
        Ok(())
    }
}

/// Counts a board by the fastest kernel, on one thread.
fn by_kernel(n: BoardSize) -> anyhow::Result<BoardCount> {
    let kernel = Kernel::best();
    counting::count(n, fastest(n, Some(kernel)), &[kernel.name().to_owned()], default_memory())
}

fn climb(rung: Rung, n: BoardSize) -> anyhow::Result<BoardCount> {
    let begun = Instant::now();
    let LadderCount { total, orbits, states } = rung.count(n);
    let elapsed = begun.elapsed();
    let outcome = outcome(n, orbits, None).with_context(|| distrust(n))?;
    ensure!(
        outcome.total == total,
        "{}: its orbits are of {} boards, not of {total}",
        distrust(n),
        outcome.total
    );
    Ok(BoardCount { outcome, states: states.into(), elapsed })
}

/// A title, and the sequence of the OEIS.
type Column = (&'static str, Sequence);

/// The three counts leave out the only queen of N = 1, which the OEIS has in A260318.
const ORBITS: [Column; 5] = [
    ("TOTAL", Sequence::Solutions),
    ("UNIQUE", Sequence::Unique),
    ("COUNT2", Sequence::Count2),
    ("COUNT4", Sequence::Count4),
    ("COUNT8", Sequence::Count8),
];

/// Solutions equal to their half turn, and of these those equal to their quarter turn.
const SYMMETRIC: [Column; 2] = [("HALF TURN", Sequence::HalfTurn), ("QUARTER TURN", Sequence::QuarterTurn)];

/// A board's row, but for N.
fn cells(
    columns: &[Column],
    n: BoardSize,
    orbits: Totals,
    written: fn(u128) -> String,
) -> Result<Vec<String>, Overflow> {
    let count = |(_, sequence): &Column| match sequence {
        Sequence::Count2 => Ok(orbits.count2),
        other => other.term(n, orbits),
    };
    columns.iter().map(|column| count(column).map(written)).collect()
}

fn print_columns(
    columns: &[Column],
    boards: &[(BoardSize, Totals)],
    written: fn(u128) -> String,
) -> anyhow::Result<()> {
    let heads = columns.iter().map(|(title, sequence)| format!(">{title}\n{sequence}"));
    let heads: Vec<_> = std::iter::once(">N".to_owned()).chain(heads).collect();
    let row = |(n, orbits): &(BoardSize, Totals)| {
        Ok([vec![n.to_string()], cells(columns, *n, *orbits, written)?].concat())
    };
    let rows = boards.iter().map(row).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(print_table(&heads.iter().map(String::as_str).collect::<Vec<_>>(), rows.into_iter())?)
}

/// What the columns need up to a board: its rows come one by one.
fn widths(last: BoardSize) -> Result<[usize; ORBITS.len()], Overflow> {
    let mut widths = ORBITS.map(|(title, sequence)| title.len().max(sequence.name().len()));
    for (n, known) in BoardSize::MIN.up_to(last).filter_map(|n| Some((n, published(n)?))) {
        let cells = cells(&ORBITS, n, known.orbits, thousands)?;
        widths.iter_mut().zip(cells).for_each(|(width, cell)| *width = (*width).max(cell.len()));
    }
    Ok(widths)
}
