//! `nqueens fleet slurm`, `fleet pbs` and `fleet local`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nqueens_fleet::backend::slurm::Slurm;
use nqueens_fleet::decide::target;
use nqueens_fleet::folder::FleetFolder;
use nqueens_fleet::state::{Demand, FleetState};

use super::demand::ask;
use super::lead::{Leader, lead};
use super::settings::{BatchSystem, FleetSettings};
use super::{FleetDir, now};
use crate::command::choices::threads;
use crate::command::target::Contact;
use crate::exit::misuse;
use crate::machine::default_threads;
use crate::output::print_line;
use crate::runtime::block_on;
use crate::time::duration;

/// What each fleet is started with.
#[derive(Clone, Debug, Args)]
struct FleetOptions {
    /// Most allocations at once, queued ones included
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    workers_max: u64,

    /// Most allocations that are queued
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000), default_value_t = 2)]
    backlog: u64,

    /// A worker ends after this time without work
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    idle_timeout: Duration,

    /// Time limit of an allocation, such as 2h; its worker takes only jobs that it expects to finish
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    time_limit: Option<Duration>,

    /// Time for running jobs to finish when a worker is told to go
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400), default_value_t = 10)]
    drain_seconds: u64,

    /// Time between two looks at the coordinator and the batch system
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600), default_value_t = 5)]
    interval: u64,

    /// The workers' file with address, authority and credential, made by 'nqueens join create'
    #[arg(long, value_name = "FILE")]
    join: PathBuf,

    /// The program nqueens on the nodes [default: this one]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Print what would be submitted and why, and submit nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    dir: FleetDir,

    #[command(flatten)]
    contact: Contact,
}

/// Starts and keeps workers by way of Slurm.
///
/// Needs sbatch, squeue and scancel on this machine, and the program, the join file and the fleet's folder on storage that
/// all nodes share. A worker has as many threads as its allocation has processors (--cpus-per-task).
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet slurm --join cluster.join --workers-max 50 -- -p short -c 16")]
pub(super) struct SlurmCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    /// Name of the jobs
    #[arg(long, value_name = "NAME", value_parser = job_name, default_value = "nqueens-fleet")]
    name: String,

    /// Options of sbatch
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Starts and keeps workers by way of PBS Professional (`OpenPBS`).
///
/// Needs qsub, qselect, qstat, qsig and qdel on this machine, and the program, the join file and the fleet's folder on storage
/// that all nodes share.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: nqueens fleet pbs --join cluster.join --workers-max 50 --threads 16 -- -q short"
)]
pub(super) struct PbsCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    /// Name of the jobs
    #[arg(long, value_name = "NAME", value_parser = job_name, default_value = "nqueens-fleet")]
    name: String,

    /// Threads of a worker: the processors that the options of qsub ask for
    #[arg(long, value_parser = threads, value_name = "COUNT")]
    threads: NonZeroUsize,

    /// Options of qsub
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Starts and keeps workers on this machine, as processes that go on when the command ends.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet local --workers-max 2 --threads 4 --join cluster.join")]
pub(super) struct LocalCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    /// Threads of a worker
    #[arg(long, value_parser = threads, default_value_t = default_threads(), value_name = "COUNT")]
    threads: NonZeroUsize,
}

/// Reads a name for jobs: it is part of lists that batch systems take apart at commas.
fn job_name(text: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let is_name =
        (1..=15).contains(&text.len()) && text.starts_with(char::is_alphabetic) && text.chars().all(is_good);
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| "a name of jobs is a letter and up to 14 letters, digits, '-', '_' and '.'".to_owned())
}

impl SlurmCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let threads = Slurm::threads(&self.options).unwrap_or(1);
        // The worker knows the processors and the end of its job.
        let own = ["--time-limit".to_owned(), "auto".to_owned()];
        let settings = self.fleet.settings(BatchSystem::Slurm, &self.name, threads, self.options, &own)?;
        self.fleet.start(settings)
    }
}

impl PbsCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let threads = self.threads.get();
        let own = self.fleet.own_arguments(threads);
        let settings =
            self.fleet.settings(BatchSystem::Pbs, &self.name, threads as u64, self.options, &own)?;
        self.fleet.start(settings)
    }
}

impl LocalCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let threads = self.threads.get();
        let mut own = self.fleet.own_arguments(threads);
        own.extend(["--node-workers".to_owned(), self.fleet.workers_max.to_string()]);
        let settings = self.fleet.settings(BatchSystem::Local, "local", threads as u64, Vec::new(), &own)?;
        self.fleet.start(settings)
    }
}

impl FleetOptions {
    /// Arguments of a worker whose surroundings tell it nothing.
    fn own_arguments(&self, threads: usize) -> Vec<String> {
        let mut own = vec!["--threads".to_owned(), threads.to_string()];
        if let Some(limit) = self.time_limit {
            own.extend(["--time-limit".to_owned(), format!("{}s", limit.as_secs())]);
        }
        own
    }

    fn settings(
        &self,
        system: BatchSystem,
        name: &str,
        threads: u64,
        options: Vec<String>,
        own: &[String],
    ) -> anyhow::Result<FleetSettings> {
        let join =
            self.join.canonicalize().with_context(|| format!("the join file {}", self.join.display()))?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("the path of this program")?,
        };
        let idle_s = self.idle_timeout.as_secs().max(1);
        let mut arguments = vec!["--join".to_owned(), join.display().to_string()];
        arguments.extend(["--idle-timeout".to_owned(), format!("{idle_s}s")]);
        arguments.extend(["--drain-seconds".to_owned(), self.drain_seconds.to_string()]);
        arguments.extend_from_slice(own);
        Ok(FleetSettings {
            system,
            name: name.to_owned(),
            workers_max: self.workers_max,
            backlog: self.backlog,
            threads,
            time_limit: self.time_limit.map(|limit| limit.as_secs().max(1)),
            drain_seconds: self.drain_seconds,
            program,
            arguments,
            options,
        })
    }

    fn start(&self, settings: FleetSettings) -> anyhow::Result<ExitCode> {
        if self.dry_run {
            let demand = block_on(async { ask(&mut self.contact.client()?).await });
            return self.describe(&settings, demand);
        }
        let (folder, is_new) = FleetFolder::create(&self.dir.dir)?;
        let backend = settings.backend(folder.path().to_owned()).unwrap_or_else(|error| misuse(error).exit());
        let held = folder.lead()?;
        folder.begin(settings.clone(), is_new, now())?;
        let interval = Duration::from_secs(self.interval);
        let leader = Leader { folder, backend, limits: settings.limits(), interval, _held: held };
        lead(leader, Some(&self.contact))
    }

    /// Prints what the fleet would do, and has the batch system check its options where it can.
    fn describe(&self, settings: &FleetSettings, demand: anyhow::Result<Demand>) -> anyhow::Result<ExitCode> {
        let folder = std::path::absolute(&self.dir.dir)?;
        let limits = settings.limits();
        let count = match &demand {
            Ok(demand) => {
                let useful = target(&FleetState::default(), &limits, *demand);
                let count = useful.min(limits.workers_max).min(limits.backlog);
                print_line(format_args!(
                    "{} threads have something to count, {} threads count: {useful} allocations of {} threads are useful, \
                     {count} would be submitted first",
                    demand.open, demand.threads, limits.threads,
                ))?;
                count
            }
            Err(error) => {
                print_line(format_args!("nothing would be submitted now: {error:#}"))?;
                1
            }
        };
        let count = u32::try_from(count.max(1)).unwrap_or(1);
        match settings.system {
            BatchSystem::Slurm => {
                let slurm = settings.slurm(folder).unwrap_or_else(|error| misuse(error).exit());
                print_line(slurm.describe(count))?;
                slurm.test().context("Slurm would refuse this")?;
            }
            BatchSystem::Pbs => {
                let pbs = settings.pbs(folder).unwrap_or_else(|error| misuse(error).exit());
                print_line(pbs.describe())?;
            }
            BatchSystem::Local => {
                let mut words = vec!["worker".to_owned()];
                words.extend(settings.arguments.iter().cloned());
                print_line(nqueens_fleet::script::command_line(&settings.program.to_string_lossy(), &words))?;
            }
        }
        Ok(if demand.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
