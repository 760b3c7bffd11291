//! `nqueens fleet slurm` and `fleet command`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use nqueens_fleet::backend::{CommandBackend, Templates};
use nqueens_fleet::decide::{FleetLimits, wanted};
use nqueens_fleet::folder::{FleetFolder, FleetSettings};
use nqueens_fleet::script::WorkerScript;
use nqueens_fleet::state::{Demand, FleetState};

use super::FleetDir;
use super::lead::{demand, lead};
use crate::engine_options::device_choice;
use crate::output::print_line;
use crate::runtime::block_on;
use crate::target::Contact;
use crate::time::duration;

/// What each fleet is started with.
#[derive(Clone, Debug, Args)]
struct FleetOptions {
    #[command(flatten)]
    limits: FleetLimits,

    /// A worker ends after this time without work; longer ones keep the fleet warm
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    idle_timeout: Duration,

    /// Time limit of an allocation, such as 2h; its worker takes only jobs that it expects to finish
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    time_limit: Option<Duration>,

    /// Time for running jobs to finish when a worker is told to go
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400), default_value_t = 10)]
    drain_seconds: u64,

    /// OpenCL devices that count beside the threads of each worker, as 'nqueens worker --device' has them
    #[arg(long, value_name = "auto|all|LIST", value_parser = device_choice)]
    device: Option<String>,

    /// The workers' file with address, certificate and token, made by 'nqueens join create'
    #[arg(long, value_name = "FILE")]
    join: PathBuf,

    /// The program nqueens on the nodes [default: this one]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Submit beside another fleet of this coordinator; each fills its own --workers-max
    #[arg(long)]
    also: bool,

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
pub(crate) struct SlurmCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    /// Options of sbatch
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

/// Starts and keeps workers by way of any batch system that three shell commands can drive.
///
/// They find what they need in variables: SCRIPT (the file to run), NAME (of the jobs), IDS (separated by blanks), LAST (if
/// --submit has $LAST, it submits an array from 0 to LAST: jobs `1234_0` and so on). docs/fleet.md has them for Grid Engine, PBS, LSF
/// and `HTCondor`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Example: nqueens fleet command --join cluster.join --workers-max 50 --submit 'qsub -terse -N $NAME -pe smp 16 $SCRIPT' --list 'qstat -u $USER | grep $NAME | awk \"{print \\$1, \\$5}\"' --cancel 'qdel $IDS'"
)]
pub(crate) struct CommandCommand {
    #[command(flatten)]
    fleet: FleetOptions,

    #[command(flatten)]
    templates: Templates,
}

impl SlurmCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let templates = Templates::slurm(self.fleet.time_limit, &self.options);
        // The worker knows the end of its job.
        self.fleet.start(templates, Some("auto".to_owned()))
    }
}

impl CommandCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let limit = self.fleet.time_limit.map(|limit| format!("{}s", limit.as_secs().max(1)));
        self.fleet.start(self.templates, limit)
    }
}

/// Where a folder is, or will be: its path without links.
fn real(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(folder)?;
    let there = |above: &Path| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?));
    let (above, below) = path.ancestors().find_map(there).context("the root is there")?;
    Ok(above.components().chain(below.components()).collect())
}

impl FleetOptions {
    /// The script of the workers of a fleet in this folder.
    fn worker(&self, folder: PathBuf, time_limit: Option<String>) -> anyhow::Result<WorkerScript> {
        let join =
            self.join.canonicalize().with_context(|| format!("the join file {}", self.join.display()))?;
        let program = match &self.program {
            Some(program) if program.components().count() > 1 => std::path::absolute(program)?,
            Some(name) => name.clone(),
            None => std::env::current_exe().context("the path of this program")?,
        };
        let arguments = [
            ("--join", Some(join.display().to_string())),
            ("--idle-timeout", Some(format!("{}s", self.idle_timeout.as_secs().max(1)))),
            ("--drain-seconds", Some(self.drain_seconds.to_string())),
            ("--time-limit", time_limit),
            ("--device", self.device.clone()),
            ("--threads", self.limits.threads.map(|threads| threads.to_string())),
        ];
        let arguments = arguments.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
        Ok(WorkerScript { program, folder, arguments: arguments.flatten().collect() })
    }

    fn start(&self, templates: Templates, time_limit: Option<String>) -> anyhow::Result<ExitCode> {
        let worker = self.worker(real(&self.dir.dir)?, time_limit)?;
        let mut backend = CommandBackend { worker, templates };
        if self.dry_run {
            let demand = block_on(async { demand(&mut self.contact.client()?).await })?;
            let Demand { open, threads, .. } = demand;
            let count = wanted(0, &FleetState::default(), &self.limits, demand);
            print_line(format_args!(
                "{open} threads have something to count, {threads} count: {count} allocations would be submitted first"
            ))?;
            print_line(backend.describe(count.max(1)))?;
            return Ok(ExitCode::SUCCESS);
        }
        let folder = FleetFolder::create(&self.dir.dir)?;
        let Some(_lock) = folder.lead()? else {
            bail!("another process leads the fleet in {}", folder.0.display());
        };
        folder.0.clone_into(&mut backend.worker.folder);
        let settings = FleetSettings { limits: self.limits, backend };
        folder.begin(&settings)?;
        lead(&folder, settings, Some((&self.contact, self.also)))
    }
}
