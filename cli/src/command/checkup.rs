//! Whether a coordinator and a database are well, for `nqueens doctor`.

use std::path::Path;

use nqueens_coordinator::{Error, Reader};
use nqueens_proto::PROTOCOL_VERSION;
use nqueens_proto::operator::Progress;

use super::doctor::{BUILD, say};
use crate::client::{Client, TOKEN_VARIABLE};
use crate::output::{block_on, thousands};
use crate::token;

/// What a coordinator told.
struct Told {
    build: String,
    protocol: u32,
    /// Whether a token went with the calls.
    with_token: bool,
    runs: Vec<Progress>,
    workers: usize,
}

/// Asks a coordinator for all that an operator may know; false if it does not answer, or is not well.
pub(super) fn coordinator(url: &str, token_file: Option<&Path>) -> anyhow::Result<bool> {
    let told = match block_on(ask(url, token_file)) {
        Ok(told) => told,
        Err(error) => {
            say("coordinator", format_args!("FAILED: {error:#}"))?;
            return Ok(false);
        }
    };
    let Told { build, protocol, with_token, runs, workers } = told;
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
    say("", if with_token { "it takes the operator's token" } else { "it asks operators for no token" })?;
    say("", format_args!("{} run(s), {workers} worker(s) heard of since it started", runs.len()))?;
    Ok(look_at_runs(&runs)? && understood)
}

async fn ask(url: &str, token_file: Option<&Path>) -> anyhow::Result<Told> {
    let token = token::read(token_file, TOKEN_VARIABLE)?;
    let with_token = token.is_some();
    let mut client = Client::new(url, token);
    let (build, protocol) = client.coordinator().await?;
    let runs = client.runs().await?.into_iter().map(|run| run.progress).collect();
    let workers = client.workers().await?.len();
    Ok(Told { build, protocol, with_token, runs, workers })
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
