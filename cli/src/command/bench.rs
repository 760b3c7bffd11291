//! `nqueens bench`: the counting speed alone.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;
use nqueens_kernel::board::BoardSize;
use serde_json::json;

use crate::command::choices::{KernelChoice, PlanChoice, threads};
use crate::command::counting;
use crate::memory::Memory;
use crate::output::{Json, thousands};

/// Measures the counting speed of a kernel, without database and network.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens bench --n 16 --threads 4 --json")]
pub(crate) struct BenchCommand {
    /// Board size, 1 to 31
    #[arg(long, value_name = "N", default_value = "16", allow_negative_numbers = true)]
    n: BoardSize,

    /// How to split the board into jobs
    #[arg(long, default_value_t = PlanChoice::Auto)]
    plan: PlanChoice,

    /// Counting engine
    #[arg(long, default_value_t = KernelChoice::Auto)]
    kernel: KernelChoice,

    /// Number of counting threads
    #[arg(long, value_name = "T", default_value = "1", value_parser = threads)]
    threads: NonZeroUsize,

    #[command(flatten)]
    memory: Memory,

    #[command(flatten)]
    json: Json,
}

impl BenchCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (n, kernel) = (self.n, self.kernel.resolve()?);
        let plan = self.plan.resolve(n, kernel);
        let count = counting::count(n, plan, kernel, self.threads, self.memory.bytes())?;
        count.check(n)?;
        let elapsed_s = count.elapsed.as_secs_f64();
        let line = json!({
            "n": n.get(),
            "plan": plan.name(),
            "kernel": kernel.name(),
            "threads": self.threads,
            "elapsed_s": elapsed_s,
            "total": count.total.to_string(),
            "states": count.states.to_string(),
        });
        let speed = count.states_per_s() / 1e6;
        let text = format!(
            "N = {n}: {} solutions in {elapsed_s:.3} s\n\
             {kernel} kernel, plan {plan}, {} thread(s): {} states, {speed:.0} million/s",
            thousands(count.total),
            self.threads,
            thousands(count.states)
        );
        self.json.print(line, text)?;
        Ok(ExitCode::SUCCESS)
    }
}
