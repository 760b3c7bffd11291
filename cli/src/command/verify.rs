//! `nqueens verify`: checks an exported ledger from the file alone, or a run in a database.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use nqueens_coordinator::{Reader, RunRow};
use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_evidence::sample::{Claim, Sample};
use nqueens_evidence::verdict::Verdict;
use nqueens_evidence::verify::{Report, verify};
use nqueens_kernel::engine::{Control, Stopped};
use serde_json::json;

use crate::exit::{INTERRUPTED, NOT_CONFIRMED, misuse};
use crate::ledger_file;
use crate::ledger_source::LedgerSource;
use crate::names::RunPrefix;
use crate::output::{Json, counted, thousands};
use crate::runtime::block_on;
use crate::sampling::{SamplingOptions, interruptible, print_finding};

/// Checks a ledger file written by 'nqueens export --format ledger', or with --db a run in a database.
///
/// Prints one line per check, then one line of verdict: BELIEVABLE (exit code 0), COUNTED, NOT CONFIRMED (3) or WRONG (1). What
/// only the run's owner says counts for nothing. With --sample, this machine recounts random jobs: mirror images, by another
/// search. With --json, an object per line: the run; 'check', 'passed' (null: not checked) and 'detail'; 'verdict' and
/// 'detail'.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens verify nqueens-16.ledger --sample 300")]
pub(crate) struct VerifyCommand {
    /// Ledger file; with --db, a run's id [default: the only run in the database]
    #[arg(value_name = "FILE|RUN", required_unless_present = "db")]
    what: Option<PathBuf>,

    /// Database with the run, which need not be done; a coordinator may be using it
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,

    #[command(flatten)]
    sampling: SamplingOptions,

    #[command(flatten)]
    json: Json,
}

impl VerifyCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let control = interruptible()?;
        let sample = self.sampling.sample()?;
        let checked = match self.database() {
            Some(source) => {
                block_on(source.read(async |reader, run| self.run(reader, &run, sample, &control).await))
            }
            None => self.file(sample, &control),
        };
        let (mut report, sample) = match checked {
            Err(_) if control.is_stopped() => {
                eprintln!("nqueens: interrupted before all results were read; nothing was verified");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            checked => checked?,
        };
        for (check, verdict) in &report.findings {
            print_finding(self.json, check.name(), verdict)?;
        }
        // A file that is wrong can hold jobs that nobody ever finishes.
        let (recounted, is_whole) = if report.jobs > 0 && report.passed() {
            self.sampling.recount(&mut report, sample, &control, self.json)?
        } else {
            (0, true)
        };
        let verdict = report.verdict(recounted);
        let (word, why) = verdict.told();
        self.json.print(json!({ "verdict": word, "detail": why }), &verdict)?;
        Ok(match verdict {
            Verdict::Wrong(_) => ExitCode::FAILURE,
            _ if !is_whole => ExitCode::from(INTERRUPTED),
            Verdict::Counted(_) => ExitCode::from(NOT_CONFIRMED),
            Verdict::Believable(_) => ExitCode::SUCCESS,
        })
    }

    fn database(&self) -> Option<LedgerSource> {
        let db = self.db.clone()?;
        let run = self.what.as_ref().map(|run| {
            let run: Result<RunPrefix, _> = run.to_string_lossy().parse();
            run.unwrap_or_else(|error| {
                misuse(format_args!("with --db or NQUEENS_DB, name a run: {error}")).exit()
            })
        });
        Some(LedgerSource { run, db })
    }

    fn file(&self, mut sample: Sample, control: &Control) -> anyhow::Result<(Report, Sample)> {
        let path = self.what.as_deref().unwrap_or(Path::new(""));
        let name = || path.display().to_string();
        let mut file = BufReader::new(File::open(path).with_context(name)?);
        if file.fill_buf().with_context(name)?.starts_with(b"SQLite format 3\0") {
            bail!("{0} is a database, not a ledger file; use 'nqueens verify --db {0}'", path.display());
        }
        let report = verify(file, &mut sample, control).with_context(name)?;
        if let Some(header) = &report.header {
            let subject = header.plan().map_or_else(String::new, |plan| plan.subject());
            print_run(self.json, (&header.run, &subject), header.plan, header.jobs.into())?;
        }
        Ok((report, sample))
    }

    /// Checks the ledger of a run that is done; of another one there are results to be recounted.
    async fn run(
        &self,
        reader: &Reader,
        run: &RunRow,
        mut sample: Sample,
        control: &Arc<Control>,
    ) -> anyhow::Result<(Report, Sample)> {
        print_run(self.json, (run.id, &run.plan.subject()), run.plan.kind(), run.jobs.into())?;
        if run.outcome.is_some() {
            return ledger_file::check(reader, run, sample, Arc::clone(control)).await;
        }
        let mut report = Report::default();
        let mut next = 0;
        while let Some(rows) = reader.ledger(run.id, &mut next).await? {
            for row in rows {
                let (number, job) = (row.number, row.job);
                let Some(result) = row.accepted else { continue };
                report.jobs += 1;
                let (counts, kernel, worker) = (result.counts, result.kernel, result.worker);
                sample.offer(number, || Claim { number, job, counts, kernel, worker });
            }
            if control.is_stopped() {
                return Err(Stopped.into());
            }
        }
        let workers = reader.workers().await?;
        report.workers = workers.into_iter().map(|row| (row.id.get(), row.name)).collect();
        let (done, jobs) = (thousands(report.jobs), thousands(run.jobs));
        let what = format!("the run is not done: {done} of {jobs} jobs have a result");
        report.add(Check::Jobs, CheckResult::NotMade(what));
        Ok((report, sample))
    }
}

fn print_run(
    json: Json,
    (run, subject): (impl Display, &str),
    plan: impl Display,
    jobs: u64,
) -> io::Result<()> {
    let object =
        json!({ "run": run.to_string(), "subject": subject, "plan": plan.to_string(), "jobs": jobs });
    let jobs = counted(jobs, "job");
    json.print(object, format_args!("run {run}, {subject}, plan {plan}, {jobs}"))
}
