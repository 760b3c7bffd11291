//! Counts a sample of jobs again and states the confidence, for `verify` and `audit`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nqueens_evidence::confidence::{fewer_than, finds};
use nqueens_evidence::finding::CheckResult;
use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::Sample;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::job::Class;
use nqueens_proto::random_bytes;

use super::choices::{KernelChoice, threads};
use super::finding_lines::print_finding;
use crate::engines::ENGINES;
use crate::exit::INTERRUPTED;
use crate::machine::default_threads;
use crate::output::{Json, thousands};
use crate::progress::LINE_EVERY;
use crate::runtime::block_on;
use crate::signals::{signals, stopped};

/// How a sample is drawn and counted.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SamplingOptions {
    /// Seed of the sample [default: random, printed with the result]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// Number of threads that count the sample
    #[arg(short, long, value_parser = threads, default_value_t = default_threads(), value_name = "COUNT")]
    threads: NonZeroUsize,

    /// Engine that counts the sample; auto selects the fastest with another search than the one that counted first
    // Not --kernel: a setting of this name is meant for those who count, and is not to become the one who checks too.
    #[arg(long, default_value_t = KernelChoice::Auto)]
    recount_kernel: KernelChoice,
}

impl SamplingOptions {
    /// Gets ready to draw up to `size` jobs.
    pub(crate) fn draw(self, size: u32) -> anyhow::Result<SampleDraw> {
        let chosen = self.recount_kernel;
        let kernel = chosen.given().map(|_| chosen.resolve()).transpose()?;
        let seed = self.seed.unwrap_or_else(|| u64::from_ne_bytes(random_bytes()));
        let sample = Sample::new(usize::try_from(size)?, seed);
        Ok(SampleDraw { sample, seed, kernel, threads: self.threads })
    }
}

/// A sample on its way.
pub(crate) struct SampleDraw {
    /// To which every job is offered.
    pub(crate) sample: Sample,
    seed: u64,
    kernel: Option<Kernel>,
    threads: NonZeroUsize,
}

/// The jobs that a sample was drawn from.
#[derive(Debug, Default)]
pub(crate) struct Population {
    pub(crate) jobs: u64,
    /// Each worker's name and its part of them.
    pub(crate) workers: BTreeMap<u64, (String, u64)>,
}

#[derive(Default)]
struct RecountTally {
    recounted: u64,
    wrong: u64,
    /// By these engines.
    kernels: BTreeSet<Kernel>,
    /// Parts of jobs whose solutions were found one by one.
    parts: u64,
    /// How many of each worker, and how many of these were wrong.
    by_worker: BTreeMap<u64, (u64, u64)>,
}

impl SampleDraw {
    /// Counts the sample again and says what came out.
    pub(crate) fn recount(
        self,
        population: &Population,
        interrupt: &Interrupt,
        json: Json,
    ) -> anyhow::Result<ExitCode> {
        let claims = self.sample.into_claims();
        let mut progress = ProgressLine::of(claims.len());
        let mut tally = RecountTally::default();
        let mut printed = Ok(());
        recount(&claims, self.kernel, self.threads, ENGINES, interrupt.control(), |recount| {
            let wrong = u64::from(!recount.agrees());
            let worker = tally.by_worker.entry(recount.claim.worker).or_default();
            *worker = (worker.0 + 1, worker.1 + wrong);
            (tally.recounted, tally.wrong) = (tally.recounted + 1, tally.wrong + wrong);
            tally.kernels.insert(recount.kernel);
            tally.parts += u64::from(recount.parts);
            if wrong > 0 && printed.is_ok() {
                printed = progress.bar.suspend(|| print_mismatch(json, &recount, population));
            }
            progress.step();
        });
        progress.bar.finish_and_clear();
        printed?;
        tally.print(population, self.seed, json)?;
        Ok(if tally.wrong > 0 {
            ExitCode::FAILURE
        } else if tally.recounted < claims.len() as u64 {
            let (recounted, jobs) = (thousands(tally.recounted), thousands(claims.len()));
            eprintln!("nqueens: interrupted after {recounted} of {jobs} jobs");
            ExitCode::from(INTERRUPTED)
        } else {
            ExitCode::SUCCESS
        })
    }
}

fn print_mismatch(json: Json, recount: &Recount, population: &Population) -> io::Result<()> {
    let claim = &recount.claim;
    let found = recount.found.clone().map_or_else(|why| why, |counts| counts.to_string());
    let name = population.workers.get(&claim.worker).map_or("?", |(name, _)| name);
    let is_searched = claim.job.class == Class::Colours && !recount.kernel.multiplies();
    let road = if is_searched { " one by one" } else { "" };
    let what = format!(
        "worker {} ({name}) counted {} by {}, recounted{road} by {}: {found}",
        claim.worker, claim.counts, claim.kernel, recount.kernel
    );
    print_finding(json, &format!("job {}", claim.number), &CheckResult::Failed(what))
}

impl RecountTally {
    fn print(&self, population: &Population, seed: u64, json: Json) -> io::Result<()> {
        let (recounted, jobs) = (thousands(self.recounted), thousands(population.jobs));
        let sample = if self.recounted == 0 {
            CheckResult::NotMade(format!("0 of {jobs} jobs counted again (seed {seed})"))
        } else if self.wrong > 0 {
            let wrong = thousands(self.wrong);
            CheckResult::Failed(format!(
                "{wrong} of {recounted} jobs counted again differ (seed {seed}); the run has {jobs}. Do not trust its \
                 total; nothing was changed"
            ))
        } else {
            let kernels = self.kernels.iter().map(Kernel::to_string).collect::<Vec<_>>().join(" and ");
            let parts = match self.parts {
                0 => String::new(),
                parts => format!(" ({} parts of them also one by one)", thousands(parts)),
            };
            let (proof, power) =
                (proof(population.jobs, self.recounted), power(population.jobs, self.recounted));
            CheckResult::Passed(format!(
                "{recounted} of {jobs} jobs counted again by {kernels}{parts}, all equal (seed {seed}): {proof}{power}"
            ))
        };
        print_finding(json, "sample", &sample)?;
        for (id, (recounted, wrong)) in &self.by_worker {
            let (name, jobs) =
                population.workers.get(id).map_or(("?", *recounted), |(name, jobs)| (name, *jobs));
            let told = format!("{} of {} jobs of {name}", thousands(recounted), thousands(jobs));
            let result = match wrong {
                0 => CheckResult::Passed(format!("{told}: {}", proof(jobs, *recounted))),
                _ => CheckResult::Failed(format!("{told}: {} differ", thousands(wrong))),
            };
            print_finding(json, &format!("worker {id}"), &result)?;
        }
        Ok(())
    }
}

/// What `recounted` jobs of `jobs` prove, if all were right.
fn proof(jobs: u64, recounted: u64) -> String {
    let wrong = fewer_than(jobs, recounted);
    #[expect(clippy::cast_precision_loss, reason = "a share, for people")]
    let share = 100.0 * wrong as f64 / jobs as f64;
    if recounted == jobs {
        "none is wrong".to_owned()
    } else {
        format!("with 95 % confidence fewer than {} are wrong, {share:.2} %", thousands(wrong))
    }
}

/// What `recounted` jobs of `jobs` would have found, if not all of them were counted.
fn power(jobs: u64, recounted: u64) -> String {
    if recounted == jobs {
        return String::new();
    }
    let wrong = jobs.div_ceil(100);
    // Rounded down: it promises nothing that does not hold.
    let chance = (1e4 * finds(jobs, recounted, wrong)).floor() / 100.0;
    let jobs = if wrong == 1 { "1 job".to_owned() } else { format!("{} jobs", thousands(wrong)) };
    format!(
        "; if 1 % of all ({jobs}) were wrong, this would have found one of them with a probability of {chance:.2} %"
    )
}

/// How far the counting is, on stderr: a bar on a terminal, a line now and then elsewhere.
struct ProgressLine {
    bar: ProgressBar,
    told: Instant,
}

impl ProgressLine {
    fn of(jobs: usize) -> Self {
        let style = ProgressStyle::with_template(
            "{bar:32} {human_pos} of {human_len} jobs counted again, {eta} left",
        );
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(jobs as u64), target);
        Self { bar: bar.with_style(style.expect("a valid template")), told: Instant::now() }
    }

    fn step(&mut self) {
        self.bar.inc(1);
        if self.bar.is_hidden() && self.told.elapsed() >= LINE_EVERY {
            self.told = Instant::now();
            let (done, jobs) = (self.bar.position(), self.bar.length().unwrap_or_default());
            eprintln!("{} of {} jobs counted again", thousands(done), thousands(jobs));
        }
    }
}

/// Ctrl-C or SIGTERM, for work on threads.
pub(crate) struct Interrupt(Arc<Control>);

impl Interrupt {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let control = Arc::new(Control::default());
        let (told, counting) = (signals(None)?, Arc::clone(&control));
        thread::spawn(move || {
            block_on(async {
                stopped(told).await;
                counting.stop();
                Ok(())
            })
        });
        Ok(Self(control))
    }

    /// Is stopped by the first signal; the second ends the process.
    pub(crate) fn control(&self) -> &Control {
        &self.0
    }
}
