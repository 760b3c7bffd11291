//! `nqueens estimate`: estimates solutions and cost before a run.

mod colours;
mod cost;
mod progress;
mod sample;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::thread;

use bytesize::ByteSize;
use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_model::numbers;
use nqueens_model::operator::Interval;
use serde_json::{Value, json};

use crate::choices::{KernelChoice, PlanChoice, amount, threads};
use crate::headings::COSTS;
use crate::machine::default_threads;
use crate::memory::Memory;
use crate::output::{Json, counted, print_line, thousands};
use cost::{Cost, LedgerSize};
use progress::SamplingProgress;
use sample::{Sampling, SpeedSource, WorkEstimate, interval};

/// Estimates the number of solutions of a board and the cost of counting them, from a random sample.
///
/// Random descents of the plan's search estimate the numbers of solutions and states, each with a 95 % confidence interval.
/// A short measurement on this machine, or a given speed, turns states into hours. Nothing is stored.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: nqueens estimate 22 --threads-total 64 --watts-per-core 5 --price-per-core-hour 0.02"
)]
pub(crate) struct EstimateCommand {
    /// Board size, 1 to 31
    #[arg(allow_negative_numbers = true)]
    n: BoardSize,

    /// Number of threads that sample and measure on this machine
    #[arg(short, long, value_parser = threads, default_value_t = default_threads(), value_name = "COUNT")]
    threads: NonZeroUsize,

    /// How to split the board into jobs
    #[arg(long, default_value_t = PlanChoice::Auto)]
    plan: PlanChoice,

    /// Counting engine
    #[arg(long, default_value_t = KernelChoice::Auto)]
    kernel: KernelChoice,

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

    /// Power of one counting thread of the cluster
    #[arg(long, value_name = "WATTS", value_parser = amount, allow_negative_numbers = true, help_heading = COSTS)]
    watts_per_core: Option<f64>,

    /// Price of one thread of the cluster for one hour
    #[arg(long, value_name = "PRICE", value_parser = amount, allow_negative_numbers = true, help_heading = COSTS)]
    price_per_core_hour: Option<f64>,

    #[command(flatten)]
    memory: Memory,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = amount(text).ok().filter(|speed| *speed >= 1.0);
    speed.ok_or_else(|| format!("a speed is at least 1 state per second, such as 1.5e9, not '{text}'"))
}

/// All that is said of a board.
struct Outlook {
    total: Interval,
    /// By a sample of row sets, for plan `colours`.
    by_row_sets: Option<Interval>,
    work: WorkEstimate,
    cost: Cost,
    ledger: LedgerSize,
}

impl EstimateCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let sampling = Sampling {
            n: self.n,
            kernel: self.kernel.resolve()?,
            threads: self.threads,
            strata: self.samples.div_ceil(2),
            seed: self.seed,
            memory_max: self.memory.bytes(),
            progress: SamplingProgress::new(),
        };
        let plan = Plan::new(self.n, self.plan.resolve(self.n, Some(sampling.kernel)));
        sampling.check(plan.kind())?;
        if !self.json.json {
            // At once, for the rest may take a minute.
            print_line(format_args!(
                "N = {}, plan {}, {} kernel; 95 % confidence intervals",
                self.n,
                plan.kind(),
                sampling.kernel
            ))?;
        }
        let (ledger, sampled) = thread::scope(|scope| {
            let ledger = scope.spawn(|| LedgerSize::of(&plan));
            let sampled = sampling.board(plan.kind(), self.speed);
            (ledger.join().expect("planning does not panic"), sampled)
        });
        let (total, by_row_sets, work) = sampled?;
        let cost = Cost {
            core_hours: work.core_seconds.map(|seconds| seconds / 3_600.0),
            threads: self.threads_total.unwrap_or(u32::try_from(self.threads.get())?),
            watts: self.watts_per_core,
            price: self.price_per_core_hour,
        };
        let by_row_sets = by_row_sets.map(interval);
        let outlook = Outlook { total: interval(total), by_row_sets, work, cost, ledger };
        if self.json.json {
            print_line(self.json(plan.kind(), &sampling, &outlook))?;
        } else {
            drop(sampling);
            self.print(&outlook)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn json(&self, plan: PlanKind, sampling: &Sampling, outlook: &Outlook) -> Value {
        let Outlook { total, by_row_sets, work, cost, ledger } = outlook;
        let count = |Interval { value, low, high }| json!({ "estimate": whole(value), "low": whole(low), "high": whole(high) });
        let real = |Interval { value, low, high }| json!({ "estimate": value, "low": low, "high": high });
        json!({
            "n": self.n.get(),
            "plan": plan.name(),
            "kernel": sampling.kernel.name(),
            "samples": self.samples,
            "seed": self.seed,
            "total": count(*total),
            "total_by_row_sets": by_row_sets.map(count),
            "published": published(self.n).map(|known| known.total.to_string()),
            "states": count(work.states),
            "states_per_s": work.states_per_s,
            "speed_from": <&str>::from(work.source),
            "scaled_from_n": work.scaled_from.map(BoardSize::get),
            "core_hours": real(cost.core_hours),
            "threads_total": cost.threads,
            "wall_hours": real(cost.wall_hours()),
            "jobs": ledger.jobs,
            "database_bytes": ledger.bytes,
            "energy_kwh": cost.energy_kwh().map(real),
            "price": cost.total_price().map(real),
        })
    }

    fn print(&self, outlook: &Outlook) -> anyhow::Result<()> {
        let Outlook { total, by_row_sets, work, cost, ledger } = outlook;
        let say = |what: &str, how: String| print_line(format_args!("{what:<14}{how}"));
        say("solutions", describe(*total))?;
        if let Some(by_row_sets) = by_row_sets {
            say("by row sets", describe(*by_row_sets))?;
        }
        if let Some(known) = published(self.n) {
            say("published", thousands(known.total))?;
        }
        say("states", describe(work.states))?;
        let speed = numbers::speed(work.states_per_s);
        let source = if work.source == SpeedSource::Given { "as given" } else { "measured here" };
        say("speed", format!("{speed} per thread, {source}"))?;
        if let Some(from) = work.scaled_from {
            let how = "by the plan's own estimate of its work; the interval is 25 % wider per two rows";
            say("assumed", format!("states scaled up from N = {from}, {how}"))?;
        }
        say("core-hours", hours(cost.core_hours))?;
        let wall = cost.wall_hours().map(|hours| hours * 3_600.0).describe_time();
        say("wall time", format!("{wall} on {}, fully busy", counted(cost.threads, "thread")))?;
        say("jobs", thousands(ledger.jobs))?;
        say("database", format!("about {}", ByteSize(ledger.bytes).display().si()))?;
        if let Some(energy) = cost.energy_kwh() {
            say("energy", format!("{} kWh", hours(energy)))?;
        }
        if let Some(price) = cost.total_price() {
            say("price", hours(price))?;
        }
        Ok(())
    }
}

/// A count without its fraction: decimal digits, however many.
fn whole(count: f64) -> String {
    format!("{count:.0}")
}

fn describe(count: Interval) -> String {
    if count.low < count.high {
        count.describe_count()
    } else {
        format!("{}, counted", thousands(whole(count.value)))
    }
}

/// An amount with three digits or so, and its bounds.
fn hours(amount: Interval) -> String {
    let short = |number: f64| match number {
        100.0.. => thousands(whole(number)),
        10.0.. => format!("{number:.1}"),
        0.1.. => format!("{number:.2}"),
        0.001.. => format!("{number:.4}"),
        0.0 => "0".to_owned(),
        _ => format!("{number:.2e}"),
    };
    if amount.low < amount.high {
        format!("{} ({}..{})", short(amount.value), short(amount.low), short(amount.high))
    } else {
        short(amount.value)
    }
}
