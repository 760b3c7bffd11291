//! `nqueens coordinator`: runs a coordinator.

use std::fs::{self, DirBuilder, DirEntry};
use std::future::pending;
use std::io::{self, ErrorKind, PipeWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytesize::ByteSize;
use clap::Args;
use jiff::Timestamp;
use nqueens_coordinator::{
    Access, CallerLimits, Coordinator, Door, Error, Policy, Rate, Reader, RunRow, Timing, backup, listen,
};
use nqueens_model::PROGRESS;
use nqueens_model::operator::Progress;
use nqueens_web::{Document, pages};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::report;
use crate::build::BUILD;
use crate::choices::RunRules;
use crate::exit::{INTERRUPTED, misuse};
use crate::headings::{CHECKS, CONNECTION, LIMITS};
use crate::ledger_file;
use crate::memory::size;
use crate::output::print_line;
use crate::signals::{END_WITHIN, Signal, SignalReceiver, signals, stopped};
use crate::time::duration;
use crate::tls::CoordinatorTls;
use crate::token;

/// Plans runs, leases their jobs to workers, stores the results and computes the totals.
///
/// The first line of output is the address that it listens on. On a non-loopback address, workers and operators must
/// present tokens. They come from files or from the variables `NQUEENS_WORKER_TOKEN` and `NQUEENS_OPERATOR_TOKEN`.
///
/// SIGTERM or Ctrl-C stops the coordinator within 5 seconds, after it has answered the calls in progress. A second Ctrl-C
/// stops it immediately, and so does the end of these 5 seconds; both with exit code 130. Acknowledged results
/// are safe in all cases.
///
/// The same address shows all runs in a browser, and serves Prometheus metrics at /metrics and health at /healthz and /readyz.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens coordinator --db queens.db")]
pub(crate) struct CoordinatorCommand {
    /// Database file; created if it does not exist
    #[arg(long, value_name = "PATH")]
    db: PathBuf,

    /// Address to listen on; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7327")]
    listen: String,

    /// Show the page and the metrics without a token; both are read-only
    #[arg(long)]
    public_page: bool,

    #[command(flatten)]
    backups: Backups,

    /// File with the token that workers must present, or with a line NAME TOKEN for each owner of workers
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    worker_token_file: Option<PathBuf>,

    /// File with the token that operators must present
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    operator_token_file: Option<PathBuf>,

    #[command(flatten)]
    tls: CoordinatorTls,

    /// Allow any address without tokens: everyone who can reach it has full access
    #[arg(long, help_heading = CONNECTION)]
    insecure: bool,

    /// Recount nothing in this process: neither samples of the workers' results (2 % of their time), nor disputed jobs
    #[arg(long, help_heading = CHECKS)]
    no_recounts: bool,

    /// Lease duration: a worker without a heartbeat for this long loses its jobs
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400), default_value_t = 60, help_heading = LIMITS)]
    lease_seconds: u32,

    /// Grace period for known workers after a restart
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400), default_value_t = 120, help_heading = LIMITS)]
    grace_seconds: u32,

    /// Heartbeat interval of workers
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600), default_value_t = 5, help_heading = LIMITS)]
    sync_seconds: u32,

    /// Interval of progress lines in the log, one for each open run
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400), default_value_t = 60, help_heading = LIMITS)]
    progress_seconds: u32,

    /// Minimum free space on the database's disk; below it no jobs are leased and no runs planned, but results are still
    /// accepted
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "256MiB", help_heading = LIMITS)]
    disk_reserve: ByteSize,

    /// Maximum number of live workers per token
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 10_000, help_heading = LIMITS)]
    workers_max: u32,

    #[command(flatten)]
    rules: RunRules,

    #[command(flatten)]
    limits: ListenerLimits,
}

impl CoordinatorCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        if self.lease_seconds < 3 * self.sync_seconds {
            misuse("--lease-seconds must be at least three times --sync-seconds").exit();
        }
        self.backups.prepare()?;
        let told = signals(Some(END_WITHIN)).context("listening for signals")?;
        let runtime = Runtime::new().context("starting the runtime")?;
        let outcome = runtime.block_on(self.serve(told));
        // It waits for no connection that was cut off.
        runtime.shutdown_background();
        outcome
    }

    fn timing(&self) -> Timing {
        let policy = Policy {
            beat_ms: 1_000 * self.sync_seconds,
            lease_ms: 1_000 * u64::from(self.lease_seconds),
            grace_ms: 1_000 * u64::from(self.grace_seconds),
            workers_max: self.workers_max as usize,
            ..self.rules.policy(!self.no_recounts)
        };
        Timing { policy, disk_reserve: self.disk_reserve.0, ..self.rules.timing() }
    }

    async fn serve(self, told: SignalReceiver) -> anyhow::Result<ExitCode> {
        let workers = token::read_named(self.worker_token_file.as_deref(), token::OF_WORKERS)?;
        let operator = token::read(self.operator_token_file.as_deref(), token::OF_OPERATOR)?;
        let access = self.tls.apply(Access::new(workers, operator)?, &self.db)?;
        let (listener, address) = listen(&self.listen).await?;
        if !address.ip().is_loopback() && !access.is_complete() {
            if !self.insecure {
                misuse(format_args!(
                    "{address} can be reached from other machines: give --worker-token-file and \
                     --operator-token-file (or the variables {} and {}), or --insecure to let everyone in",
                    token::OF_WORKERS,
                    token::OF_OPERATOR
                ))
                .exit();
            }
            warn!(%address, "insecure: everyone who can reach this address has full access");
        }
        let door = Door::open(listener, &access.with_limits(self.limits.within(files_max()?)));
        let mut coordinator = tokio::select! {
            coordinator = Coordinator::open(&self.db, self.timing(), BUILD) => coordinator?,
            () = stopped(told.clone()) => {
                info!("coordinator is stopped before it was up");
                return Ok(farewell(&told));
            }
        };
        coordinator.keep_journal(Duration::from_secs(self.progress_seconds.into()));
        let pages = pages(coordinator.operator(), &door, write_document, self.public_page);
        let mut serving = coordinator.serve(door, Some(pages), stopped(told.clone()));
        print_line(format_args!("listening on {address}"))?;
        info!(%address, db = %self.db.display(), build = BUILD, "coordinator is up");
        let backups = tokio::spawn(self.backups.make(self.db.clone()));
        tell_of_runs(&coordinator);
        tokio::select! {
            served = &mut serving => served.context("the server panicked")?,
            error = damage(coordinator.operator().reader()) => return Err(error.into()),
            error = end(coordinator.faults()) => return Err(anyhow::Error::new(error)),
        }
        info!("no more calls are accepted; closing the database");
        backups.abort();
        coordinator.close().await;
        info!("coordinator is down");
        Ok(farewell(&told))
    }
}

/// What a coordinator finds in its database when it starts again.
fn tell_of_runs(coordinator: &Coordinator) {
    let snapshot = coordinator.operator().watch().borrow().clone();
    for run in snapshot.runs.iter().filter(|run| run.state.is_open()) {
        info!(target: PROGRESS, run = %run.id, "found run {}: {}", run.id, Progress::from(run).line());
    }
}

fn farewell(told: &SignalReceiver) -> ExitCode {
    if *told.borrow() == Some(Signal::Interrupt) { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS }
}

/// Looks at the database while it is being served, for a large one takes seconds; returns only if it is damaged.
async fn damage(reader: &Reader) -> Error {
    match reader.glance().await {
        Err(error) if error.is_damage() => error,
        Err(error) => {
            warn!(%error, "checking whether the database is sound");
            pending().await
        }
        Ok(()) => pending().await,
    }
}

/// Waits until nobody keeps the ledger any more; returns the reason.
async fn end(mut faults: watch::Receiver<Option<Arc<Error>>>) -> Arc<Error> {
    let is_final = |fault: &Option<Arc<Error>>| fault.as_ref().is_some_and(|error| error.is_final());
    let fault = faults.wait_for(is_final).await.expect("the coordinator is there").clone();
    fault.expect("just seen")
}

/// Writes a document of a run for the page.
fn write_document(
    document: Document,
    runtime: &Handle,
    reader: &Reader,
    run: &RunRow,
    mut out: PipeWriter,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime.block_on(async {
        match document {
            Document::Ledger => drop(ledger_file::write(reader, run, out).await?),
            Document::Report => out.write_all(report::html(reader, run).await?.as_bytes())?,
        }
        Ok(())
    })
}

/// Open files beside connections: the database, its log, its readers, and what the runtime has.
const FILES_RESERVED: u64 = 100;

/// Of the other files one in so many is for unauthenticated connections, at least.
const UNAUTHENTICATED_SHARE: usize = 8;

/// Limits on connections and calls.
#[derive(Clone, Copy, Debug, Args)]
struct ListenerLimits {
    /// Maximum number of connections with an allowed call, three quarters of them under one token; each worker uses one
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 16_000, help_heading = LIMITS)]
    connections_max: u32,

    /// Close connections that are still unauthenticated after this time
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600), default_value_t = 10, help_heading = LIMITS)]
    first_call_seconds: u32,

    /// Maximum calls per second on one connection
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1_000, help_heading = LIMITS)]
    calls_per_second: u32,

    /// Maximum worker registrations per hour under one token; each start of a worker is one
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 20_000, help_heading = LIMITS)]
    registrations_per_hour: u32,

    /// Close connections that do not read a response within this time
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600), default_value_t = 60, help_heading = LIMITS)]
    answer_seconds: u32,
}

impl ListenerLimits {
    /// The limits, with no more connections than this process may open files.
    fn within(self, files_max: u64) -> CallerLimits {
        let most = usize::try_from(files_max.saturating_sub(FILES_RESERVED)).unwrap_or(usize::MAX).max(1);
        let (limits, wanted) = (CallerLimits::default(), self.connections_max as usize);
        let connections = wanted.min(most - most / UNAUTHENTICATED_SHARE);
        if connections < wanted {
            warn!(
                connections_max = self.connections_max,
                files_max,
                "fewer connections than --connections-max because this process may open no more files; raise its limit \
                 (ulimit -Hn, or LimitNOFILE= in the systemd unit)"
            );
        }
        CallerLimits {
            connections,
            unauthenticated: limits.unauthenticated.min(most - connections).max(1),
            first_call: Duration::from_secs(self.first_call_seconds.into()),
            calls: Rate::a_second(self.calls_per_second),
            registrations: Rate::an_hour(self.registrations_per_hour),
            write_timeout: Duration::from_secs(self.answer_seconds.into()),
        }
    }
}

/// Has the system let this process open as many files as it ever will; says how many.
fn files_max() -> anyhow::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context("raising the limit of open files")?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// As many backups stay.
const KEPT: usize = 3;

/// Backups that a coordinator makes by itself.
#[derive(Clone, Debug, Args)]
struct Backups {
    /// Time between two backups
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m", requires = "backup_dir")]
    backup_every: Duration,

    /// Folder, best on another disk, for checked copies of the database: the last three stay. Each coordinator needs its own
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
}

impl Backups {
    /// Makes the folder, if backups are wanted. Not the folders above it: a disk may not be mounted.
    fn prepare(&self) -> anyhow::Result<()> {
        let Some(folder) = &self.backup_dir else { return Ok(()) };
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            made => made.with_context(|| format!("the folder for backups, {}", folder.display())),
        }
    }

    /// Copies the database at this interval, if that is wanted. After a start, the first copy waits for its turn, too: who
    /// starts again and again does not lose the older ones.
    async fn make(self, database: PathBuf) {
        let Some(folder) = self.backup_dir else { return };
        let age = |backup: &PathBuf| backup.metadata().ok()?.modified().ok()?.elapsed().ok();
        let newest = backups(&database, &folder).ok().and_then(|backups| age(backups.last()?));
        let mut wait = newest.map_or(Duration::ZERO, |age| self.backup_every.saturating_sub(age));
        loop {
            tokio::time::sleep(wait).await;
            match back_up(&database, &folder).await {
                Ok(made) => info!(backup = %made.display(), "the database is backed up"),
                Err(error) => error!("the database is not backed up: {error:#}"),
            }
            wait = self.backup_every;
        }
    }
}

/// Makes one, then removes those that are too many.
async fn back_up(database: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let to = folder.join(format!("{}{}.db", prefix(database), Timestamp::now().strftime("%Y%m%dT%H%M%SZ")));
    backup(database, &to).await?;
    // Where the clock was set back, the newest is not the last by name.
    let mut others = backups(database, folder)?;
    others.retain(|backup| *backup != to);
    for old in &others[..others.len().saturating_sub(KEPT - 1)] {
        fs::remove_file(old).with_context(|| format!("removing {}", old.display()))?;
    }
    Ok(to)
}

/// How names of backups of this database begin.
fn prefix(database: &Path) -> String {
    format!("{}-", database.file_stem().unwrap_or_default().display())
}

/// The backups of this database in a folder, oldest first. Other files there are nobody's business.
fn backups(database: &Path, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let prefix = prefix(database);
    let is_backup = |name: &str| {
        let time = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix("Z.db"));
        time.is_some_and(|time| time.len() == 15 && time.chars().all(|c| c.is_ascii_digit() || c == 'T'))
    };
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let named = entries.iter().filter(|entry| entry.file_name().to_str().is_some_and(is_backup));
    let mut backups: Vec<_> = named.map(DirEntry::path).collect();
    backups.sort_unstable();
    Ok(backups)
}
