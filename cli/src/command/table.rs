//! `nqueens table`: the classic table, counted by any algorithm and compared with the published counts.

use std::io::Write;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use clap::Args;
use clap::builder::{ValueParser, ValueParserFactory};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::UnknownKernel;
use nqueens_kernel::ladder::{Form, LadderCount, Rung};

use crate::command::choices::{AUTO, KernelChoice, PlanChoice, one_of};
use crate::command::count_columns::CountColumns;
use crate::command::counting::{self, BoardCount};
use crate::exit::misuse;
use crate::memory::default_memory;
use crate::output::{hours, stdout, thousands};

/// Counts boards and prints the classic table: solutions, all and by symmetry, and time.
///
/// The second line has the numbers under which the OEIS lists the columns. The last column compares each line with the
/// published counts, which end at N = 27 ('nqueens known'); a line that differs is an error. Below stand the solutions that are
/// equal to their half turn, and to their quarter turn.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens table --to 12 --algorithm backtracking --iterative")]
pub(crate) struct TableCommand {
    /// First board size
    #[arg(long, value_name = "N", default_value_t = BoardSize::MIN, allow_negative_numbers = true)]
    from: BoardSize,

    /// Last board size [default: the largest that takes seconds]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    to: Option<BoardSize>,

    /// Algorithm of the ladder, or a kernel on one thread; auto selects the fastest kernel
    #[arg(long, value_name = "NAME", default_value = AUTO)]
    algorithm: Algorithm,

    /// Use the iterative form of a ladder algorithm instead of the recursive one
    #[arg(long)]
    iterative: bool,
}

impl TableCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let last = self.to.unwrap_or_else(|| self.algorithm.n_quick().max(self.from));
        if self.from > last {
            misuse(format_args!("--from {} is greater than --to {last}", self.from)).exit();
        }
        let count = self.way_to_count(last)?;
        let columns = CountColumns::of_orbits(last, thousands);
        let symmetric = CountColumns::of_symmetric(last, thousands);
        let mut symmetric_rows = Vec::new();
        let mut out = stdout();
        writeln!(out, " N  {}  hh:mm:ss.ms  published", columns.titles())?;
        writeln!(out, "    {}", columns.sequences())?;
        for n in self.from.up_to(last) {
            let count = count(n)?;
            let published = if count.check(n)? { "equal" } else { "-" };
            let (counts, time) = (columns.row(n, count.orbits)?, hours(count.elapsed));
            writeln!(out, "{n:>2}  {counts}  {time:>11}  {published}")?;
            out.flush()?;
            symmetric_rows.push(format!("{n:>2}  {}", symmetric.row(n, count.orbits)?));
        }
        // On their own, so that the table above fits a terminal.
        writeln!(out, "\n N  {}\n    {}", symmetric.titles(), symmetric.sequences())?;
        for row in symmetric_rows {
            writeln!(out, "{row}")?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn way_to_count(
        &self,
        last: BoardSize,
    ) -> anyhow::Result<Box<dyn Fn(BoardSize) -> anyhow::Result<BoardCount>>> {
        match self.algorithm {
            Algorithm::Kernel(_) if self.iterative => {
                let rungs = Rung::ALL.map(Rung::name).join(", ");
                misuse(format_args!("--iterative requires one of --algorithm {rungs}")).exit();
            }
            Algorithm::Kernel(choice) => {
                let kernel = choice.resolve()?;
                let memory_max = default_memory();
                Ok(Box::new(move |n| {
                    let plan = PlanChoice::Auto.resolve(n, Some(kernel));
                    counting::count(n, plan, kernel, NonZeroUsize::MIN, memory_max)
                }))
            }
            Algorithm::Rung(rung) => {
                if last > rung.n_max() {
                    eprintln!("nqueens: {rung} takes minutes to hours beyond N = {}", rung.n_max());
                }
                let form = if self.iterative { Form::Iterative } else { Form::Recursive };
                Ok(Box::new(move |n| Ok(climb(rung, form, n))))
            }
        }
    }
}

fn climb(rung: Rung, form: Form, n: BoardSize) -> BoardCount {
    let begun = Instant::now();
    let LadderCount { total, orbits, states } = rung.count(form, n);
    BoardCount { total, orbits, states: states.into(), elapsed: begun.elapsed() }
}

/// A way to count a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Rung(Rung),
    Kernel(KernelChoice),
}

impl Algorithm {
    /// The largest board that takes a few seconds.
    fn n_quick(self) -> BoardSize {
        match self {
            Self::Rung(rung) => BoardSize::new(rung.n_max().get() - 2).expect("no rung ends so low"),
            Self::Kernel(_) => BoardSize::new(16).expect("in 1..=31"),
        }
    }
}

impl ValueParserFactory for Algorithm {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        one_of::<Self>(Rung::ALL.map(Rung::name).into_iter().chain(KernelChoice::names()))
    }
}

impl FromStr for Algorithm {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::Rung).or_else(|_| text.parse().map(Self::Kernel))
    }
}
