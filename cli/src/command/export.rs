//! `nqueens export`: a run's results as tables, or as a ledger that others can check.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use nqueens_coordinator::{LedgerRow, Reader, RunRow};
use nqueens_evidence::line::LedgerResult;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::sequence::Sequence;
use serde_json::{Value, json};

use crate::choices::one_of;
use crate::exit::misuse;
use crate::ledger_source::LedgerSource;
use crate::output::{OutputFile, thousands};
use crate::runtime::block_on;
use crate::{bfile, ledger_file};

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

    /// With --format bfile: the OEIS's number of the sequence
    #[arg(long, value_name = "A_NUMBER", value_parser = one_of::<Sequence>(Sequence::ALL.map(Sequence::name)), default_value_t = Sequence::Solutions)]
    sequence: Sequence,

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
    /// One JSON array of objects; counts are decimal strings
    Json,
    /// The whole run in one file that everyone can check with 'nqueens verify'
    Ledger,
    /// One line 'INDEX TERM' for each board (the index is N, but of A007705), as the OEIS has it; without RUN, of all runs that are done
    Bfile,
}

impl ExportCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(self.export())?;
        Ok(ExitCode::SUCCESS)
    }

    async fn export(&self) -> anyhow::Result<()> {
        match (self.format, self.by) {
            (ExportFormat::Ledger | ExportFormat::Bfile, By::Class | By::Bound1) => {
                misuse("a ledger has a line per job and a b-file one per board; omit --by").exit();
            }
            (ExportFormat::Ledger, By::Job) => {
                self.source.read(async |reader, run| self.ledger(reader, &run).await).await
            }
            (ExportFormat::Bfile, By::Job) => {
                bfile::write(self.sequence, &self.source, || self.output.open()).await
            }
            (ExportFormat::Csv | ExportFormat::Json, _) => {
                self.source.read(async |reader, run| self.table(reader, &run).await).await
            }
        }
    }

    async fn table(&self, reader: &Reader, run: &RunRow) -> anyhow::Result<()> {
        if matches!(self.by, By::Bound1)
            && let Some(why) = no_bounds(run)
        {
            bail!("{why}");
        }
        let mut out = RowWriter::new(self.format, self.columns(run.plan.kind()), self.output.open()?);
        let mut sums = BTreeMap::<(Class, u8), Totals>::new();
        let (mut jobs, mut open) = (0, 0);
        let workers = reader.workers().await?.into_iter();
        let workers: HashMap<_, _> = workers.map(|worker| (worker.id.get(), worker.name)).collect();
        loop {
            let rows = reader.ledger(run.id, jobs).await?;
            let Some(last) = rows.last() else { break };
            jobs = last.number + 1;
            for row in rows {
                let key = (row.job.class, if matches!(self.by, By::Class) { 0 } else { row.job.bound1 });
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
                    out.row(&JOB_COLUMNS.map(|(_, cell)| cell(&row)))?;
                }
            }
        }
        let sums = sums.into_iter().filter(|_| !matches!(self.by, By::Job));
        for ((class, bound1), Totals { count2, count4, count8, solutions }) in sums {
            let mut row = vec![json!(class.name()), json!(run.plan.n().get())];
            row.extend(matches!(self.by, By::Bound1).then(|| json!(bound1)));
            row.extend([count2, count4, count8, solutions].map(|count| json!(count.to_string())));
            out.row(&row)?;
        }
        out.end()?;
        if open > 0 {
            let (open, jobs) = (thousands(open), thousands(jobs));
            eprintln!("nqueens: the run is not done: {open} of {jobs} jobs have no result and count as 0");
        }
        Ok(())
    }

    fn columns(&self, plan: PlanKind) -> Vec<&'static str> {
        let columns: &[&str] = match self.by {
            By::Job => return JOB_COLUMNS.map(|(name, _)| name).to_vec(),
            By::Class => &["class", "n", "count2", "count4", "count8", "solutions"],
            By::Bound1 => &["class", "n", "bound1", "count2", "count4", "count8", "solutions"],
        };
        // These find orbits alone.
        let has_orbits_alone = matches!(plan, PlanKind::Rows | PlanKind::Border);
        columns[..columns.len() - usize::from(has_orbits_alone)].to_vec()
    }

    /// Writes the run's ledger, and its last hash to stderr.
    async fn ledger(&self, reader: &Reader, run: &RunRow) -> anyhow::Result<()> {
        ledger_file::outcome(run)?;
        let (lines, hash) = ledger_file::write(reader, run, self.output.open()?).await?;
        let lines = thousands(lines);
        eprintln!(
            "nqueens: {lines} lines; publish the last hash, so that every later change is detected: {hash}"
        );
        Ok(())
    }
}

/// Why there are no subtotals by BOUND1, and what to do; `None` if there are.
fn no_bounds(run: &RunRow) -> Option<String> {
    let (plan, n) = (run.plan.kind(), run.plan.n());
    Some(match plan {
        PlanKind::Rows | PlanKind::Border => return None,
        PlanKind::Colours => format!(
            "a job of plan {plan} counts boards with the first row's queen in any column, all in one sum: there are no \
             subtotals by BOUND1; use --by job or --by class, or count N = {n} with --plan rows or --plan border"
        ),
        PlanKind::Cells => format!(
            "a job of plan {plan} counts boards with the first row's queen in several columns, all in one sum: there are \
             no subtotals by BOUND1; use --by job or --by class"
        ),
    })
}

struct JobRow<'a> {
    row: LedgerRow,
    job: Job,
    workers: &'a HashMap<u64, String>,
}

impl JobRow<'_> {
    /// A number of its accepted result, as text.
    fn text(&self, number: fn(&LedgerResult) -> Option<u64>) -> Value {
        json!(self.row.accepted.as_ref().and_then(number).map(|number| number.to_string()))
    }

    fn worker(&self) -> Option<u64> {
        Some(self.row.accepted.as_ref()?.worker)
    }
}

type JobColumn = (&'static str, fn(&JobRow) -> Value);

const JOB_COLUMNS: [JobColumn; 17] = [
    ("job", |it| json!(it.row.number)),
    ("class", |it| json!(it.job.class().name())),
    ("n", |it| json!(it.job.n().get())),
    ("bound1", |it| json!(it.job.bound1())),
    ("bound2", |it| json!(it.job.bound2())),
    ("prefixes", |it| json!(prefixes(&it.job))),
    ("state", |it| json!(it.row.state.name())),
    ("count2", |it| it.text(|result| Some(result.counts.count2))),
    ("count4", |it| it.text(|result| Some(result.counts.count4))),
    ("count8", |it| it.text(|result| Some(result.counts.count8))),
    ("solutions", |it| it.text(|result| Some(result.counts.solutions))),
    ("kernel", |it| json!(it.row.accepted.as_ref().map(|result| result.kernel.as_str()))),
    ("worker_id", |it| json!(it.worker())),
    ("worker_name", |it| json!(it.worker().and_then(|worker| it.workers.get(&worker)))),
    ("states", |it| it.text(|result| Some(result.states))),
    ("elapsed_us", |it| it.text(|result| Some(result.elapsed_us))),
    ("cpu_us", |it| it.text(|result| result.cpu_us)),
];

/// Columns joined by '-', prefixes by a space: `0-2-4 0-2-5`; of colours the first row set and the last: `0..255`.
fn prefixes(job: &Job) -> String {
    if let Some(orbits) = job.row_sets() {
        return format!("{}..{}", orbits.start, orbits.end - 1);
    }
    let columns = |prefix: &[u8]| prefix.iter().map(u8::to_string).collect::<Vec<_>>().join("-");
    job.prefixes().map(columns).collect::<Vec<_>>().join(" ")
}

struct RowWriter {
    out: BufWriter<Box<dyn Write>>,
    is_json: bool,
    columns: Vec<&'static str>,
    rows: usize,
}

impl RowWriter {
    fn new(format: ExportFormat, columns: Vec<&'static str>, out: Box<dyn Write>) -> Self {
        let is_json = matches!(format, ExportFormat::Json);
        Self { out: BufWriter::new(out), is_json, columns, rows: 0 }
    }

    fn row(&mut self, cells: &[Value]) -> anyhow::Result<()> {
        let cells = &cells[..self.columns.len()];
        if self.is_json {
            write!(self.out, "{}", if self.rows == 0 { "[\n" } else { ",\n" })?;
            let names = self.columns.iter().map(|&name| name.to_owned());
            let object: serde_json::Map<_, _> = names.zip(cells.iter().cloned()).collect();
            write!(self.out, "{}", Value::Object(object))?;
        } else {
            self.head()?;
            csv::Writer::from_writer(&mut self.out).serialize(cells)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// The line of names, before the first row of CSV.
    fn head(&mut self) -> io::Result<()> {
        if self.rows == 0 { writeln!(self.out, "{}", self.columns.join(",")) } else { Ok(()) }
    }

    fn end(mut self) -> io::Result<()> {
        match (self.is_json, self.rows) {
            (true, 0) => writeln!(self.out, "[]")?,
            (true, _) => writeln!(self.out, "\n]")?,
            (false, _) => self.head()?,
        }
        self.out.flush()
    }
}
