//! `nqueens worker`: counts for a coordinator.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nqueens_kernel::plan::PlanKind;
use nqueens_model::name;
use nqueens_worker::{Client, Config, EndReason, Spool, Summary, proven_kernels, work};
use tracing::info;

use super::join::Join;
use crate::build::BUILD;
use crate::choices::Threads;
use crate::engine_options::EngineOptions;
use crate::engines::ENGINES;
use crate::exit::{INTERRUPTED, misuse};
use crate::headings::{CONNECTION, LIMITS};
use crate::runtime;
use crate::signals::{Signal, signals, stopped};
use crate::time::{TimeLimit, duration};
use crate::tls::CallerTls;
use crate::token;

/// Time for calls of the system that have not ended when the worker has.
const LATE_MAX: Duration = Duration::from_secs(10);

/// Counts jobs for a coordinator until it is stopped.
///
/// While the coordinator is unreachable, the worker counts the jobs it holds, keeps the results in its spool and tries to
/// reconnect. SIGTERM or Ctrl-C returns jobs that have not started and gives running jobs --drain-seconds to finish; a second
/// Ctrl-C stops it immediately. What a worker needs to know to join a cluster is best given with --join. If the
/// coordinator requires a token, --token-file or the variable `NQUEENS_TOKEN` can be used instead.
///
/// Exit codes: 0 stopped by a signal, drained by an operator, no more work (--idle-timeout), or time is up (--time-limit), 1 failed,
/// 2 wrong usage, 5 refused by the coordinator, 130 Ctrl-C, or results are left in the spool.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens worker --join cluster.join --time-limit auto --idle-timeout 5m")]
pub(crate) struct WorkerCommand {
    /// File with address, certificate and token, made by 'nqueens join create'
    #[arg(long, value_name = "FILE", conflicts_with_all = ["coordinator", "token_file", "ca"])]
    join: Option<PathBuf>,

    /// Address of the coordinator
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7327")]
    coordinator: String,

    #[command(flatten)]
    threads: Threads,

    #[command(flatten)]
    engines: EngineOptions,

    /// Name in the coordinator's lists: one line of printable characters, at most 64 bytes [default: the host name]
    #[arg(long, value_parser = name)]
    name: Option<String>,

    /// Directory that keeps results until they are acknowledged; each worker needs its own
    #[arg(long, value_name = "DIR", default_value = "nqueens-spool")]
    spool: PathBuf,

    /// End by then: auto (the end of the Slurm job), a duration such as 2h, or a time such as 2026-12-24T18:00. The
    /// worker takes only jobs that it expects to finish, and returns the others 10 seconds before
    #[arg(long, value_name = "LIMIT")]
    time_limit: Option<TimeLimit>,

    /// End after this time without work, such as 5m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    idle_timeout: Option<Duration>,

    /// File with the worker token, if the coordinator requires one
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    tls: CallerTls,

    /// Time for running jobs to finish when the worker is stopped or drained; then they are returned
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400), default_value_t = 10, help_heading = LIMITS)]
    drain_seconds: u64,
}

fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    name::check(text).map_err(|error| format!("a worker name {error}"))?;
    Ok(text.to_owned())
}

/// The host's name, as far as it is one for a worker.
fn host_name() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name(&host).unwrap_or_else(|_| "worker".to_owned())
}

impl WorkerCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let runtime = runtime::beside_counting()?;
        let outcome = runtime.block_on(self.serve());
        // What hangs in the system is not waited for: a write to a disk, or the search for an address.
        runtime.shutdown_timeout(LATE_MAX);
        outcome
    }

    async fn serve(self) -> anyhow::Result<ExitCode> {
        let told = signals(None).context("listening for signals")?;
        let client = self.client()?;
        let spool = Spool::open(&self.spool)?;
        let (threads, memory) = self.engines.memory.of_worker(self.threads.number())?;
        let options = self.engines.clone();
        let proving = tokio::task::spawn_blocking(move || {
            let engines = options.prove(threads, |_| PlanKind::Border, |decision| info!("{decision}"))?;
            let offered = engines.kernel.map(|_| proven_kernels(ENGINES).map(|proof| proof.kernel.into()));
            anyhow::Ok((engines.crews, offered.into_iter().flatten().collect()))
        });
        let (crews, offered) = proving.await.context("the engines' test panicked")??;
        let time_max = self.time_limit.and_then(TimeLimit::left);
        let config = Config {
            name: self.name.unwrap_or_else(host_name),
            build: BUILD.to_owned(),
            crews,
            factory: Arc::new(ENGINES),
            offered,
            memory,
            spool: Some(spool),
            drain: Duration::from_secs(self.drain_seconds),
            time_max,
            idle_max: self.idle_timeout,
        };
        let summary = work(config, client, stopped(told.clone())).await?;
        Ok(farewell(&summary, *told.borrow()))
    }

    fn client(&self) -> anyhow::Result<Client> {
        if let Some(join) = &self.join {
            return Join::read(join)?.client();
        }
        let token = token::read(self.token_file.as_deref(), token::OF_WORKER)?;
        let client = Client::new(&self.coordinator, token, self.tls.read()?.as_ref());
        Ok(client.unwrap_or_else(|error| misuse(error).exit()))
    }
}

/// Logs how it ended; the exit code.
fn farewell(summary: &Summary, told: Option<Signal>) -> ExitCode {
    let Summary { accepted, unreported, unreturned, reason, .. } = *summary;
    let why = match reason {
        EndReason::Stopped => "a signal",
        EndReason::Dismissed => "an operator",
        EndReason::Idle => "no more work",
        EndReason::TimeUp => "time is up",
    };
    info!(reason = why, accepted, unreported, unreturned, "worker has stopped");
    let is_clean = unreported == 0 && unreturned == 0 && told != Some(Signal::Interrupt);
    if is_clean { ExitCode::SUCCESS } else { ExitCode::from(INTERRUPTED) }
}
