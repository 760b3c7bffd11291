//! `nqueens doctor`: what this machine offers and whether all is well; and what `--version` tells.

use std::fmt::Display;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use nqueens_coordinator::Reader;
use nqueens_coordinator::progress::RunProgress;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::PlanKind;
use nqueens_worker::prove;

use crate::command::choices::default_threads;
use crate::command::counting;
use crate::output::{block_on, print_line, thousands};

/// The program's version and the source that it was built from.
pub(crate) const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NQUEENS_REVISION"), ")");

/// The version, what the program was built for, and what it makes of this machine.
pub(crate) fn long_version() -> String {
    let target = env!("NQUEENS_TARGET");
    let (found, choice) = (instruction_sets(), kernel_choice());
    format!("{BUILD}\ntarget: {target}\ninstruction sets: {found}\nfastest kernel: {choice}")
}

/// Shows what this machine offers, and whether the kernels and a database are well.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens doctor --db nqueens-16.db")]
pub(crate) struct Doctor {
    /// A database to look into; it is only read
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
}

impl Doctor {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        say("program", format_args!("nqueens {BUILD}, {}", env!("NQUEENS_TARGET")))?;
        let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
        say("processor", format_args!("{model}, {} threads", default_threads()))?;
        let memory = field("/proc/meminfo", "MemTotal").and_then(|size| gibibytes(size.strip_suffix(" kB")?));
        say("memory", memory.as_deref().unwrap_or("unknown"))?;
        say("instructions", instruction_sets())?;
        say("fastest kernel", kernel_choice())?;
        let kernels_are_well = look_at_kernels()?;
        let database_is_well = self.db.as_deref().map_or(Ok(true), look_at_database)?;
        Ok(if kernels_are_well && database_is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn say(what: &str, how: impl Display) -> std::io::Result<()> {
    print_line(format_args!("{what:<18}{how}"))
}

/// Proves every kernel on small boards and measures it on one large enough; false if one failed.
fn look_at_kernels() -> anyhow::Result<bool> {
    let n = BoardSize::new(14)?;
    let mut well = true;
    for kernel in Kernel::ALL.into_iter().rev() {
        let heading = format!("kernel {kernel}");
        if !kernel.is_available() {
            say(&heading, format_args!("this machine lacks {}", kernel.lacks().join(", ")))?;
            continue;
        }
        match prove(kernel) {
            Ok(_) => {
                let count = counting::count(n, PlanKind::Border, kernel, NonZeroUsize::MIN, 0)?;
                count.check(n)?;
                let speed = count.states_per_s() / 1e6;
                say(&heading, format_args!("proved; {speed:.0} million states a second on one thread"))?;
            }
            Err(reason) => {
                well = false;
                say(&heading, format_args!("FAILED: {reason}"))?;
            }
        }
    }
    Ok(well)
}

/// Opens a database and reads its runs; false if it can't be.
fn look_at_database(path: &Path) -> anyhow::Result<bool> {
    let read = async {
        let reader = Reader::open(path).await?;
        let mut runs = Vec::new();
        for run in reader.runs().await? {
            runs.push(reader.progress(&run).await?);
        }
        Ok(runs)
    };
    let runs: Vec<RunProgress> = match block_on(read) {
        Ok(runs) => runs,
        Err(error) => {
            say("database", format_args!("FAILED: {error:#}"))?;
            return Ok(false);
        }
    };
    say("database", format_args!("{}: well, {} run(s)", path.display(), runs.len()))?;
    for run in &runs {
        let (state, share) = (run.state.name(), 100.0 * run.share_done());
        say("", format_args!("run {}: N = {}, {state}, {share:.1} % done", run.id, run.n))?;
    }
    let quarantined: u32 = runs.iter().map(|run| run.sums.quarantined).sum();
    if quarantined > 0 {
        say("", format_args!("{} job(s) in quarantine; their runs have no total", thousands(quarantined)))?;
    }
    Ok(quarantined == 0)
}

/// The value of the first line `name: value` of a file in /proc.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

fn gibibytes(kibibytes: &str) -> Option<String> {
    let kibibytes: f64 = kibibytes.parse().ok()?;
    Some(format!("{:.1} GiB", kibibytes / f64::from(1 << 20)))
}

/// The instruction sets that kernels are compiled for and this processor has.
fn instruction_sets() -> String {
    let mut found = Vec::new();
    for kernel in Kernel::ALL {
        let lacks = kernel.lacks();
        found.extend(kernel.needs().iter().copied().filter(|feature| !lacks.contains(feature)));
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() { "none that a kernel uses".to_owned() } else { found.join(" ") }
}

/// The kernel that counts if none is asked for, and why it is this one.
fn kernel_choice() -> String {
    let best = Kernel::best();
    let reason = match best.needs() {
        [] => "any machine runs it".to_owned(),
        needs => format!("this machine has {}", needs.join(", ")),
    };
    let faster = Kernel::ALL.into_iter().filter(|&kernel| kernel > best);
    let lacking = faster.map(|kernel| format!("; {kernel} lacks {}", kernel.lacks().join(", ")));
    format!("{best}: {reason}{}", lacking.collect::<String>())
}
