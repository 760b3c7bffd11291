//! `nqueens coordinator`: the ledger, and the door to it.

use std::future::pending;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bytesize::ByteSize;
use clap::Args;
use nqueens_coordinator::progress::Snapshot;
use nqueens_coordinator::{Access, Coordinator, Error, Pace, Policy, Reader, listen};
use tokio::sync::watch;
use tracing::{info, warn};

use super::doctor::BUILD;
use super::limits::{DoorLimits, files_max};
use super::page::PageOptions;
use crate::client::TOKEN_VARIABLE;
use crate::console::INTERRUPTED;
use crate::memory::size;
use crate::output::print_line;
use crate::settings::misuse;
use crate::signals::{Signal, signals};
use crate::tls::CoordinatorTls;
use crate::token;

/// Carries the workers' token where no file does.
const WORKER_TOKEN_VARIABLE: &str = "NQUEENS_WORKER_TOKEN";

/// Plans runs, hands out their jobs to workers, keeps the results, and adds up.
///
/// The first line that it prints says where it listens. On any address but this machine's own it asks workers and
/// operators for a token each, from a file or from the variables `NQUEENS_WORKER_TOKEN` and `NQUEENS_OPERATOR_TOKEN`, or
/// for certificates ('nqueens certs' makes them).
/// SIGTERM and Ctrl-C end it once what has begun is answered, within seconds; a second one ends it at once. Whatever
/// was acknowledged is safe in any case.
///
/// A browser on this machine finds a page with all runs at `http://127.0.0.1:7328/`, and Prometheus its metrics at
/// /metrics there.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens coordinator --db queens.db")]
pub(crate) struct Coordinate {
    /// Database file; made if it is not there
    #[arg(long, value_name = "PATH")]
    db: PathBuf,

    /// Address to listen on; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7327")]
    listen: String,

    /// File with the token that workers must show
    #[arg(long, value_name = "FILE")]
    worker_token_file: Option<PathBuf>,

    /// File with the token that operators must show
    #[arg(long, value_name = "FILE")]
    operator_token_file: Option<PathBuf>,

    #[command(flatten)]
    tls: CoordinatorTls,

    /// Listen on any address without tokens or certificates: whoever reaches it can do anything
    #[arg(long)]
    insecure: bool,

    /// A worker that was not heard of for so long loses its jobs to others
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400), default_value_t = 60)]
    lease_seconds: u32,

    /// After a start, workers of earlier have so long to be heard of
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400), default_value_t = 120)]
    grace_seconds: u32,

    /// Workers are to be heard of so often
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600), default_value_t = 5)]
    sync_seconds: u32,

    /// A line for each open run goes into the log so often
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400), default_value_t = 60)]
    progress_seconds: u32,

    /// With less room than this on the database's disk no more jobs are handed out; results are still taken
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MiB")]
    disk_reserve: ByteSize,

    #[command(flatten)]
    limits: DoorLimits,

    #[command(flatten)]
    page: PageOptions,

    /// Count no jobs here to hold the workers' results against; it takes a twentieth of one core
    #[arg(long)]
    no_canaries: bool,
}

impl Coordinate {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        if self.lease_seconds < 3 * self.sync_seconds {
            misuse("--lease-seconds must be at least three times --sync-seconds").exit();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .context("starting the runtime")?;
        let outcome = runtime.block_on(self.serve());
        // Connections that were cut off are of no more interest.
        runtime.shutdown_background();
        outcome
    }

    fn pace(&self) -> Pace {
        let policy = Policy {
            lease_ms: 1_000 * u64::from(self.lease_seconds),
            grace_ms: 1_000 * u64::from(self.grace_seconds),
            ..Policy::default()
        };
        let canaries = !self.no_canaries;
        Pace { sync_ms: 1_000 * self.sync_seconds, policy, disk_reserve: self.disk_reserve.0, canaries }
    }

    async fn serve(self) -> anyhow::Result<ExitCode> {
        let mut told = signals().context("listening for signals")?;
        let worker = token::read(self.worker_token_file.as_deref(), WORKER_TOKEN_VARIABLE)?;
        let operator = token::read(self.operator_token_file.as_deref(), TOKEN_VARIABLE)?;
        let access = self.tls.apply(Access::new(worker, operator.clone())?)?;
        let (listener, address) = listen(&self.listen).await?;
        if !address.ip().is_loopback() && !access.is_complete() {
            if !self.insecure {
                misuse(format_args!(
                    "{address} can be reached from other machines: give --worker-token-file and \
                     --operator-token-file (or the variables {WORKER_TOKEN_VARIABLE} and {TOKEN_VARIABLE}), or \
                     --tls-cert, --tls-key and --tls-ca, or --insecure to let in whoever comes"
                ))
                .exit();
            }
            warn!(%address, "insecure: whoever reaches this address can do anything");
        }
        let access = access.with_limits(self.limits.within(files_max()?));
        let page = self.page.prepare(operator.as_ref()).await?;
        let mut coordinator = Coordinator::open(&self.db, self.pace(), BUILD).await?;
        coordinator.keep_journal(Duration::from_secs(self.progress_seconds.into()));
        let stop = || {
            let mut told = told.clone();
            async move { drop(told.wait_for(Option::is_some).await) }
        };
        let mut serving = coordinator.serve(listener, &access, stop());
        print_line(format_args!("listening on {address}"))?;
        info!(%address, db = %self.db.display(), build = BUILD, "coordinator is up");
        let shown = page.open(&coordinator, stop());
        tokio::select! {
            served = &mut serving => served.context("the server panicked")??,
            error = damage(coordinator.operator().reader()) => return Err(error.into()),
            () = writer_ended(coordinator.operator().watch()) => bail!("the database can't be used any more; see the log"),
        }
        for task in shown {
            task.abort();
        }
        info!("no more calls; closing the database");
        coordinator.close().await;
        info!("coordinator is down");
        let signal = *told.borrow_and_update();
        Ok(if signal == Some(Signal::Interrupt) { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }
}

/// Looks at the database while it is being served, for a large one takes seconds; returns only if it is damaged.
async fn damage(reader: &Reader) -> Error {
    match reader.glance().await {
        Err(error @ Error::Damaged(_)) => error,
        Err(error) => {
            warn!(%error, "looking whether the database is sound");
            pending().await
        }
        Ok(()) => pending().await,
    }
}

/// Waits until nobody keeps the ledger any more.
async fn writer_ended(mut snapshots: watch::Receiver<Arc<Snapshot>>) {
    while snapshots.changed().await.is_ok() {}
}
