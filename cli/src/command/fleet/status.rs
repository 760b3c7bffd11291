//! `nqueens fleet status`.

use std::process::ExitCode;

use clap::Args;
use nqueens_fleet::UnixSeconds;
use nqueens_fleet::folder::FleetFolder;
use nqueens_fleet::script::log;
use nqueens_fleet::state::{AllocationState, Demand, FleetState};
use nqueens_kernel::counts::to_f64;
use serde_json::json;

use super::{FleetDir, now};
use crate::output::{Json, print_line, print_table, span};

/// Shows a fleet: its allocations with their logs, except those that ended well, and why nothing is submitted.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens fleet status")]
pub(crate) struct FleetStatusCommand {
    #[command(flatten)]
    dir: FleetDir,

    #[command(flatten)]
    json: Json,
}

impl FleetStatusCommand {
    pub(super) fn execute(self) -> anyhow::Result<ExitCode> {
        use AllocationState::{Cancelled, Completed, TimeLimit};
        let folder = FleetFolder::open(&self.dir.dir)?;
        let (led, settings, state) = (folder.lead()?.is_none(), folder.settings()?, folder.state()?);
        if self.json.json {
            let status = json!({ "led": led, "folder": folder.0, "settings": settings, "state": state });
            print_line(status)?;
            return Ok(ExitCode::SUCCESS);
        }
        lines(led, settings.limits.workers_max, &state).into_iter().try_for_each(print_line)?;
        let mut shown: Vec<_> = state.allocations.iter().collect();
        shown.retain(|(_, allocation)| !matches!(allocation.state, Completed | Cancelled | TimeLimit));
        shown.sort_by_key(|(_, allocation)| allocation.since);
        let rows = shown.into_iter().map(|(id, allocation)| {
            let log = log(&folder.0, id).display().to_string();
            let log = if allocation.why.is_empty() { log } else { format!("{log}\n{}", allocation.why) };
            let (name, since) =
                (allocation.state.to_string(), span(to_f64(now().saturating_sub(allocation.since))));
            vec![id.clone(), name, since, allocation.node.clone(), log]
        });
        print_table(&["ALLOCATION", "STATE", ">SINCE", "NODE", "LOG"], rows)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What there is to say of all of a fleet.
fn lines(led: bool, most: u64, state: &FleetState) -> Vec<String> {
    let doing = match (led, state.is_stopping) {
        (_, true) if state.has_stopped => "stopped",
        (true, true) => "stopping",
        (false, true) => "stopping, but no process does it: run 'nqueens fleet stop' again",
        (true, false) => "led by a process",
        (false, false) => "no process leads it: nothing is submitted",
    };
    let mut lines = vec![format!("{}; {most} at most", state.summary()), doing.to_owned()];
    if let Some(Demand { open, threads, .. }) = state.demand {
        lines.push(format!("{open} threads have something to count, {threads} count"));
    }
    lines.extend(state.list_error.iter().map(|error| format!("no list of allocations: {error}")));
    let wait = |until: UnixSeconds| until.saturating_sub(now());
    lines.extend(state.cap.map(|(most, probe_at)| {
        format!(
            "a submit limit of {most} allocations; one more is tried when one ends, or in {} s",
            wait(probe_at)
        )
    }));
    for retry in [&state.refused, &state.in_vain].into_iter().filter(|retry| wait(retry.not_before) > 0) {
        let (times, why, wait) = (retry.times, &retry.why, wait(retry.not_before));
        lines.push(format!("{times} in a row: {why}; the next submit is in {wait} s at the earliest"));
    }
    lines
}
