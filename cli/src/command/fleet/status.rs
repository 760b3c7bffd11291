//! `nqueens fleet status`.

use std::path::PathBuf;

use clap::Args;
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::{FleetFolder, FleetSettings};
use nqueens_fleet::script::log;
use nqueens_fleet::state::{AllocationState, Demand, FleetState};
use serde::Serialize;

use super::{FleetDir, now};
use crate::output::{Json, print_line, print_table};

/// Shows a fleet: its allocations with their logs, except those that ended well, why it is paused, what the coordinator can use.
///
/// Reads the fleet's folder only, whether the fleet's command runs or not.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet status")]
pub(super) struct FleetStatusCommand {
    #[command(flatten)]
    dir: FleetDir,

    #[command(flatten)]
    json: Json,
}

/// What `--json` prints.
#[derive(Serialize)]
struct FleetStatus {
    led: bool,
    folder: PathBuf,
    settings: FleetSettings,
    state: FleetState,
}

impl FleetStatusCommand {
    pub(super) fn execute(self) -> anyhow::Result<()> {
        use AllocationState::{Cancelled, Completed, TimeLimit};
        let folder = FleetFolder::open(&self.dir.dir)?;
        let (led, settings, state) = (folder.is_led()?, folder.settings()?, folder.state()?);
        let status = FleetStatus { led, folder: folder.path().to_owned(), settings, state };
        if self.json.json {
            return Ok(print_line(serde_json::to_value(status)?)?);
        }
        status.lines().into_iter().try_for_each(print_line)?;
        let shown = status
            .state
            .allocations
            .iter()
            .filter(|(_, allocation)| !matches!(allocation.state, Completed | Cancelled | TimeLimit));
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by_key(|(_, allocation)| allocation.since);
        let rows = shown.into_iter().map(|(id, allocation)| {
            let log = log(&status.folder, id).display().to_string();
            let log = if allocation.why.is_empty() { log } else { format!("{log}\n{}", allocation.why) };
            let (name, since) = (allocation.state.name().to_owned(), ago(allocation.since));
            vec![id.to_string(), name, since, allocation.restarts.to_string(), allocation.node.clone(), log]
        });
        Ok(print_table(&["ALLOCATION", "STATE", ">SINCE", ">RESTARTS", "NODE", "LOG"], rows)?)
    }
}

/// The time since a moment, for people.
fn ago(moment: UnixSeconds) -> String {
    match now().saturating_sub(moment) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

impl FleetStatus {
    fn lines(&self) -> Vec<String> {
        let (state, limits) = (&self.state, &self.settings.limits);
        let mut lines = vec![
            format!("{}; {} at most", state.summary(), limits.workers_max),
            match (self.led, state.stop_by) {
                (_, Some(_)) if state.has_stopped => "stopped",
                (true, Some(_)) => "stopping",
                (false, Some(_)) => "stopping, but no process does it: run 'nqueens fleet stop' again",
                (true, None) => "led by a process",
                (false, None) => "no process leads it: nothing is submitted",
            }
            .to_owned(),
        ];
        if let Some(reason) = &state.pause {
            lines.push(format!("paused: {reason}; 'nqueens fleet resume' goes on"));
        }
        if let Some(Demand { open, threads, .. }) = state.demand {
            lines.push(format!("{open} threads have something to count, {threads} count"));
        }
        if let Some(cap) = &state.cap {
            let (most, why, again) = (cap.most, &cap.why, cap.probe_at.saturating_sub(now()));
            lines.push(format!(
                "the batch system takes {most} allocations at most: {why}; one more is tried when one ends, or in {again} s"
            ));
        }
        for (retry, what) in
            [(state.refused, "refused submits"), (state.fruitless, "allocations without a job done")]
        {
            if let Some(wait) = retry.not_before.checked_sub(now()).filter(|wait| *wait > 0) {
                lines.push(format!(
                    "{} {what} in a row: the next submit is in {wait} s at the earliest",
                    retry.times
                ));
            }
        }
        lines
    }
}
