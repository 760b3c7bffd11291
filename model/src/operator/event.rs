//! Events, for operators who do not read the log.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::{WallTime, WorkerName};
use crate::id::RunId;

/// Something that an operator may want to know of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Ascends through all lives of the coordinator, from 1 on.
    pub number: u64,
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    pub kind: EventKind,
    pub run: Option<RunId>,
    pub worker: Option<WorkerName>,
    /// For people: one sentence.
    pub text: String,
}

impl Event {
    /// For people and programs.
    pub fn view(self) -> EventView {
        EventView { problem: self.kind.is_problem(), event: self }
    }
}

/// An event, with what follows from it.
#[derive(Clone, Debug, Serialize)]
pub struct EventView {
    #[serde(flatten)]
    pub event: Event,
    pub problem: bool,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    /// A run was planned: its jobs can be leased.
    RunPlanned,
    /// An operator paused, resumed or cancelled a run.
    RunChanged,
    RunDone,
    /// A run has all its jobs done, and no total: a check did not pass.
    RunFailed,
    /// A run has jobs to lease, and nobody has counted for ten minutes.
    RunStalled,
    /// Jobs failed too often, or their results disagree.
    JobsQuarantined,
    /// A worker sent no heartbeat in time; its jobs go to other workers.
    WorkerLost,
    /// A worker sends heartbeats, but its counting makes no progress; its jobs go to other workers.
    WorkerStalled,
    /// An engine of a worker failed or counted wrong, such as a device that was lost: it is tried once more, or left alone.
    EngineFailed,
    /// A machine's results were wrong: it gets no more jobs.
    MachineDistrusted,
    /// The disk is nearly full: no more jobs are leased.
    DiskShort,
    /// The disk has room again.
    DiskRoomy,
}

impl EventKind {
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The name in the database and for programs.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether somebody should look after it.
    pub const fn is_problem(self) -> bool {
        !matches!(self, Self::RunPlanned | Self::RunChanged | Self::RunDone | Self::DiskRoomy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_know_the_kinds_by_these_names() {
        let names: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).collect();
        let known = "run_planned run_changed run_done run_failed run_stalled jobs_quarantined worker_lost \
                     worker_stalled engine_failed machine_distrusted disk_short disk_roomy";
        assert_eq!(names.join(" "), known);
        for kind in EventKind::ALL {
            assert_eq!(kind.name().parse(), Ok(*kind));
        }
    }
}
