//! `nqueens bench`: the counting speed alone.

use std::iter::repeat_n;
use std::num::NonZeroUsize;

use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::to_f64;
use nqueens_kernel::plan::PlanKind;
use serde_json::json;

use crate::choices::{plan_kind, plans, threads};
use crate::counting;
use crate::engine_options::{EngineOptions, plan_beside_gpus};
use crate::output::{Json, counted, speed, thousands};

/// Measures the counting speed of a kernel, without database and network.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens bench 16 --threads 4 --json")]
pub(crate) struct BenchCommand {
    /// Board size, 1 to 31
    #[arg(default_value = "16", allow_negative_numbers = true)]
    n: BoardSize,

    /// How to split the board into jobs [default: the fastest way]
    #[arg(long, value_parser = plans())]
    plan: Option<PlanKind>,

    /// Number of counting threads
    #[arg(short, long, value_name = "T", default_value = "1", value_parser = threads)]
    threads: NonZeroUsize,

    #[command(flatten)]
    engines: EngineOptions,

    #[command(flatten)]
    json: Json,
}

impl BenchCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let n = self.n;
        let proven = self.engines.prove(self.threads, plan_beside_gpus(self.plan, n), |decision| {
            eprintln!("nqueens: {decision}");
        })?;
        let plan = plan_kind(self.plan, n, proven.planned_for(n));
        let kernels = proven.names();
        let crews = proven.crews.into_iter();
        let engines: Vec<_> = crews.flat_map(|crew| repeat_n(crew.engine, crew.threads.get())).collect();
        let count = counting::count(n, plan, &engines, self.engines.memory.bytes())?;
        let elapsed_s = count.elapsed.as_secs_f64();
        let line = json!({
            "n": n.get(),
            "plan": plan.name(),
            "kernel": &kernels,
            "threads": engines.len(),
            "elapsed_s": elapsed_s,
            "total": count.outcome.total.to_string(),
            "states": count.states.to_string(),
        });
        let speed = speed(to_f64(count.states) / elapsed_s);
        let text = format!(
            "N = {n}: {} solutions in {elapsed_s:.3} s\n\
             {kernels} kernel, plan {plan}, {}: {} states, {speed}",
            thousands(count.outcome.total),
            counted(engines.len(), "thread"),
            thousands(count.states)
        );
        Ok(self.json.print(line, text)?)
    }
}
