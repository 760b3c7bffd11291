//! The process that leads a fleet: it looks, acts, and waits.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use nqueens_fleet::decide::{FleetLimits, is_due};
use nqueens_fleet::folder::{FleetFolder, FleetSettings};
use nqueens_fleet::look::{StateStore, look};
use nqueens_fleet::state::{Demand, FleetState};
use nqueens_model::operator::{CheckCounts, Fleet, RunState, WorkerStatus};
use tokio::time::timeout;
use tracing::{info, warn};

use super::now;
use crate::client::OperatorClient;
use crate::exit::INTERRUPTED;
use crate::runtime::block_on;
use crate::signals::{Signal, signals, stopped};
use crate::target::Contact;

/// A coordinator answers within this time.
const ANSWER: Duration = Duration::from_secs(20);

/// The coordinator of a fleet.
struct Head {
    client: OperatorClient,
    fleet: Fleet,
    is_away: bool,
}

impl Head {
    fn new(client: OperatorClient, folder: &FleetFolder, limits: FleetLimits, also: bool) -> Self {
        let node = rustix::system::uname();
        let place = format!("{} on {}", folder.0.display(), node.nodename().to_string_lossy());
        let seconds = u32::try_from(3 * limits.interval).unwrap_or(u32::MAX).max(60);
        Self { client, fleet: Fleet { place, also, seconds }, is_away: false }
    }

    /// What the open runs can use; `None` while nobody answers. Logs when the coordinator goes away and comes back. It is an
    /// error if another fleet was there first.
    async fn ask(&mut self) -> anyhow::Result<Option<Demand>> {
        let asked = async {
            let others = self.client.note_fleet(&self.fleet).await?;
            anyhow::Ok((others, demand(&mut self.client).await?))
        };
        match asked.await {
            Ok((others, demand)) => {
                if std::mem::take(&mut self.is_away) {
                    info!("the coordinator is back");
                }
                if let Some(Fleet { place, .. }) = others.first() {
                    bail!(
                        "another fleet submits workers for this coordinator, or did a minute ago: {place}; with --also, \
                         both do"
                    );
                }
                Ok(Some(demand))
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    warn!(
                        "nothing is submitted and nothing stopped until the coordinator answers: {error:#}"
                    );
                }
                Ok(None)
            }
        }
    }

    /// Makes room for another fleet at once. Whom nobody tells forgets this one a minute later.
    async fn leave(&mut self) {
        self.fleet.seconds = 0;
        let _ = timeout(ANSWER, self.client.note_fleet(&self.fleet)).await;
    }
}

/// Leads a fleet, whose lock the caller holds, until a signal comes or it has stopped; with `--also` perhaps beside others of this
/// coordinator. Without a coordinator it submits nothing.
pub(super) fn lead(
    folder: &FleetFolder,
    settings: FleetSettings,
    coordinator: Option<(&Contact, bool)>,
) -> anyhow::Result<ExitCode> {
    let told = signals(None).context("listening for signals")?;
    let limits = settings.limits;
    let mut backend = settings.backend;
    block_on(async {
        let head = |(contact, also): (&Contact, bool)| {
            anyhow::Ok(Head::new(contact.client()?, folder, limits, also))
        };
        let mut head = coordinator.map(head).transpose()?;
        loop {
            let ask = async { if let Some(head) = &mut head { head.ask().await } else { Ok(None) } };
            let demand = tokio::select! {
                demand = ask => demand?,
                () = stopped(told.clone()) => break,
            };
            if is_due(now(), &folder.state()?, &limits, demand) {
                // A signal waits for its end: no submit is left without an answer.
                look(now, folder, &mut backend, &limits, demand, |line| info!("{line}"))?;
                if let Some(error) = folder.state()?.list_error {
                    warn!("no list of allocations: {error}");
                }
            }
            folder.remove(&folder.change(FleetState::forget)?);
            if folder.state()?.has_stopped {
                if let Some(head) = &mut head {
                    head.leave().await;
                }
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

pub(super) async fn demand(client: &mut OperatorClient) -> anyhow::Result<Demand> {
    let asked = async { anyhow::Ok((client.runs().await?, client.workers().await?)) };
    let (runs, workers) = timeout(ANSWER, asked).await.context("the coordinator does not answer")??;
    let counts =
        |worker: &&WorkerStatus| worker.present && !worker.draining && worker.about.distrusted.is_none();
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
