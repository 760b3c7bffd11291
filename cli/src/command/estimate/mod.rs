//! `nqueens estimate`: estimates solutions and cost before a run.

mod colours;
mod sample;

use std::process::ExitCode;
use std::thread;

use bytesize::ByteSize;
use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::job::Job;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::numbers;
use nqueens_model::operator::Interval;
use rustix::time::ClockId;
use serde_json::json;

use crate::choices::{Threads, kernels, plan_kind, plans, runnable};
use crate::headings::COSTS;
use crate::measuring::processor_time;
use crate::memory::Memory;
use crate::output::{Json, counted, print_line, quantity, thousands};
use crate::progress::text_bar;
use sample::{Sampling, SpeedSource, interval};

/// Estimates the number of solutions of a board and the cost of counting them, from a random sample.
///
/// Random descents of the plan's search estimate the numbers of solutions and states, each with a 95 % confidence interval.
/// A short measurement on this machine, or a given speed, turns states into hours. Nothing is stored.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens estimate 22 --threads-total 64")]
pub(crate) struct EstimateCommand {
    /// Board size, 1 to 31
    #[arg(allow_negative_numbers = true)]
    n: BoardSize,

    #[command(flatten)]
    threads: Threads,

    /// How to split the board into jobs [default: the fastest way]
    #[arg(long, value_parser = plans())]
    plan: Option<PlanKind>,

    /// Counting engine [default: the fastest]
    #[arg(long, value_parser = kernels())]
    kernel: Option<Kernel>,

    /// Number of random descents, and of row sets in proportion; four times as many halve the interval
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=100_000_000))]
    samples: u32,

    /// Seed of the random numbers; the same seed gives the same estimates
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    json: Json,

    /// States per second of one thread of the cluster, as printed by 'nqueens bench' [default: measured here]
    #[arg(long, value_name = "STATES", value_parser = speed, allow_negative_numbers = true, help_heading = COSTS)]
    speed: Option<f64>,

    /// Number of threads of the cluster [default: --threads]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000_000), help_heading = COSTS)]
    threads_total: Option<u32>,

    #[command(flatten)]
    memory: Memory,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed >= 1.0);
    speed.ok_or_else(|| format!("a speed is at least 1 state per second, such as 1.5e9, not '{text}'"))
}

impl EstimateCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let sampling = Sampling {
            n: self.n,
            kernel: runnable(self.kernel)?,
            threads: self.threads.number(),
            strata: self.samples.div_ceil(2),
            seed: self.seed,
            memory_max: self.memory.bytes(),
            progress: text_bar(),
        };
        let plan = Plan::new(self.n, plan_kind(self.plan, self.n, Some(sampling.kernel)));
        let (n, kind, kernel) = (self.n, plan.kind(), sampling.kernel);
        sampling.check(kind)?;
        if !self.json.json {
            // At once, for the rest may take a minute.
            let intervals = "95 % confidence intervals";
            print_line(format_args!("N = {n}, plan {kind}, {kernel} kernel; {intervals}"))?;
        }
        let ((jobs, database_bytes), sampled) = thread::scope(|scope| {
            let ledger = scope.spawn(|| ledger_size(&plan));
            let sampled = sampling.board(kind, self.speed);
            (ledger.join().expect("planning does not panic"), sampled)
        });
        drop(sampling);
        let (total, by_row_sets, work) = sampled?;
        let threads_total = self.threads_total.unwrap_or(u32::try_from(self.threads.number().get())?);
        let (total, by_row_sets) = (interval(total), by_row_sets.map(interval));
        let published = published(n).map(|known| known.total);
        // From begin to end, if all threads always have work.
        let wall_hours = work.core_hours.map(|hours| hours / f64::from(threads_total));
        // This estimate's own.
        let spent_s = processor_time(ClockId::ProcessCPUTime).as_secs_f64();
        if self.json.json {
            print_line(json!({
                "n": n.get(),
                "plan": kind.name(),
                "kernel": kernel.name(),
                "samples": self.samples,
                "seed": self.seed,
                "total": total,
                "total_by_row_sets": by_row_sets,
                "published": published.map(|total| total.to_string()),
                "states": work.states,
                "states_per_s": work.states_per_s,
                "speed_from": work.speed_from,
                "scaled_from_n": work.scaled_from_n,
                "core_hours": work.core_hours,
                "threads_total": threads_total,
                "wall_hours": wall_hours,
                "jobs": jobs,
                "database_bytes": database_bytes,
                "spent_s": spent_s,
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let speed = numbers::speed(work.states_per_s);
        let source = if work.speed_from == SpeedSource::Given { "as given" } else { "measured here" };
        let how = "by the plan's own estimate of its work; the interval is 25 % wider per two rows";
        let wall = wall_hours.map(|hours| hours * 3_600.0).describe_time();
        let lines = [
            ("solutions", Some(describe(total))),
            ("by row sets", by_row_sets.map(describe)),
            ("published", published.map(thousands)),
            ("states", Some(describe(work.states))),
            ("speed", Some(format!("{speed} per thread, {source}"))),
            ("assumed", work.scaled_from_n.map(|from| format!("states scaled up from N = {from}, {how}"))),
            ("core-hours", Some(hours(work.core_hours))),
            ("wall time", Some(format!("{wall} on {}, fully busy", counted(threads_total, "thread")))),
            ("jobs", Some(thousands(jobs))),
            ("database", Some(format!("about {}", ByteSize(database_bytes).display().si()))),
            ("estimated", Some(format!("in {} of processor time", numbers::duration(spent_s)))),
        ];
        let mut told = lines.into_iter().filter_map(|(what, how)| Some((what, how?)));
        told.try_for_each(|(what, how)| print_line(format_args!("{what:<14}{how}")))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(count: Interval) -> String {
    if count.low < count.high {
        count.describe_count()
    } else {
        format!("{}, counted", thousands(format_args!("{:.0}", count.value)))
    }
}

fn hours(amount: Interval) -> String {
    let value = quantity(amount.value);
    if amount.low < amount.high {
        format!("{value} ({}..{})", quantity(amount.low), quantity(amount.high))
    } else {
        value
    }
}

/// A database without a job.
const EMPTY_BYTES: u64 = 45_000;
/// What a job and its result take, less the job's own encoding: 144 to 152 bytes in databases of 12,000 to 54,000 jobs of the
/// plans `rows`, `border` and one with the encoding of `colours`.
const JOB_BYTES: u64 = 150;
/// The counts of a part of a large job, as text.
const PART_BYTES: u64 = 20;

/// The jobs of a plan, and the size of its database when all is counted. Makes the jobs, some seconds' work for the largest
/// boards.
fn ledger_size(plan: &Plan) -> (u64, u64) {
    let wanted = Job::parts_wanted(plan.states_per_job());
    plan.jobs().fold((0, EMPTY_BYTES), |(jobs, bytes), job| {
        let parts = job.row_sets().map_or(wanted, |range| wanted.min(range.end - range.start));
        let parts_bytes = if parts > 1 { parts * PART_BYTES } else { 0 };
        (jobs + 1, bytes + JOB_BYTES + job.encode().len() as u64 + parts_bytes)
    })
}
