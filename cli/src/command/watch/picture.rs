//! Everything that is shown at one moment.

use std::collections::HashMap;
use std::ops::Add;

use nqueens_coordinator::WorkerRow;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::message::Registration;
use nqueens_model::operator::{Event, RunDetail, RunStatus, WallTime, WorkerStatus};

/// What the coordinator or the database shows at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterView {
    /// When it was taken, by this machine's clock.
    pub(super) at: WallTime,
    /// Oldest first.
    pub(super) runs: Vec<RunStatus>,
    /// By id.
    pub(super) workers: Vec<WorkerView>,
    /// Oldest first.
    pub(super) events: Vec<Event>,
    /// What is told of each run alone: of those that changed since the picture before.
    pub(super) details: HashMap<RunId, RunDetail>,
    /// What there is to say of the coordinator's disk, if it is short of room.
    pub(super) disk: Option<String>,
}

/// One who counts, or has counted.
#[derive(Clone, Debug)]
pub(super) struct WorkerView {
    pub(super) id: WorkerId,
    pub(super) name: String,
    /// The engine in use.
    pub(super) kernel: String,
    pub(super) threads: u32,
    /// What only a coordinator knows.
    pub(super) live: Option<WorkerStatus>,
}

impl WorkerView {
    /// Its state in a word; empty if there is nothing unusual.
    pub(super) fn state(&self) -> &'static str {
        match &self.live {
            Some(live) if live.distrusted.is_some() => "untrusted",
            Some(live) if live.draining => "draining",
            _ => "-",
        }
    }

    pub(super) fn is_present(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.present)
    }

    /// Time since its last heartbeat.
    pub(super) fn silent_ms(&self) -> Option<u64> {
        self.live.as_ref().map(|live| live.silent_ms)
    }

    /// States a second of all its threads while they count, 0 if that is not known.
    pub(super) fn pace(&self) -> f64 {
        self.live.as_ref().and_then(|live| live.states_per_s).unwrap_or(0.0)
    }
}

impl ClusterView {
    /// What the paces of all workers add up to.
    pub(super) fn pace(&self) -> f64 {
        self.workers.iter().map(WorkerView::pace).sum()
    }

    /// The speed of all runs together, in states a second; `None` while none is known.
    pub(super) fn speed(&self) -> Option<f64> {
        self.runs.iter().filter_map(|run| Some(run.progress.speed?.states_per_s)).reduce(f64::add)
    }
}

impl From<WorkerStatus> for WorkerView {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            id: worker.id,
            name: worker.name.clone(),
            kernel: worker.kernels.first().cloned().unwrap_or_default(),
            threads: worker.threads,
            live: Some(worker),
        }
    }
}

impl From<WorkerRow> for WorkerView {
    fn from(row: WorkerRow) -> Self {
        let Registration { name, kernels, threads, .. } = row.registration;
        Self { id: row.id, name, kernel: kernels[0].to_string(), threads, live: None }
    }
}
