//! `nqueens bench`: the counting speed alone.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use clap::Args;
use nqueens_kernel::board::BoardSize;
use nqueens_worker::{Crew, prove};
use serde_json::json;

use crate::choices::{EngineChoice, KernelChoice, PlanChoice, suited, threads};
use crate::counting;
use crate::devices::Devices;
use crate::engines::ENGINES;
use crate::memory::Memory;
use crate::output::{Json, counted, speed, thousands};

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

    /// Counting engine; opencl counts on devices
    #[arg(long, default_value_t = EngineChoice::Auto)]
    kernel: EngineChoice,

    /// Number of counting threads
    #[arg(short, long, value_name = "T", default_value = "1", value_parser = threads)]
    threads: NonZeroUsize,

    #[command(flatten)]
    devices: Devices,

    #[command(flatten)]
    memory: Memory,

    #[command(flatten)]
    json: Json,
}

impl BenchCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let n = self.n;
        self.devices.check(self.kernel);
        let kernel = self.kernel.cpu().map(KernelChoice::resolve).transpose()?;
        let (threads, devices) = if let Some(kernel) = kernel {
            let proof = prove(ENGINES, kernel).map_err(anyhow::Error::msg)?;
            let beside = Crew::of_cpu(proof, self.threads);
            let devices = self.devices.crews(&beside, |decision| eprintln!("nqueens: {decision}"))?;
            (vec![beside.engine; self.threads.get()], devices)
        } else {
            if self.threads > NonZeroUsize::MIN {
                eprintln!("nqueens: --threads is not used, since devices count alone");
            }
            (Vec::new(), self.devices.crews_alone()?)
        };
        let plan = self.plan.resolve(n, suited(n, kernel, !devices.is_empty()));
        let engines: Vec<_> =
            threads.into_iter().chain(devices.into_iter().map(|crew| crew.engine)).collect();
        let count = counting::count_by(n, plan, &engines, self.memory.bytes())?;
        count.check(n)?;
        let kernels: BTreeSet<_> = engines.iter().map(String::as_str).collect();
        let kernels = kernels.into_iter().collect::<Vec<_>>().join(" + ");
        let elapsed_s = count.elapsed.as_secs_f64();
        let line = json!({
            "n": n.get(),
            "plan": plan.name(),
            "kernel": kernels,
            "threads": engines.len(),
            "elapsed_s": elapsed_s,
            "total": count.total.to_string(),
            "states": count.states.to_string(),
        });
        let speed = speed(count.states_per_s());
        let text = format!(
            "N = {n}: {} solutions in {elapsed_s:.3} s\n\
             {kernels} kernel, plan {plan}, {}: {} states, {speed}",
            thousands(count.total),
            counted(engines.len(), "thread"),
            thousands(count.states)
        );
        self.json.print(line, text)?;
        Ok(ExitCode::SUCCESS)
    }
}
