//! The process that leads a fleet: it looks, acts, and waits.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use nqueens_fleet::decide::is_due;
use nqueens_fleet::folder::{FleetFolder, FleetSettings};
use nqueens_fleet::look::look;
use nqueens_fleet::state::{Demand, FleetState};
use nqueens_model::operator::{CheckCounts, RunState, WorkerStatus};
use tokio::time::timeout;
use tracing::{info, warn};

use super::now;
use crate::client::OperatorClient;
use crate::exit::INTERRUPTED;
use crate::runtime::block_on;
use crate::signals::{Signal, signals, stopped};
use crate::target::Contact;

/// Leads a fleet, whose lock the caller holds, until a signal comes or it has stopped. Without a coordinator it submits nothing.
pub(super) fn lead(
    folder: &FleetFolder,
    settings: FleetSettings,
    coordinator: Option<&Contact>,
) -> anyhow::Result<ExitCode> {
    let told = signals(None).context("listening for signals")?;
    let limits = settings.limits;
    let mut backend = settings.backend;
    let mut is_away = false;
    block_on(async {
        let mut client = coordinator.map(Contact::client).transpose()?;
        loop {
            let demand = tokio::select! {
                demand = ask(client.as_mut(), &mut is_away) => demand,
                () = stopped(told.clone()) => break,
            };
            if is_due(now(), &folder.state()?, &limits, demand) {
                // A signal waits for its end: no submit is left without an answer.
                look(now, &mut &*folder, &mut backend, &limits, demand, |line| info!("{line}"))?;
            }
            folder.remove(&folder.change(FleetState::forget)?);
            if folder.state()?.has_stopped {
                info!("the fleet has stopped: none of its allocations is left");
                return Ok(ExitCode::SUCCESS);
            }
            if timeout(Duration::from_secs(limits.interval), stopped(told.clone())).await.is_ok() {
                break;
            }
        }
        info!(
            "the fleet's allocations go on; the same command again goes on with them, 'nqueens fleet stop' ends them"
        );
        let is_interrupt = *told.borrow() == Some(Signal::Interrupt);
        Ok(if is_interrupt { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    })
}

/// What the coordinator's open runs can use. Logs when it goes away and comes back.
async fn ask(client: Option<&mut OperatorClient>, is_away: &mut bool) -> Option<Demand> {
    match demand(client?).await {
        Ok(demand) => {
            if std::mem::take(is_away) {
                info!("the coordinator is back");
            }
            Some(demand)
        }
        Err(error) => {
            if !std::mem::replace(is_away, true) {
                warn!("nothing is submitted and nothing stopped until the coordinator answers: {error:#}");
            }
            None
        }
    }
}

pub(super) async fn demand(client: &mut OperatorClient) -> anyhow::Result<Demand> {
    let asked = async { anyhow::Ok((client.runs().await?, client.workers().await?)) };
    let (runs, workers) =
        timeout(Duration::from_secs(20), asked).await.context("the coordinator does not answer")??;
    let counts = |worker: &&WorkerStatus| worker.present && !worker.draining && worker.distrusted.is_none();
    let progress = || runs.iter().map(|run| &run.progress);
    let of = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>();
    let open = progress().filter(|progress| progress.state == RunState::Active).map(|progress| {
        let counted = of(&[progress.done, progress.quarantined]);
        of(&[progress.jobs]).saturating_sub(counted) + of(&[progress.checks.open])
    });
    let done = progress().map(|progress| {
        let CheckCounts { agreed, settled, unmade, .. } = progress.checks;
        of(&[progress.done, agreed, settled, unmade])
    });
    let counting: Vec<_> = workers.iter().filter(counts).map(|worker| worker.about.threads).collect();
    Ok(Demand { open: open.sum(), done: done.sum(), workers: counting.len() as u64, threads: of(&counting) })
}
