//! `nqueens requeue` and `distrust`.

use std::process::ExitCode;

use clap::Args;
use nqueens_model::credential::Credential;
use nqueens_model::operator::{Blamed, MachineName, TrustChange};

use crate::confirm::Confirmation;
use crate::exit::misuse;
use crate::names::WorkerChoice;
use crate::output::{Json, counted, thousands};
use crate::runtime::block_on;
use crate::target::{OperatorTarget, RunTarget};

/// Voids accepted results of a run and counts their jobs again, or asks again for second counts.
///
/// Voided results stay in the ledger. If the run has a total, it is withdrawn until all is counted; the command asks before.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens requeue 0123456789ab --worker 7")]
pub(crate) struct RequeueCommand {
    #[command(flatten)]
    of: Of,

    #[command(flatten)]
    confirmation: Confirmation,

    #[command(flatten)]
    run: RunTarget,

    #[command(flatten)]
    json: Json,
}

#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
struct Of {
    /// Void the result of this job
    #[arg(long, value_name = "NUMBER")]
    job: Option<u32>,

    /// Void all results of this worker: its number or name, as listed by 'nqueens workers'
    #[arg(long, value_name = "WORKER")]
    worker: Option<WorkerChoice>,

    /// Void none, and ask connected workers for the second counts that nobody made
    // With a database alone there is no worker, and the run would be over at once.
    #[arg(long, conflicts_with = "db")]
    unmade: bool,
}

impl RequeueCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let requeue = async {
            let (mut target, id) = self.run.open().await?;
            let of = match (self.of.job, &self.of.worker, self.of.unmade) {
                (Some(job), ..) => Blamed::Job(job),
                (None, Some(worker), _) => Blamed::Worker(target.find_worker(worker).await?),
                (None, None, true) => Blamed::Unmade,
                (None, None, false) => misuse("give --job NUMBER, --worker WORKER or --unmade").exit(),
            };
            let run = target.run(id).await?;
            let jobs = run.progress.jobs;
            if let Blamed::Job(job) = of
                && job >= jobs
            {
                misuse(format_args!("run {id} has no job {job}: it has {}, from 0 on", counted(jobs, "job")))
                    .exit();
            }
            if let Some(outcome) = run.outcome {
                let total = thousands(outcome.total);
                let question = format!("run {id} is done, TOTAL {total}. Withdraw this total?");
                let consequence = format!("run {id} is done, and its total would be withdrawn");
                if !self.confirmation.given(&consequence, &question).await? {
                    return Ok(None);
                }
            }
            target.requeue(id, of).await.map(Some)
        };
        let Some((run, jobs)) = block_on(requeue)? else { return Ok(ExitCode::FAILURE) };
        let (id, state) = (run.progress.run, run.progress.state.name());
        let done = if self.of.unmade {
            format!("{} asked for again", counted(jobs, "second count"))
        } else {
            format!("{} voided", counted(jobs, "result"))
        };
        let mut line = serde_json::to_value(run.view())?;
        line["requeued"] = jobs.into();
        self.json.print(line, format_args!("run {id} is {state}: {done}"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Marks a machine untrusted: it gets no more jobs, and other machines count past results of it again.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens distrust west")]
pub(crate) struct DistrustCommand {
    /// Name that the machine's workers register with, as listed by 'nqueens workers'
    #[arg(value_name = "MACHINE")]
    name: Option<String>,

    /// Name of its token: only the machine of that, or without MACHINE all machines of that
    #[arg(long, value_name = "NAME", value_parser = credential)]
    credential: Option<Credential>,

    /// Trust it again, whoever marked it; its results are checked like those of a new machine
    #[arg(long)]
    undo: bool,

    #[command(flatten)]
    target: OperatorTarget,

    #[command(flatten)]
    json: Json,
}

impl DistrustCommand {
    pub(crate) fn execute(self) -> anyhow::Result<()> {
        let (machines, what) = match (self.name, self.credential) {
            (Some(name), credential) => (MachineName::One { name, credential }, "machine "),
            (None, Some(credential)) => (MachineName::All { credential }, ""),
            (None, None) => misuse("give MACHINE or --credential NAME").exit(),
        };
        let state = if self.undo { "trusted again" } else { "untrusted: it gets no more jobs" };
        let said = format!("{what}{machines} is {state}");
        let change = TrustChange { machines, trusted: self.undo };
        block_on(async { self.target.open()?.set_trust(change.clone()).await })?;
        Ok(self.json.print(change, said)?)
    }
}

fn credential(name: &str) -> Result<Credential, String> {
    Credential::stored(name).map_err(|error| format!("a credential's name {error}"))
}
