//! Whether a coordinator and a database are well, for `nqueens doctor`.

use std::fmt::Display;
use std::io;
use std::path::Path;

use bytesize::ByteSize;
use nqueens_coordinator::{Error, Reader};
use nqueens_model::operator::Progress;
use nqueens_proto::{PROTOCOL_VERSION, v1};

use crate::build::BUILD;
use crate::client::{Client, TOKEN_VARIABLE};
use crate::output::{print_line, thousands};
use crate::runtime::block_on;
use crate::tls::CallerTls;
use crate::token;

/// Prints one finding, under its heading.
pub(super) fn say(what: &str, how: impl Display) -> io::Result<()> {
    print_line(format_args!("{what:<18}{how}"))
}

/// What a coordinator told.
struct Told {
    coordinator: v1::GetCoordinatorResponse,
    /// What it made of the token or certificate that went with the calls.
    shown: &'static str,
    runs: Vec<Progress>,
    workers: usize,
}

/// Asks a coordinator for all that an operator may know; false if it does not answer, or is not well.
pub(super) fn coordinator(url: &str, token_file: Option<&Path>, tls: &CallerTls) -> anyhow::Result<bool> {
    let told = match block_on(ask(url, token_file, tls)) {
        Ok(told) => told,
        Err(error) => {
            say("coordinator", format_args!("FAILED: {error:#}"))?;
            return Ok(false);
        }
    };
    let Told { coordinator, shown, runs, workers } = told;
    let v1::GetCoordinatorResponse { build, protocol_version: protocol, disk } = coordinator;
    say("coordinator", format_args!("{url}: answers, nqueens {build}, protocol {protocol}"))?;
    let understood = protocol == PROTOCOL_VERSION;
    if !understood {
        say(
            "",
            format_args!(
                "FAILED: workers of this program speak protocol {PROTOCOL_VERSION}; install the same version of \
                 nqueens on both sides"
            ),
        )?;
    } else if build != BUILD {
        say("", "it is another build than this program")?;
    }
    say("", shown)?;
    say("", format_args!("{} run(s), {workers} worker(s) heard of since it started", runs.len()))?;
    let is_short = disk.is_some_and(|disk| disk.is_short);
    if let Some(disk) = disk {
        let failed = if is_short { "FAILED: " } else { "" };
        say("", format_args!("{failed}{}", describe_disk(&disk)))?;
    }
    Ok(look_at_runs(&runs)? && understood && !is_short)
}

/// How much room there is, and what follows from it.
pub(super) fn describe_disk(disk: &v1::DiskRoom) -> String {
    let [free, reserve] = [disk.free_bytes, disk.reserve_bytes].map(ByteSize);
    if disk.is_short {
        format!(
            "no jobs are handed out: the coordinator's disk has {free} left, {reserve} are to stay free; make room"
        )
    } else {
        format!("its disk has {free} left, of which {reserve} are to stay free")
    }
}

async fn ask(url: &str, token_file: Option<&Path>, tls: &CallerTls) -> anyhow::Result<Told> {
    let token = token::read(token_file, TOKEN_VARIABLE)?;
    let shown = match token {
        _ if tls.shows_certificate() => "it takes the operator's certificate",
        Some(_) => "it takes the operator's token",
        None => "it asks operators for no token",
    };
    let mut client = Client::new(url, token, tls.read()?.as_ref());
    let coordinator = client.coordinator().await?;
    let runs = client.runs().await?.into_iter().map(|run| run.progress).collect();
    let workers = client.workers().await?.len();
    Ok(Told { coordinator, shown, runs, workers })
}

/// Examines a database and reads its runs; false if it can't be, or is not well.
pub(super) fn database(path: &Path) -> anyhow::Result<bool> {
    let read = async {
        let reader = Reader::open(path).await?;
        let runs = examine(&reader).await;
        reader.close().await;
        Ok(runs?)
    };
    let runs = match block_on(read) {
        Ok(runs) => runs,
        Err(error) => {
            say("database", format_args!("FAILED: {error:#}"))?;
            return Ok(false);
        }
    };
    say(
        "database",
        format_args!("{}: sound, and its ledger holds together; {} run(s)", path.display(), runs.len()),
    )?;
    look_at_runs(&runs)
}

async fn examine(reader: &Reader) -> Result<Vec<Progress>, Error> {
    reader.examine().await?;
    let mut runs = Vec::new();
    for run in reader.runs().await? {
        runs.push(Progress::from(&reader.progress(&run).await?));
    }
    Ok(runs)
}

/// False if somebody has to look at one of them.
fn look_at_runs(runs: &[Progress]) -> anyhow::Result<bool> {
    for run in runs {
        let (state, share) = (run.state.name(), 100.0 * run.share_done);
        say("", format_args!("run {}: N = {}, {state}, {share:.1} % done", run.run, run.n))?;
    }
    let quarantined: u32 = runs.iter().map(|run| run.quarantined).sum();
    if quarantined > 0 {
        say("", format_args!("{} job(s) in quarantine; their runs have no total", thousands(quarantined)))?;
    }
    Ok(quarantined == 0)
}
