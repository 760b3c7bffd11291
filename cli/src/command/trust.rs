//! `nqueens requeue`, `distrust` and `readmit`: what an operator no longer believes, or believes again.

use std::process::ExitCode;

use clap::Args;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::Blamed;
use serde_json::json;

use super::desk::Desk;
use super::workers::worker;
use crate::exit::misuse;
use crate::output::{Json, print_line, thousands};
use crate::runtime::block_on;

/// Takes accepted results of a run back: they stay in the ledger as voided, and their jobs are counted anew.
///
/// A total that the run has is withdrawn.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens requeue 0123456789ab --worker 7")]
pub(crate) struct Requeue {
    /// The run, as 'nqueens status' lists it
    run: RunId,

    #[command(flatten)]
    of: Of,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
struct Of {
    /// The result of the job of this number
    #[arg(long, value_name = "NUMBER")]
    job: Option<u32>,

    /// All results of this worker, as 'nqueens workers' and 'nqueens audit' list it
    #[arg(long, value_name = "WORKER", value_parser = worker)]
    worker: Option<WorkerId>,
}

impl Requeue {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let of = match (self.of.job, self.of.worker) {
            (Some(job), _) => Blamed::Job(job),
            (None, Some(worker)) => Blamed::Worker(worker),
            (None, None) => misuse("say whose results: --job NUMBER or --worker WORKER").exit(),
        };
        let (run, jobs) = block_on(self.desk.requeue(self.run, of))?;
        if self.json.json {
            let mut line = nqueens_desk::json::run(&run);
            line["requeued"] = jobs.into();
            print_line(line)?;
        } else {
            let (id, state, jobs) = (run.progress.run, run.progress.state.name(), thousands(jobs));
            print_line(format_args!("run {id} is {state}: {jobs} result(s) taken back"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Hands out no more jobs to a machine, and has past results of it counted again by others.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens distrust west")]
pub(crate) struct Distrust {
    /// The name that its workers register under, as 'nqueens workers' lists it
    machine: String,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Distrust {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(self.desk.set_trust(&self.machine, false))?;
        report(&self.machine, false, self.json)
    }
}

/// Lets a machine in again that was distrusted: it is checked like one that is new.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens readmit west")]
pub(crate) struct Readmit {
    /// The name that its workers register under, as 'nqueens workers' lists it
    machine: String,

    #[command(flatten)]
    desk: Desk,

    #[command(flatten)]
    json: Json,
}

impl Readmit {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        block_on(self.desk.set_trust(&self.machine, true))?;
        report(&self.machine, true, self.json)
    }
}

fn report(machine: &str, trusted: bool, json: Json) -> anyhow::Result<ExitCode> {
    if json.json {
        print_line(json!({ "machine": machine, "trusted": trusted }))?;
    } else {
        let state = if trusted { "trusted again" } else { "distrusted: it gets no more jobs" };
        print_line(format_args!("machine {machine} is {state}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
