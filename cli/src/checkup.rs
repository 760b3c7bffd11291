//! Checks of a coordinator and a database, for `nqueens doctor`.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bytesize::ByteSize;
use nqueens_coordinator::Reader;
use nqueens_model::operator::{CoordinatorStatus, DiskRoom, RunStatus};
use nqueens_proto::PROTOCOL_VERSION;
use tokio::time::timeout;

use crate::build::BUILD;
use crate::output::{counted, percent, print_line};
use crate::runtime::block_on;
use crate::target::{Login, all_runs, read};

/// A health check has its answer within this time.
const READY_WITHIN: Duration = Duration::from_secs(5);

/// Prints one finding, under its heading.
pub(super) fn say(what: &str, how: impl Display) -> io::Result<()> {
    print_line(format_args!("{what:<18}{how}"))
}

/// Asks a coordinator for all that an operator may know; false if it does not answer, or is not well.
pub(super) fn coordinator(url: &str, login: &Login) -> anyhow::Result<bool> {
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

/// How much room there is, and what follows from it.
pub(super) fn describe_disk(disk: &DiskRoom) -> String {
    let [free, reserve] = [disk.free_bytes, disk.reserve_bytes].map(ByteSize);
    if disk.is_short {
        format!(
            "no jobs are leased: the coordinator's disk has {free} free, less than the reserve of {reserve}; free some space"
        )
    } else {
        format!("its disk has {free} free; the reserve is {reserve}")
    }
}

/// Fails unless a coordinator says in time that it is ready.
pub(super) async fn ready(url: &str, login: &Login) -> anyhow::Result<()> {
    let mut client = login.client(url, None)?;
    timeout(READY_WITHIN, client.ready()).await.with_context(|| format!("no answer from {url}"))?
}

/// Examines a database and reads its runs; false if it can't be, or is not well.
pub(super) fn database(path: &Path) -> anyhow::Result<bool> {
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
