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
///
/// They end at N = 27.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens known 27")]
pub(crate) struct KnownCommand {
    /// Board size, 1 to 31 [default: all]
    #[arg(allow_negative_numbers = true)]
    n: Option<BoardSize>,

    #[command(flatten)]
    json: Json,
}

impl KnownCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (from, to) = self.n.map_or((BoardSize::MIN, BoardSize::MAX), |n| (n, n));
        let json = json!({
            "boards": from.up_to(to).map(board).collect::<anyhow::Result<Vec<_>>>()?,
            "sequences": Sequence::ALL.map(|it| json!({ "oeis": it.name(), "counts": it.describe() })),
        });
        let text = if self.n.is_some() { one(from)? } else { all()? };
        self.json.print(json, text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// All terms of one board, with their sequences and what these count.
fn terms(n: BoardSize) -> anyhow::Result<Vec<(&'static str, u128, &'static str)>> {
    let mut terms = Vec::new();
    if let Some(known) = published(n) {
        for sequence in Sequence::ALL {
            terms.push((sequence.name(), sequence.term(n, known.orbits)?, sequence.describe()));
        }
    }
    Ok(terms)
}

/// Has every sequence, with `null` where it has no term or none is published.
fn board(n: BoardSize) -> anyhow::Result<Value> {
    let known = terms(n)?;
    let term =
        |name| known.iter().find(|(sequence, ..)| *sequence == name).map(|(_, term, _)| term.to_string());
    let terms = Sequence::ALL.map(Sequence::name).map(|name| (name, json!(term(name))));
    let head = [("n", json!(n.get())), ("first_counted", json!(first_counted(n)))];
    Ok(head.into_iter().chain(terms).map(|(name, value)| (name.to_owned(), value)).collect())
}

fn one(n: BoardSize) -> anyhow::Result<String> {
    let terms = terms(n)?.into_iter().map(|(sequence, term, counts)| (sequence, thousands(term), counts));
    let terms: Vec<_> = terms.collect();
    let width = terms.iter().map(|(_, term, _)| term.len()).max().unwrap_or(0);
    let mut text = format!("N = {n}\n");
    for (sequence, term, counts) in terms {
        writeln!(text, "{sequence}  {term:>width$}  {counts}")?;
    }
    if published(n).is_none() {
        let last = last_published();
        writeln!(text, "nothing is published: the counts end at {last}; 'nqueens estimate {n}' estimates")?;
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

fn all() -> anyhow::Result<String> {
    let last = last_published();
    let columns = CountColumns::of_orbits(last, |count| count.to_string());
    let mut text = format!(" N  {}\n    {}\n", columns.titles(), columns.sequences());
    for n in BoardSize::MIN.up_to(last) {
        let orbits = published(n).context("one of the published")?.orbits;
        writeln!(text, "{n:>2}  {}", columns.row(n, orbits)?)?;
    }
    let symmetric = CountColumns::of_symmetric(last, |count| count.to_string());
    writeln!(text, "\n N  {}\n    {}", symmetric.titles(), symmetric.sequences())?;
    for n in BoardSize::MIN.up_to(last) {
        let orbits = published(n).context("one of the published")?.orbits;
        writeln!(text, "{n:>2}  {}", symmetric.row(n, orbits)?)?;
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
