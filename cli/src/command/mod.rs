//! The commands, one file each.

mod backup;
mod bench;
mod change;
mod coordinator;
mod doctor;
mod estimate;
mod export;
mod fleet;
mod generate;
mod join;
mod report;
mod run;
mod solutions;
mod status;
mod submit;
mod table;
mod trust;
mod verify;
mod watch;
mod worker;
mod workers;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use nqueens_model::operator::RunState;
use tracing_subscriber::filter::Targets;

use crate::build::BUILD;
use crate::console::{self, LogFormat};
use crate::variables;

/// Counts all solutions of the N-Queens problem, exactly, on one machine or on a cluster.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "nqueens",
    version = BUILD,
    long_version = doctor::long_version(),
    arg_required_else_help = true,
    max_term_width = 110,
    after_help = "Example: nqueens run 16"
)]
pub(crate) struct Arguments {
    /// Log level: error, warn, info, debug, or a filter like nqueens=debug [default: info for coordinator,
    /// worker and fleet, otherwise warn]
    #[arg(long, global = true, display_order = 100, value_name = "LEVEL", value_parser = console::log_filter)]
    log: Option<Targets>,

    /// Format of log lines
    #[arg(long, global = true, display_order = 100, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    command: Command,
}

/// The log of commands that end with a result or an error. What a worker within such a command has to say, its coordinator
/// says too, or the command's error does.
const QUIET: &str = "warn,nqueens_worker=error";

impl Arguments {
    /// Sends log lines to stderr, unless they would run across a picture there.
    pub(crate) fn start_logging(&self) {
        if self.command.takes_terminal() && std::io::stderr().is_terminal() {
            return;
        }
        let default = if self.command.is_service() { "info" } else { QUIET };
        console::start_logging(self.log.as_ref(), default, self.log_format);
    }
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    Run(run::RunCommand),
    Coordinator(coordinator::CoordinatorCommand),
    Worker(worker::WorkerCommand),
    #[command(subcommand)]
    Fleet(fleet::FleetCommand),
    #[command(subcommand)]
    Join(join::JoinCommand),
    Submit(submit::SubmitCommand),
    Status(status::StatusCommand),
    Watch(watch::WatchCommand),
    /// Pauses a run: no more of its jobs are leased, and workers finish the jobs they hold
    #[command(after_help = "Example: nqueens pause 0123456789ab")]
    Pause(change::RunStateChange),
    Resume(change::ResumeCommand),
    Cancel(change::CancelCommand),
    Requeue(trust::RequeueCommand),
    Workers(workers::WorkersCommand),
    Distrust(trust::DistrustCommand),
    Export(export::ExportCommand),
    Verify(verify::VerifyCommand),
    Report(report::ReportCommand),
    Backup(backup::BackupCommand),
    Table(table::TableCommand),
    Solutions(solutions::SolutionsCommand),
    Estimate(estimate::EstimateCommand),
    Bench(bench::BenchCommand),
    Doctor(doctor::DoctorCommand),
    #[command(subcommand)]
    Generate(generate::GenerateCommand),
}

impl Command {
    /// Whether it serves others, and its log is what there is to see of it.
    fn is_service(&self) -> bool {
        match self {
            Self::Coordinator(_) | Self::Worker(_) => true,
            Self::Fleet(fleet) => fleet.is_service(),
            _ => false,
        }
    }

    /// Whether it draws all over the terminal.
    fn takes_terminal(&self) -> bool {
        matches!(self, Self::Watch(watch) if watch.takes_terminal())
    }
}

/// All commands with their options, each with its variable.
fn commands() -> clap::Command {
    variables::with_variables(Arguments::command(), &[])
}

/// Reads the arguments of this process. Ends it where they are wrong (exit code 2) or ask for help.
pub(crate) fn parse() -> Arguments {
    variables::parse(Arguments::command())
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        // These have exit codes of their own.
        Command::Run(run) => return run.execute(),
        Command::Coordinator(coordinator) => return coordinator.execute(),
        Command::Worker(worker) => return worker.execute(),
        Command::Fleet(fleet) => return fleet.execute(),
        Command::Submit(submit) => return submit.execute(),
        Command::Watch(watch) => return watch.execute(),
        Command::Cancel(cancel) => return cancel.execute(),
        Command::Requeue(requeue) => return requeue.execute(),
        Command::Verify(verify) => return verify.execute(),
        Command::Report(report) => return report.execute(),
        Command::Estimate(estimate) => return estimate.execute(),
        Command::Doctor(doctor) => return doctor.execute(),
        Command::Join(join::JoinCommand::Create(create)) => create.execute(),
        Command::Status(status) => status.execute(),
        Command::Pause(run) => run.to(RunState::Paused, false),
        Command::Resume(resume) => resume.execute(),
        Command::Workers(workers) => workers.execute(),
        Command::Distrust(distrust) => distrust.execute(),
        Command::Export(export) => export.execute(),
        Command::Backup(backup) => backup.execute(),
        Command::Table(table) => table.execute(),
        Command::Solutions(solutions) => solutions.execute(),
        Command::Bench(bench) => bench.execute(),
        Command::Generate(generate) => generate.execute(commands()),
    }?;
    Ok(ExitCode::SUCCESS)
}
