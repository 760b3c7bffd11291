//! `nqueens export`: a run's results as tables, or as a ledger that others can check.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use nqueens_coordinator::{LedgerRow, Reader, RunRow};
use nqueens_evidence::line::LedgerResult;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::sequence::Sequence;

use crate::choices::one_of;
use crate::exit::misuse;
use crate::ledger_file;
use crate::ledger_source::LedgerSource;
use crate::output::{OutputFile, thousands};
use crate::runtime::block_on;

/// Prints the results of a run, by job, class or BOUND1.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens export --db nqueens-16.db --by bound1 > bounds.csv")]
pub(crate) struct ExportCommand {
    #[command(flatten)]
    source: LedgerSource,

    /// What each row stands for
    #[arg(long, value_enum, default_value_t = By::Job)]
    by: By,

    /// Output format
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    format: ExportFormat,

    /// With --format bfile: the OEIS's number of the sequence [default: A000170]
    #[arg(long, value_name = "A_NUMBER", value_parser = one_of::<Sequence>(Sequence::ALL.iter().map(|it| it.name())))]
    sequence: Option<Sequence>,

    #[command(flatten)]
    output: OutputFile,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// One job with its accepted result; `elapsed_us` is its thread time, `cpu_us` its processor time (empty where it was not
    /// measured), both in microseconds
    Job,
    /// Sum over a symmetry class
    Class,
    /// Sum over a class and BOUND1: the column of the first row's queen, or of the second row's in class corner. Columns
    /// are numbered from 0. Plans rows and border only
    Bound1,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    /// Comma-separated values with a header line
    Csv,
    /// The whole run in one file that everyone can check with 'nqueens verify'
    Ledger,
    /// One line 'INDEX TERM' for each board, as the OEIS has it; without RUN, of all runs that are done
    Bfile,
}

/// Of a stream, the error itself: in a `csv::Error` nobody sees that its reader has gone.
fn stream_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

impl ExportCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        block_on(self.export())
    }

    async fn export(&self) -> anyhow::Result<()> {
        if self.sequence.is_some() && !matches!(self.format, ExportFormat::Bfile) {
            misuse("--sequence chooses what a b-file lists: give --format bfile").exit();
        }
        match (self.format, self.by) {
            (ExportFormat::Ledger | ExportFormat::Bfile, By::Class | By::Bound1) => {
                misuse("a ledger has a line per job and a b-file one per board; omit --by").exit();
            }
            (ExportFormat::Ledger, By::Job) => {
                self.source.read(async |reader, run| self.ledger(reader, &run).await).await
            }
            (ExportFormat::Bfile, By::Job) => self.terms(self.sequence.unwrap_or(Sequence::Solutions)).await,
            (ExportFormat::Csv, _) => {
                self.source.read(async |reader, run| self.table(reader, &run).await).await
            }
        }
    }

    async fn table(&self, reader: &Reader, run: &RunRow) -> anyhow::Result<()> {
        let (is_by_bound1, plan) = (matches!(self.by, By::Bound1), run.plan.kind());
        // Plans rows and border find orbits alone.
        let has_solutions = !matches!(plan, PlanKind::Rows | PlanKind::Border);
        ensure!(
            !(is_by_bound1 && has_solutions),
            "a job of plan {plan} counts boards with the first row's queen in several columns, all in one sum: there are no \
             subtotals by BOUND1; use --by job or --by class, or count a whole board with --plan rows or --plan border"
        );
        let mut file = self.output.open()?;
        let mut out = csv::Writer::from_writer(&mut file);
        let sum_row = |class: &str, n: String, bound1: String, counts: [String; 4]| {
            let bound1 = is_by_bound1.then_some(bound1);
            let counts = counts.into_iter().take(3 + usize::from(has_solutions));
            [class.to_owned(), n].into_iter().chain(bound1).chain(counts).collect()
        };
        let mut head = Some(match self.by {
            By::Job => JOB_COLUMNS.map(|(name, _)| name.to_owned()).to_vec(),
            By::Class | By::Bound1 => {
                sum_row("class", "n".into(), "bound1".into(), COUNTS.map(str::to_owned))
            }
        });
        // The line of names comes before the first row: of what can't be read there is no table.
        let mut write = |cells| {
            let mut rows = head.take().into_iter().chain(cells);
            rows.try_for_each(|row: Vec<String>| out.write_record(row)).map_err(stream_error)
        };
        let mut sums = BTreeMap::<(Class, u8), Totals>::new();
        let (mut jobs, mut open) = (0, 0);
        let workers = reader.workers().await?.into_iter();
        let workers: HashMap<_, _> = workers.map(|worker| (worker.id.get(), worker.name)).collect();
        while let Some(rows) = reader.ledger(run.id, &mut jobs).await? {
            for row in rows {
                let key = (row.job.class, if is_by_bound1 { row.job.bound1 } else { 0 });
                let sum = sums.entry(key).or_default();
                match &row.accepted {
                    Some(accepted) => *sum = sum.checked_add(accepted.counts)?,
                    None => open += 1,
                }
                if matches!(self.by, By::Job) {
                    let damaged =
                        || format!("job {} in the database is damaged; restore it from a backup", row.number);
                    let job = row.job.decode().with_context(damaged)?;
                    let row = JobRow { row, job, workers: &workers };
                    write(Some(JOB_COLUMNS.map(|(_, cell)| cell(&row)).to_vec()))?;
                }
            }
        }
        let sums = sums.into_iter().filter(|_| !matches!(self.by, By::Job));
        for ((class, bound1), Totals { count2, count4, count8, solutions }) in sums {
            let counts = [count2, count4, count8, solutions].map(|count| count.to_string());
            write(Some(sum_row(class.name(), run.plan.n().to_string(), bound1.to_string(), counts)))?;
        }
        write(None)?;
        out.flush()?;
        drop(out);
        file.finish()?;
        if open > 0 {
            let (open, jobs) = (thousands(open), thousands(jobs));
            eprintln!("nqueens: the run is not done: {open} of {jobs} jobs have no result and count as 0");
        }
        Ok(())
    }

    /// Writes the run's ledger, and its last hash to stderr.
    async fn ledger(&self, reader: &Reader, run: &RunRow) -> anyhow::Result<()> {
        ledger_file::outcome(run)?;
        let mut file = self.output.open()?;
        let (lines, hash) = ledger_file::write(reader, run, &mut file).await?;
        file.finish()?;
        let lines = thousands(lines);
        eprintln!(
            "nqueens: {lines} lines; publish the last hash, so that every later change is detected: {hash}"
        );
        Ok(())
    }

    /// Writes totals as the OEIS wants a sequence's terms: one line `INDEX TERM` for each board that the runs have counted, in
    /// order.
    async fn terms(&self, sequence: Sequence) -> anyhow::Result<()> {
        let runs = self.source.runs().await?;
        let mut terms = BTreeMap::new();
        for run in runs.iter().filter(|run| run.progress.plan.cells().is_none()) {
            let (Some(outcome), n) = (&run.outcome, run.progress.plan.n()) else { continue };
            let term = sequence.term(n, outcome.totals)?;
            let (earlier, confirmed) = terms.entry(n).or_insert((term, false));
            ensure!(
                *earlier == term,
                "two runs of N = {n} differ: {earlier} and {term}; name the one to export"
            );
            *confirmed |= run.standing().is_some_and(|standing| standing.is_confirmed());
        }
        let open = runs.iter().filter(|run| run.outcome.is_none()).count();
        ensure!(
            !terms.is_empty(),
            "no run here has a total that is a term of {sequence}; 'nqueens status' lists the runs"
        );
        let mut out = self.output.open()?;
        writeln!(out, "# {sequence} ({})", sequence.describe())?;
        for (index, (term, confirmed)) in terms {
            if !confirmed {
                writeln!(out, "# counted, not confirmed:")?;
            }
            writeln!(out, "{index} {term}")?;
        }
        out.finish()?;
        if open > 0 {
            eprintln!("nqueens: {open} of {} runs have no total and are left out", runs.len());
        }
        Ok(())
    }
}

struct JobRow<'a> {
    row: LedgerRow,
    job: Job,
    workers: &'a HashMap<u64, String>,
}

impl JobRow<'_> {
    /// What there is to tell of its accepted result; nothing without one.
    fn of_result<'a, T: ToString>(&'a self, what: impl FnOnce(&'a LedgerResult) -> Option<T>) -> String {
        text(self.row.accepted.as_ref().and_then(what))
    }
}

fn text(known: Option<impl ToString>) -> String {
    known.map_or_else(String::new, |it| it.to_string())
}

type JobColumn = (&'static str, fn(&JobRow) -> String);

const COUNTS: [&str; 4] = ["count2", "count4", "count8", "solutions"];

const JOB_COLUMNS: [JobColumn; 17] = [
    ("job", |it| it.row.number.to_string()),
    ("class", |it| it.job.class().name().to_owned()),
    ("n", |it| it.job.n().to_string()),
    ("bound1", |it| it.job.bound1().to_string()),
    ("bound2", |it| text(it.job.bound2())),
    ("prefixes", |it| prefixes(&it.job)),
    ("state", |it| it.row.state.name().to_owned()),
    ("count2", |it| it.of_result(|result| Some(result.counts.count2))),
    ("count4", |it| it.of_result(|result| Some(result.counts.count4))),
    ("count8", |it| it.of_result(|result| Some(result.counts.count8))),
    ("solutions", |it| it.of_result(|result| Some(result.counts.solutions))),
    ("kernel", |it| it.of_result(|result| Some(&result.kernel))),
    ("worker_id", |it| it.of_result(|result| Some(result.worker))),
    ("worker_name", |it| it.of_result(|result| it.workers.get(&result.worker))),
    ("states", |it| it.of_result(|result| Some(result.states))),
    ("elapsed_us", |it| it.of_result(|result| Some(result.elapsed_us))),
    ("cpu_us", |it| it.of_result(|result| result.cpu_us)),
];

/// Columns joined by '-', prefixes by a space: `0-2-4 0-2-5`; of colours the first row set and the last: `0..255`.
fn prefixes(job: &Job) -> String {
    if let Some(orbits) = job.row_sets() {
        return format!("{}..{}", orbits.start, orbits.end - 1);
    }
    let columns = |prefix: &[u8]| prefix.iter().map(u8::to_string).collect::<Vec<_>>().join("-");
    job.prefixes().map(columns).collect::<Vec<_>>().join(" ")
}
