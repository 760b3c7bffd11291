//! The process that leads a fleet: it looks, acts, and waits.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use nqueens_fleet::backend::Backend;
use nqueens_fleet::decide::{FleetLimits, is_due};
use nqueens_fleet::folder::{FleetFolder, FolderError, Lead};
use nqueens_fleet::look::look;
use nqueens_fleet::settings::FleetSettings;
use nqueens_fleet::state::{AllocationState, Demand, FleetState};
use tracing::{info, warn};

use super::demand::ask;
use super::now;
use crate::client::OperatorClient;
use crate::exit::INTERRUPTED;
use crate::runtime::beside_counting;
use crate::signals::{Signal, SignalReceiver, signals, stopped};
use crate::target::Contact;

/// Time between two looks at what ended allocations have left behind.
const SWEEP: Duration = Duration::from_mins(5);

/// What it takes to lead a fleet.
pub(super) struct Leader {
    folder: FleetFolder,
    backend: Box<dyn Backend + Send>,
    limits: FleetLimits,
    swept: Option<Instant>,
    /// Keeps other leaders out.
    _held: Lead,
}

/// Leads a fleet until a signal comes or it has stopped. Without a coordinator it submits nothing.
pub(super) fn lead(leader: Leader, coordinator: Option<&Contact>) -> anyhow::Result<ExitCode> {
    let told = signals(None).context("listening for signals")?;
    let runtime = beside_counting()?;
    let outcome = runtime.block_on(async {
        let client = coordinator.map(Contact::client).transpose()?;
        lead_until(leader, client, told).await
    });
    // A command of the batch system may be on its way. It comes to its end, and the next leader sees what came of it.
    runtime.shutdown_background();
    outcome
}

async fn lead_until(
    leader: Leader,
    client: Option<OperatorClient>,
    told: SignalReceiver,
) -> anyhow::Result<ExitCode> {
    tokio::select! {
        stopped = look_and_wait(leader, client) => {
            stopped?;
            info!("the fleet has stopped: none of its allocations is left");
            Ok(ExitCode::SUCCESS)
        }
        () = stopped(told.clone()) => {
            info!("the fleet's allocations go on; the same command again goes on with them, 'nqueens fleet stop' ends them");
            let is_interrupt = *told.borrow() == Some(Signal::Interrupt);
            Ok(if is_interrupt { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
        }
    }
}

/// Looks again and again until the fleet has stopped.
async fn look_and_wait(mut leader: Leader, mut client: Option<OperatorClient>) -> anyhow::Result<()> {
    let mut is_away = false;
    loop {
        let demand = match &mut client {
            Some(client) => note(ask(client).await, &mut is_away),
            None => None,
        };
        let looking = tokio::task::spawn_blocking(move || {
            let is_over = leader.look(demand);
            (leader, is_over)
        });
        let (back, is_over) = looking.await.context("a look panicked")?;
        if is_over? {
            return Ok(());
        }
        leader = back;
        tokio::time::sleep(Duration::from_secs(leader.limits.interval_s)).await;
    }
}

/// Logs when the coordinator goes away and comes back.
fn note(demand: anyhow::Result<Demand>, is_away: &mut bool) -> Option<Demand> {
    match demand {
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

impl Leader {
    pub(super) fn new(
        folder: FleetFolder,
        backend: Box<dyn Backend + Send>,
        settings: &FleetSettings,
        held: Lead,
    ) -> Self {
        Self { folder, backend, limits: settings.limits(), swept: None, _held: held }
    }

    /// Looks once, if it is time to. Returns whether the fleet has stopped.
    fn look(&mut self, demand: Option<Demand>) -> Result<bool, FolderError> {
        if is_due(now(), &self.state()?, &self.limits, demand) {
            look(now, &mut &self.folder, &mut *self.backend, &self.limits, demand, |line| info!("{line}"))?;
            let state = self.state()?;
            if self.swept.is_none_or(|at| at.elapsed() >= SWEEP) {
                self.swept = Some(Instant::now());
                if let Err(error) = self.folder.sweep(&state, demand.is_none_or(|demand| demand.open > 0)) {
                    warn!(%error, "can't remove what ended allocations have left");
                }
            }
            if state.stopping.is_some() {
                let left = state.count(|state| !matches!(state, AllocationState::Ended(_)));
                info!(left, "stopping");
            }
        }
        Ok(self.state()?.stopping.is_some_and(|stopping| stopping.is_over))
    }

    fn state(&self) -> Result<FleetState, FolderError> {
        Ok(self.folder.read()?.state)
    }
}
