//! `nqueens known`: the published counts and where they are published.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::{first_counted, published};
use nqueens_kernel::sequence::Sequence;
use serde_json::{Value, json};

use crate::command::count_columns::CountColumns;
use crate::output::{Json, thousands};

/// Why the first term of a sequence is none of this program's counts.
const ONLY_QUEEN: &str = "A260318 has 1 here; this program's three counts leave out the only queen";

/// The last board whose solutions are published.
fn last_published() -> BoardSize {
    let all = BoardSize::MIN.up_to(BoardSize::MAX).take_while(|&n| published(n).is_some());
    all.last().expect("some boards are published")
}

/// Prints the published counts and their sources; counts nothing.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens known 27")]
pub(crate) struct KnownCommand {
    /// Board size, 1 to 27 [default: all]
    #[arg(allow_negative_numbers = true)]
    n: Option<BoardSize>,

    #[command(flatten)]
    json: Json,
}

impl KnownCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let last = last_published();
        let (from, to) = self.n.map_or((BoardSize::MIN, last), |n| (n, n));
        published(to).with_context(|| {
            format!("nothing is published for N = {to}: the counts end at {last}; 'nqueens estimate {to}' estimates")
        })?;
        let json = json!({
            "boards": from.up_to(to).map(board).collect::<anyhow::Result<Vec<_>>>()?,
            "sequences": Sequence::ALL.map(|it| json!({ "oeis": it.name(), "counts": it.describe() })),
        });
        let text = if self.n.is_some() { one(from)? } else { all(last)? };
        self.json.print(json, text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn terms(n: BoardSize) -> anyhow::Result<Vec<(Sequence, u128)>> {
    let orbits = published(n).context("checked before")?.orbits;
    let term = |sequence: Sequence| Ok((sequence, sequence.term(n, orbits)?));
    Sequence::ALL.into_iter().map(term).collect()
}

fn board(n: BoardSize) -> anyhow::Result<Value> {
    let terms = terms(n)?.into_iter().map(|(sequence, term)| (sequence.name(), json!(term.to_string())));
    let head = [("n", json!(n.get())), ("first_counted", json!(first_counted(n)))];
    Ok(head.into_iter().chain(terms).map(|(name, value)| (name.to_owned(), value)).collect())
}

fn one(n: BoardSize) -> anyhow::Result<String> {
    let terms: Vec<_> = terms(n)?.into_iter().map(|(sequence, term)| (sequence, thousands(term))).collect();
    let width = terms.iter().map(|(_, term)| term.len()).max().unwrap_or(0);
    let mut text = format!("N = {n}\n");
    for (sequence, term) in terms {
        writeln!(text, "{sequence}  {term:>width$}  {}", sequence.describe())?;
    }
    if n == BoardSize::MIN {
        writeln!(text, "{ONLY_QUEEN}")?;
    }
    if let Some(who) = first_counted(n) {
        writeln!(text, "first counted by {who}")?;
    }
    write!(text, "source: https://oeis.org/ and the number")?;
    Ok(text)
}

fn all(last: BoardSize) -> anyhow::Result<String> {
    let columns = CountColumns::up_to(last, |count| count.to_string());
    let mut text = format!(" N  {}\n    {}\n", columns.titles(), columns.sequences());
    for n in BoardSize::MIN.up_to(last) {
        let orbits = published(n).context("one of the published")?.orbits;
        writeln!(text, "{n:>2}  {}", columns.row(n, orbits)?)?;
    }
    writeln!(text, "\nSources: https://oeis.org/A000170 and the other numbers")?;
    for sequence in Sequence::ALL {
        writeln!(text, "{sequence}  {}", sequence.describe())?;
    }
    writeln!(text, "N = 1: {ONLY_QUEEN}")?;
    writeln!(text, "\nFirst counted by")?;
    let named = BoardSize::MIN.up_to(last).filter_map(|n| Some((n, first_counted(n)?)));
    for (n, who) in named {
        writeln!(text, "N = {n}: {who}")?;
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}
