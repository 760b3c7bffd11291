//! Recounts a sample of jobs for `verify`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use clap::Args;
use nqueens_evidence::confidence::finds;
use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_evidence::recount::{Recount, recount};
use nqueens_evidence::sample::Sample;
use nqueens_evidence::verify::{CHECKS_MIN, Report};
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_proto::random_bytes;
use serde_json::json;

use crate::choices::{Threads, kernels, runnable};
use crate::engines::ENGINES;
use crate::output::{Json, harmless, print_line, thousands};
use crate::progress::{LINE_EVERY, bar};
use crate::runtime::block_on;
use crate::signals::{signals, stopped};

/// How a sample is drawn and counted.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct SamplingOptions {
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
    pub(crate) fn sample(&self) -> anyhow::Result<Sample> {
        self.recount_kernel.map(|kernel| runnable(Some(kernel))).transpose()?;
        Ok(Sample::new(self.sample.unwrap_or(0) as usize, self.seed))
    }

    /// Recounts the sample, if one was asked for, and prints what came out. Returns how many jobs are equal, and whether all
    /// were recounted.
    pub(crate) fn recount(
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
pub(crate) fn print_finding(json: Json, check: &str, result: &CheckResult) -> io::Result<()> {
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
pub(crate) fn interruptible() -> anyhow::Result<Arc<Control>> {
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
