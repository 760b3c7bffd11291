//! `nqueens fleet slurm` and `fleet command`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use nqueens_fleet::backend::command::{CommandBackend, Templates};
use nqueens_fleet::backend::slurm::Slurm;
use nqueens_fleet::decide::{target, wanted};
use nqueens_fleet::folder::FleetFolder;
use nqueens_fleet::settings::{BatchSystem, FleetSettings};
use nqueens_fleet::state::{Demand, FleetState};

use super::FleetDir;
use super::demand::ask;
use super::lead::{Leader, lead};
use crate::choices::threads;
use crate::exit::misuse;
use crate::output::print_line;
use crate::runtime::block_on;
use crate::target::Contact;
use crate::time::duration;

/// What each fleet is started with.
#[derive(Clone, Debug, Args)]
struct FleetOptions {
    /// Most allocations at once, queued ones included
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    workers_max: u64,

    /// Allocations that are queued; doubles while they start at once
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000), default_value_t = 2)]
    backlog: u64,

    /// A worker ends after this time without work; longer ones keep the fleet warm
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    idle_timeout: Duration,

    /// Time limit of an allocation, such as 2h; its worker takes only jobs that it expects to finish
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    time_limit: Option<Duration>,

    /// Time for running jobs to finish when a worker is told to go
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400), default_value_t = 10)]
    drain_seconds: u64,

    /// Time between two looks at the coordinator, and at the batch system while something changes; else that is every 30
    /// seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600), default_value_t = 5)]
    interval: u64,

    /// The workers' file with address, certificate and token, made by 'nqueens join create'
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
/// all nodes share. A worker has as many threads as its allocation has processors.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet slurm --join cluster.join --workers-max 50 -- -p short -c 16")]
pub(super) struct SlurmCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    /// Options of sbatch
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Starts and keeps workers by way of any batch system that three shell commands can drive.
///
/// They find what they need in variables: SCRIPT (the file to run), NAME (of the jobs), IDS (separated by blanks). docs/fleet.md
/// has them for Grid Engine, PBS, LSF, `HTCondor`, and for processes of one machine.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: nqueens fleet command --join cluster.join --workers-max 50 --submit 'qsub -terse -N $NAME -pe smp 16 $SCRIPT' --list 'qstat -u $USER | grep $NAME | awk \"{print \\$1, \\$5}\"' --cancel 'qdel $IDS'"
)]
pub(super) struct CommandCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    /// Submits a job NAME that runs SCRIPT; its id is the first word of the last line that this prints
    #[arg(long, value_name = "SHELL")]
    submit: String,

    /// Prints a line for each job NAME: id, state, and perhaps node
    #[arg(long, value_name = "SHELL")]
    list: String,

    /// Cancels the jobs IDS
    #[arg(long, value_name = "SHELL")]
    cancel: String,

    /// Threads of a worker [default: as many as the batch system gives it]
    #[arg(long, value_parser = threads, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
}

impl SlurmCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let threads = Slurm::threads(&self.options).unwrap_or(1);
        // The worker knows the end of its job.
        let own = ["--time-limit".to_owned(), "auto".to_owned()];
        self.fleet.start(BatchSystem::Slurm(self.options), threads, &own)
    }
}

impl CommandCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let Self { fleet, submit, list, cancel, threads } = self;
        let mut own = Vec::new();
        if let Some(limit) = fleet.time_limit {
            own.extend(["--time-limit".to_owned(), format!("{}s", limit.as_secs().max(1))]);
        }
        if let Some(threads) = threads {
            own.extend(["--threads".to_owned(), threads.to_string()]);
        }
        let threads = threads.map_or(1, |threads| threads.get() as u64);
        fleet.start(BatchSystem::Command(Templates { submit, list, cancel }), threads, &own)
    }
}

impl FleetOptions {
    fn settings(&self, system: BatchSystem, threads: u64, own: &[String]) -> anyhow::Result<FleetSettings> {
        let join =
            self.join.canonicalize().with_context(|| format!("the join file {}", self.join.display()))?;
        let program = match &self.program {
            Some(program) if program.components().count() > 1 => std::path::absolute(program)?,
            Some(name) => name.clone(),
            None => std::env::current_exe().context("the path of this program")?,
        };
        let idle = format!("{}s", self.idle_timeout.as_secs().max(1));
        let (join, drain) = (join.display().to_string(), self.drain_seconds.to_string());
        let arguments =
            ["--join", &join, "--idle-timeout", &idle, "--drain-seconds", &drain].map(str::to_owned);
        Ok(FleetSettings {
            system,
            workers_max: self.workers_max,
            backlog: self.backlog,
            threads,
            time_limit: self.time_limit.map(|limit| limit.as_secs().max(1)),
            drain_seconds: self.drain_seconds,
            interval: self.interval,
            arguments: arguments.into_iter().chain(own.iter().cloned()).collect(),
            program,
        })
    }

    fn start(&self, system: BatchSystem, threads: u64, own: &[String]) -> anyhow::Result<ExitCode> {
        let settings = self.settings(system, threads, own)?;
        if self.dry_run {
            let demand = block_on(async { ask(&mut self.contact.client()?).await });
            return self.describe(&settings, demand);
        }
        let folder = FleetFolder::create(&self.dir.dir)?;
        let backend = settings.backend(folder.path().to_owned()).unwrap_or_else(|error| misuse(error).exit());
        let held = folder.lead()?;
        settings.worker(folder.path().to_owned()).write().context("writing the script of the workers")?;
        folder.begin(settings.clone())?;
        lead(Leader::new(folder, backend, &settings, held), Some(&self.contact))
    }

    /// Prints what the fleet would do, and has Slurm check its options.
    fn describe(&self, settings: &FleetSettings, demand: anyhow::Result<Demand>) -> anyhow::Result<ExitCode> {
        let folder = std::path::absolute(&self.dir.dir)?;
        let (limits, state) = (settings.limits(), FleetState::default());
        let count = match &demand {
            Ok(demand) => {
                let useful = target(&state, &limits, *demand);
                let count = wanted(0, &state, &limits, *demand);
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
        match &settings.system {
            BatchSystem::Slurm(options) => {
                let slurm = settings.slurm(folder, options).unwrap_or_else(|error| misuse(error).exit());
                print_line(slurm.describe(u32::try_from(count.max(1))?))?;
                slurm.test().context("Slurm would refuse this")?;
            }
            BatchSystem::Command(templates) => {
                print_line(CommandBackend::new(settings.worker(folder), templates.clone()).describe())?;
            }
        }
        Ok(if demand.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
