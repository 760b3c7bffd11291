//! `nqueens worker`: counts for a coordinator.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nqueens_kernel::engine::Kernel;
use nqueens_model::name;
use nqueens_worker::{Client, Config, Proof, Spool, Summary, WorkerError, prove, proven_kernels, work};
use tracing::info;

use super::choices::{KernelChoice, default_threads, threads};
use crate::build::BUILD;
use crate::engines::ENGINES;
use crate::exit::INTERRUPTED;
use crate::exit::misuse;
use crate::memory::Memory;
use crate::runtime;
use crate::signals::{Signal, signals, stopped};
use crate::tls::CallerTls;
use crate::token;

/// Carries the token where no file does.
const TOKEN_VARIABLE: &str = "NQUEENS_TOKEN";

/// Counts jobs for a coordinator until it is stopped.
///
/// While the coordinator is unreachable, the worker counts the jobs it holds, keeps the results in its spool and tries to
/// reconnect. SIGTERM or Ctrl-C returns jobs that have not started and gives running jobs --drain-seconds to finish. A
/// second signal stops it immediately. If the coordinator requires a token, give --token-file or set the variable
/// `NQUEENS_TOKEN`; if it requires a certificate, give --tls-cert.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens worker --coordinator http://head:7327 --threads 16")]
pub(crate) struct WorkerCommand {
    /// Address of the coordinator
    #[arg(long, value_name = "URL")]
    coordinator: String,

    /// Number of counting threads
    #[arg(long, value_parser = threads, default_value_t = default_threads(), value_name = "COUNT")]
    threads: NonZeroUsize,

    /// Counting engine; each must pass a self-test on small boards, and auto selects the fastest that does
    #[arg(long, default_value_t = KernelChoice::Auto)]
    kernel: KernelChoice,

    #[command(flatten)]
    memory: Memory,

    /// Name in the coordinator's lists: one line of printable characters, at most 64 bytes [default: the host name]
    #[arg(long, value_parser = name)]
    name: Option<String>,

    /// Directory that keeps results until they are acknowledged; each worker needs its own
    #[arg(long, value_name = "DIR", default_value = "nqueens-spool")]
    spool: PathBuf,

    /// Niceness of the process, 0 to 19: higher values leave more CPU time to other processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=19), default_value_t = 0)]
    nice: i32,

    /// File with the worker token, if the coordinator requires one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    tls: CallerTls,

    /// Time for running jobs to finish when the worker is stopped or drained; then they are returned
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400), default_value_t = 10)]
    drain_seconds: u64,
}

/// Reads a worker's name.
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
        if self.nice > 0 {
            // Before there are other threads: each inherits it from the one that starts it.
            rustix::process::nice(self.nice).context("setting the niceness")?;
        }
        runtime::beside_counting()?.block_on(self.serve())
    }

    async fn serve(self) -> anyhow::Result<ExitCode> {
        let told = signals(None).context("listening for signals")?;
        let token = token::read(self.token_file.as_deref(), TOKEN_VARIABLE)?;
        let client = Client::new(&self.coordinator, token, self.tls.read()?.as_ref())
            .unwrap_or_else(|error| misuse(error).exit());
        let spool = Spool::open(&self.spool)?;
        let choice = self.kernel;
        let proving = tokio::task::spawn_blocking(move || engines(choice));
        let (engine, kernels) = proving.await.context("the engines' test panicked")??;
        let config = Config {
            name: self.name.unwrap_or_else(host_name),
            build: BUILD.to_owned(),
            threads: self.threads,
            factory: Arc::new(ENGINES),
            engine,
            kernels,
            memory_max: self.memory.bytes(),
            spool: Some(spool),
            drain: Duration::from_secs(self.drain_seconds),
        };
        let summary = work(config, client, stopped(told.clone())).await?;
        Ok(farewell(&summary, *told.borrow()))
    }
}

/// Logs how it ended; the exit code.
fn farewell(summary: &Summary, told: Option<Signal>) -> ExitCode {
    let Summary { accepted, unreported, unreturned, dismissed, .. } = *summary;
    let by = if dismissed { "an operator" } else { "a signal" };
    info!(by, accepted, unreported, unreturned, "worker has stopped");
    let clean = unreported == 0 && unreturned == 0;
    if told == Some(Signal::Interrupt) || !clean { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }
}

/// The engine to use, and all that can be offered, that one first.
fn engines(choice: KernelChoice) -> anyhow::Result<(Proof, Vec<Kernel>)> {
    let proofs: Vec<_> = proven_kernels(ENGINES).collect();
    let engine = match choice {
        KernelChoice::Auto => proofs.first().copied().ok_or(WorkerError::NoEngine)?,
        KernelChoice::Given(kernel) => match proofs.iter().find(|proof| proof.kernel == kernel) {
            Some(proof) => *proof,
            None => prove(ENGINES, kernel).map_err(anyhow::Error::msg)?,
        },
    };
    let others = proofs.iter().map(|proof| proof.kernel).filter(|kernel| *kernel != engine.kernel);
    Ok((engine, std::iter::once(engine.kernel).chain(others).collect()))
}
