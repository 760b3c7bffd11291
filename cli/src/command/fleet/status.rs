//! `nqueens fleet status`.

use std::process::ExitCode;

use clap::Args;
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::{FleetFile, FleetFolder};
use nqueens_fleet::state::{Allocation, AllocationId, AllocationState};
use serde_json::json;

use super::{FleetDir, now};
use crate::output::{Json, print_line, print_table};

/// Shows a fleet: its allocations with their logs, why it is paused, what the coordinator can use.
///
/// Reads the fleet's folder only, whether the fleet's command runs or not.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet status --all")]
pub(super) struct FleetStatusCommand {
    #[command(flatten)]
    dir: FleetDir,

    /// Also show allocations that have ended well
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    json: Json,
}

impl FleetStatusCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        let folder = self.dir.open()?;
        let file = folder.read()?;
        let is_led = folder.is_led()?;
        if self.json.json {
            let FleetFile { settings, state } = file;
            let shown = json!({"led": is_led, "folder": folder.path(), "settings": settings, "state": state});
            print_line(shown)?;
            return Ok(ExitCode::SUCCESS);
        }
        for line in summary(&file, is_led) {
            print_line(line)?;
        }
        let mut shown: Vec<_> = file.state.allocations.iter().filter(|(_, a)| self.shows(a)).collect();
        shown.sort_by_key(|(_, allocation)| allocation.since);
        let rows = shown.into_iter().map(|(id, allocation)| row(&folder, id, allocation));
        print_table(&["ALLOCATION", "STATE", ">SINCE", "NODE", "LOG"], rows)?;
        Ok(ExitCode::SUCCESS)
    }

    fn shows(&self, allocation: &Allocation) -> bool {
        use nqueens_fleet::state::Ending::{Cancelled, Completed, TimeLimit};
        self.all || !matches!(allocation.state, AllocationState::Ended(Completed | Cancelled | TimeLimit))
    }
}

fn row(folder: &FleetFolder, id: &AllocationId, allocation: &Allocation) -> Vec<String> {
    let mut state = allocation.state.name().to_owned();
    if allocation.restarts > 0 {
        state = format!("{state}, restarts: {}", allocation.restarts);
    }
    let node = if allocation.node.is_empty() { "-" } else { &allocation.node };
    let mut log = folder.log(id).display().to_string();
    if !allocation.why.is_empty() {
        log = format!("{log}\n{}", allocation.why);
    }
    vec![id.to_string(), state, ago(allocation.since), node.to_owned(), log]
}

/// The time since a moment, for people.
fn ago(moment: UnixSeconds) -> String {
    let seconds = now().saturating_sub(moment);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

fn summary(file: &FleetFile, is_led: bool) -> Vec<String> {
    let FleetFile { settings, state } = file;
    let count = |meant: AllocationState| state.count(|state| state == meant);
    let lost = state.count(AllocationState::is_lost);
    let mut lines = vec![format!(
        "{} queued, {} held, {} running, {} suspended, {} leaving, {lost} lost; limits: {} allocations of {} threads, {} queued",
        count(AllocationState::Queued),
        count(AllocationState::Held),
        count(AllocationState::Running),
        count(AllocationState::Suspended),
        count(AllocationState::Leaving),
        settings.workers_max,
        if state.threads > 0 { state.threads } else { settings.threads },
        state.ramp.max(settings.backlog),
    )];
    lines.push(match (is_led, state.stopping) {
        (_, Some(stopping)) if stopping.is_over => "stopped".to_owned(),
        (true, Some(_)) => "stopping".to_owned(),
        (false, Some(_)) => "stopping, but no process does it: run 'nqueens fleet stop' again".to_owned(),
        (true, None) => "led by a process".to_owned(),
        (false, None) => "no process leads it: nothing is submitted".to_owned(),
    });
    if let Some(pause) = &state.pause {
        lines.push(format!("paused {} ago: {}; 'nqueens fleet resume' goes on", ago(pause.at), pause.reason));
    }
    if let Some(demand) = state.demand {
        let seen =
            state.coordinator_seen_at.map_or_else(|| "never".to_owned(), |at| format!("{} ago", ago(at)));
        lines.push(format!(
            "coordinator ({seen}): {} threads have something to count, {} count",
            demand.open, demand.threads
        ));
    }
    if let Some(cap) = &state.cap {
        let (most, again) = (cap.most, cap.probe_at.saturating_sub(now()));
        lines.push(format!(
            "the batch system takes {most} allocations at most: {}; one more is tried when one ends, or in {again} s",
            cap.why
        ));
    }
    let waits = [(&state.refused, "refused submits"), (&state.fruitless, "allocations without a job done")];
    for (retry, what) in waits.iter().filter(|(retry, _)| retry.not_before > now()) {
        let wait = retry.not_before.saturating_sub(now());
        lines
            .push(format!("{} {what} in a row: the next submit is in {wait} s at the earliest", retry.times));
    }
    lines
}
