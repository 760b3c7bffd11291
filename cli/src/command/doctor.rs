//! `nqueens doctor`: what this machine supports and whether it works; and the text of `--version`.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use bytesize::ByteSize;
use clap::Args;
use nqueens_coordinator::Reader;
use nqueens_gpu::Found;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::PlanKind;
use nqueens_model::numbers;
use nqueens_model::operator::{CoordinatorStatus, RunStatus};
use nqueens_proto::{PLANS, PROTOCOL_VERSION};
use nqueens_worker::prove;
use procfs::{CpuInfo, Current};
use serde_json::json;
use tokio::time::timeout;

use super::status::describe_disk;
use crate::build::{BUILD, TARGET};
use crate::engines::{ENGINES, device_crew, opencl, try_device};
use crate::machine::{default_threads, memory_limits, thread_limits};
use crate::measuring::speed;
use crate::memory::default_memory;
use crate::output::{Json, counted, percent, print_line};
use crate::runtime::block_on;
use crate::target::{Login, all_runs, read};

/// The version, what the program was built for, and what it makes of this machine.
pub(crate) fn long_version() -> String {
    let (found, choice) = (instruction_sets(), kernel_choice());
    format!("{BUILD}\ntarget: {TARGET}\ninstruction sets: {found}\nfastest kernel: {choice}")
}

/// Shows what this machine supports, and tests the kernels, OpenCL devices and a coordinator; or tests a database.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens doctor --coordinator http://head:7327")]
pub(crate) struct DoctorCommand {
    /// Address of a coordinator to test
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,

    #[command(flatten)]
    login: Login,

    /// Only test this database file, all of its content; it is only read
    #[arg(long, value_name = "PATH", conflicts_with = "protocol")]
    db: Option<PathBuf>,

    /// Only ask whether the coordinator is ready: exit code 0 if it is, 1 if it is not. For health checks of containers:
    /// quick, and needs no token
    #[arg(long, requires = "coordinator", conflicts_with = "protocol")]
    ready: bool,

    /// Only print the version of the workers' protocol and the hash of the plans: what a worker must present
    #[arg(long)]
    protocol: bool,

    /// Finds the devices, and tests that of this number by this plan
    #[arg(long, hide = true, value_name = "N,PLAN", num_args = 0..=1, require_equals = true)]
    try_device: Option<Vec<String>>,

    /// With --protocol: print JSON
    #[arg(short, long, requires = "protocol")]
    json: bool,
}

impl DoctorCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        if let (true, Some(url)) = (self.ready, &self.coordinator) {
            block_on(ready(url, &self.login))?;
            print_line("ready")?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.protocol {
            let plans = PLANS.to_string();
            let text = format!("protocol          {PROTOCOL_VERSION}\nplans             {plans}");
            Json { json: self.json }
                .print(json!({ "protocol": PROTOCOL_VERSION, "plans": plans, "build": BUILD }), text)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(test) = &self.try_device {
            print_line(serde_json::to_string(&try_device(test.first().map(String::as_str)))?)?;
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(path) = &self.db {
            return Ok(exit_code(look_at_database(path)?));
        }
        say("program", format_args!("nqueens {BUILD}, {TARGET}"))?;
        let model = CpuInfo::current().ok().and_then(|cpus| cpus.model_name(0).map(str::to_owned));
        let model = model.unwrap_or_else(|| "unknown".to_owned());
        say("processor", format_args!("{model}, {} threads", default_threads()))?;
        for limit in thread_limits() {
            say("thread limit", format_args!("{}: {}", limit.max, limit.source))?;
        }
        for limit in memory_limits() {
            let [max, free] = [limit.max, limit.free].map(ByteSize);
            say("memory limit", format_args!("{max}, {free} free: {}", limit.source))?;
        }
        let memory = ByteSize(default_memory());
        say("--memory", format_args!("{memory} by default, half of the least that is free"))?;
        say("instructions", instruction_sets())?;
        say("fastest kernel", kernel_choice())?;
        let mut well = look_at_kernels()?;
        well &= look_at_devices()?;
        if let Some(url) = &self.coordinator {
            well &= look_at_coordinator(url, &self.login)?;
        }
        Ok(exit_code(well))
    }
}

fn exit_code(well: bool) -> ExitCode {
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints what came of a test: a speed, or why it failed; then false.
fn tell(what: &str, about: &str, tested: Result<String, String>) -> io::Result<bool> {
    match &tested {
        Ok(speed) => say(what, format_args!("{about}passed its test; {speed}"))?,
        Err(reason) => say(what, format_args!("{about}FAILED: {reason}"))?,
    }
    Ok(tested.is_ok())
}

/// Proves every kernel on small boards and measures it on a large one; false if one failed.
fn look_at_kernels() -> anyhow::Result<bool> {
    let mut well = true;
    for kernel in Kernel::ALL.into_iter().rev() {
        let heading = format!("kernel {kernel}");
        if !kernel.is_available() {
            say(&heading, format_args!("this machine lacks {}", kernel.lacks().join(", ")))?;
            continue;
        }
        let tested = match prove(ENGINES, kernel) {
            Ok(_) => Ok(format!("{} on one thread", numbers::speed(speed(kernel)?))),
            Err(reason) => Err(reason),
        };
        well &= tell(&heading, "", tested)?;
    }
    Ok(well)
}

/// Proves every device and measures it; false if one failed. None is no failure.
fn look_at_devices() -> anyhow::Result<bool> {
    let Found { devices, failed } = match opencl() {
        Ok(found) => found,
        Err(reason) => {
            say("OpenCL", reason)?;
            return Ok(true);
        }
    };
    for driver in failed {
        say("OpenCL", driver)?;
    }
    let mut well = true;
    for (number, &device) in devices.iter().enumerate() {
        let (name, driver, units) = (device.name(), device.driver(), device.compute_units());
        let about =
            format!("{name}, driver {driver}, {units} compute units, {}; ", ByteSize(device.memory()));
        let tested =
            device_crew(number, device, PlanKind::Border).map(|crew| numbers::speed(crew.states_per_s));
        well &= tell(&format!("device {number}"), &about, tested)?;
    }
    Ok(well)
}

/// A health check has its answer within this time.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Prints one finding, under its heading.
fn say(what: &str, how: impl Display) -> io::Result<()> {
    print_line(format_args!("{what:<18}{how}"))
}

/// Asks a coordinator for all that an operator may know; false if it does not answer, or is not well.
fn look_at_coordinator(url: &str, login: &Login) -> anyhow::Result<bool> {
    let asked = block_on(async {
        let token = login.token()?;
        let shown = if token.is_some() { "accepts the" } else { "requires no" };
        let mut client = login.client(url, token)?;
        let coordinator = client.coordinator().await?;
        Ok((shown, coordinator, client.runs().await?, client.workers().await?.len()))
    });
    let (shown, coordinator, runs, workers) = match asked {
        Ok(told) => told,
        Err(error) => {
            say("coordinator", format_args!("FAILED: {error:#}"))?;
            return Ok(false);
        }
    };
    let CoordinatorStatus { build, protocol_version: protocol, disk } = coordinator;
    say("coordinator", format_args!("{url}: answers, nqueens {build}, protocol {protocol}"))?;
    let understood = protocol == PROTOCOL_VERSION;
    if !understood {
        let advice = "install the same version of nqueens on both sides";
        say("", format_args!("FAILED: this program's workers use protocol {PROTOCOL_VERSION}; {advice}"))?;
    } else if build != BUILD {
        say("", "it is a different build from this program")?;
    }
    say("", format_args!("it {shown} operator token"))?;
    let (known, seen) = (counted(runs.len(), "run"), counted(workers, "worker"));
    say("", format_args!("{known}, {seen} seen since it started"))?;
    let is_short = disk.is_some_and(|disk| disk.is_short);
    if let Some(disk) = disk {
        let failed = if is_short { "FAILED: " } else { "" };
        say("", format_args!("{failed}{}", describe_disk(&disk)))?;
    }
    Ok(look_at_runs(&runs)? && understood && !is_short)
}

/// Fails unless a coordinator says in time that it is ready.
async fn ready(url: &str, login: &Login) -> anyhow::Result<()> {
    let mut client = login.client(url, None)?;
    timeout(READY_WITHIN, client.ready()).await.with_context(|| format!("no answer from {url}"))?
}

/// Examines a database and reads its runs; false if it can't be, or is not well.
fn look_at_database(path: &Path) -> anyhow::Result<bool> {
    let examine = async |reader: &Reader| {
        reader.examine().await?;
        all_runs(reader).await
    };
    let runs = match block_on(read(path, examine)) {
        Ok(runs) => runs,
        Err(error) => {
            say("database", format_args!("FAILED: {error:#}"))?;
            return Ok(false);
        }
    };
    let (file, known) = (path.display(), counted(runs.len(), "run"));
    say("database", format_args!("{file}: the file and its ledger are consistent; {known}"))?;
    look_at_runs(&runs)
}

/// False if a run has jobs in quarantine.
fn look_at_runs(runs: &[RunStatus]) -> anyhow::Result<bool> {
    for RunStatus { progress: run, .. } in runs {
        let (state, share) = (run.state.name(), percent(run.share_done));
        say("", format_args!("run {}: N = {}, {state}, {share} done", run.run, run.plan.n()))?;
    }
    let quarantined: u32 = runs.iter().map(|run| run.progress.quarantined).sum();
    if quarantined > 0 {
        say("", format_args!("{} in quarantine; their runs have no total", counted(quarantined, "job")))?;
    }
    Ok(quarantined == 0)
}

/// The instruction sets that kernels are compiled for and this processor has.
fn instruction_sets() -> String {
    let has = |kernel: &Kernel| {
        let lacks = kernel.lacks();
        kernel.needs().iter().copied().filter(move |feature| !lacks.contains(feature))
    };
    let found: BTreeSet<_> = Kernel::ALL.iter().flat_map(has).collect();
    if found.is_empty() {
        "none that a kernel uses".to_owned()
    } else {
        found.into_iter().collect::<Vec<_>>().join(" ")
    }
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
