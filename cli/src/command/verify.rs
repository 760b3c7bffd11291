//! `nqueens verify`: checks an exported ledger from the file alone, or a run in a database.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use nqueens_coordinator::{Reader, RunRow};
use nqueens_evidence::confidence::finds;
use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::{Claim, Sample};
use nqueens_evidence::verdict::Verdict;
use nqueens_evidence::verify::{CHECKS_MIN, Report, verify};
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_proto::random_bytes;
use serde_json::json;

use crate::choices::{Threads, kernels, runnable};
use crate::engines::ENGINES;
use crate::exit::{INTERRUPTED, NOT_CONFIRMED, misuse};
use crate::ledger_file;
use crate::ledger_source::LedgerSource;
use crate::names::RunPrefix;
use crate::output::{Json, counted, harmless, print_line, thousands};
use crate::progress::{LINE_EVERY, bar};
use crate::runtime::block_on;
use crate::signals::{signals, stopped};

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

/// How a sample is drawn and counted.
#[derive(Clone, Copy, Debug, Args)]
struct SamplingOptions {
    /// Number of jobs to recount
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,

    /// Seed of the sample [default: random, printed with the result]
    #[arg(long, value_name = "S", requires = "sample", default_value_t = random(), hide_default_value = true)]
    seed: u64,

    #[command(flatten)]
    threads: Threads,

    /// Engine that recounts [default: the fastest with another search than the one that counted first]
    // Not --kernel: a setting of this name is meant for those who count, and is not to become the one who checks too.
    #[arg(long, requires = "sample", value_parser = kernels())]
    recount_kernel: Option<Kernel>,
}

#[derive(Default)]
struct RecountTally {
    recounted: u64,
    wrong: u64,
    kernels: BTreeSet<Kernel>,
    /// Parts of jobs whose solutions were found one by one.
    parts: u64,
}

fn random() -> u64 {
    u64::from_ne_bytes(random_bytes())
}

impl SamplingOptions {
    /// To which every job is to be offered. An error if this machine can't recount as it was asked to.
    fn sample(&self) -> anyhow::Result<Sample> {
        self.recount_kernel.map(|kernel| runnable(Some(kernel))).transpose()?;
        Ok(Sample::new(self.sample.unwrap_or(0) as usize, self.seed))
    }

    /// Recounts the sample, if one was asked for, and prints what came out. Returns how many jobs are equal, and whether all
    /// were recounted.
    fn recount(
        &self,
        report: &mut Report,
        sample: Sample,
        control: &Control,
        json: Json,
    ) -> anyhow::Result<(u64, bool)> {
        if self.sample.is_none() {
            return Ok((0, true));
        }
        let claims = sample.into_claims();
        let progress = bar("{bar:32} {human_pos} of {human_len} jobs recounted, {eta} left");
        progress.set_length(claims.len() as u64);
        let mut told = Instant::now();
        let mut tally = RecountTally::default();
        let mut printed = Ok(());
        let (kernel, threads) = (self.recount_kernel, self.threads.number());
        recount(&claims, kernel, threads, ENGINES, control, |recount| {
            let wrong = u64::from(!recount.agrees());
            (tally.recounted, tally.wrong) = (tally.recounted + 1, tally.wrong + wrong);
            tally.kernels.insert(recount.kernel);
            tally.parts += u64::from(recount.parts);
            if wrong > 0 && printed.is_ok() {
                printed = progress.suspend(|| print_mismatch(json, &recount, &report.workers));
            }
            progress.inc(1);
            if progress.is_hidden() && told.elapsed() >= LINE_EVERY {
                told = Instant::now();
                eprintln!("{} of {} jobs recounted", thousands(tally.recounted), thousands(claims.len()));
            }
        });
        drop(progress);
        printed?;
        let result = tally.describe(report.jobs, self.seed);
        print_finding(json, Check::Sample.name(), &result)?;
        report.add(Check::Sample, result);
        let is_whole = tally.recounted == claims.len() as u64;
        if !is_whole {
            let (recounted, jobs) = (thousands(tally.recounted), thousands(claims.len()));
            eprintln!("nqueens: interrupted after {recounted} of {jobs} jobs");
        }
        Ok((tally.recounted - tally.wrong, is_whole))
    }
}

/// Prints how a check went: in three columns, or as JSON.
fn print_finding(json: Json, check: &str, result: &CheckResult) -> io::Result<()> {
    let (outcome, what) = result.told();
    let (check, what) = (harmless(check), harmless(what));
    if !json.json {
        return print_line(format_args!("{outcome:<7} {check:<12} {what}"));
    }
    let passed = match result {
        CheckResult::Passed(_) => Some(true),
        CheckResult::Failed(_) => Some(false),
        CheckResult::NotMade(_) => None,
    };
    print_line(json!({ "check": check, "passed": passed, "detail": what }))
}

fn print_mismatch(json: Json, recount: &Recount, workers: &BTreeMap<u64, String>) -> io::Result<()> {
    let claim = &recount.claim;
    let found = recount.found.clone().map_or_else(|why| why, |counts| counts.to_string());
    let name = workers.get(&claim.worker).map_or("?", String::as_str);
    let what = format!(
        "worker {} ({name}) counted {} by {}, recounted by {}: {found}",
        claim.worker, claim.counts, claim.kernel, recount.kernel
    );
    print_finding(json, &format!("job {}", claim.number), &CheckResult::Failed(what))
}

/// Below this many recounts a share of wrong results could hide easily.
const RECOUNTS_TOLD: u64 = 30;

impl RecountTally {
    fn describe(&self, jobs: u64, seed: u64) -> CheckResult {
        let (recounted, of) = (thousands(self.recounted), thousands(jobs));
        if self.recounted == 0 {
            return CheckResult::NotMade(format!("0 of {of} jobs recounted (seed {seed})"));
        }
        if self.wrong > 0 {
            let wrong = thousands(self.wrong);
            return CheckResult::Failed(format!(
                "{wrong} of {recounted} recounted jobs differ (seed {seed})"
            ));
        }
        let kernels = self.kernels.iter().map(Kernel::to_string).collect::<Vec<_>>().join(" and ");
        let parts = match self.parts {
            0 => String::new(),
            parts => format!(", {} parts of them found one by one", thousands(parts)),
        };
        let proof = if self.recounted == jobs {
            String::new()
        } else if self.recounted < RECOUNTS_TOLD {
            format!(". Too few to say more: --sample {}", jobs.min(CHECKS_MIN.into()))
        } else {
            // Rounded down: it promises nothing that does not hold.
            let chance = (100.0 * finds(jobs, self.recounted, jobs.div_ceil(100))).floor();
            format!(
                "; if 1 % of the results were wrong, this would have found it with {chance} % probability"
            )
        };
        CheckResult::Passed(format!(
            "{recounted} of {of} jobs recounted by {kernels}{parts}, all equal (seed {seed}){proof}"
        ))
    }
}

/// Stops work on threads at Ctrl-C or SIGTERM; the second signal ends the process.
fn interruptible() -> anyhow::Result<Arc<Control>> {
    let control = Arc::new(Control::default());
    let (told, counting) = (signals(None)?, Arc::clone(&control));
    thread::spawn(move || {
        block_on(async {
            stopped(told).await;
            counting.stop();
            Ok(())
        })
    });
    Ok(control)
}
