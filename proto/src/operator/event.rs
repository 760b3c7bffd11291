//! What happened, for those who do not read the log.

use super::{WallTime, run_id, worker_id};
use crate::convert::{InvalidMessage, invalid};
use crate::id::{RunId, WorkerId};
use crate::v1;

/// Something that an operator may want to know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Counted from 1 in each life of the coordinator.
    pub number: u64,
    /// When it happened.
    pub at: WallTime,
    /// What it is.
    pub kind: EventKind,
    /// The run that it is about.
    pub run: Option<RunId>,
    /// The worker that it is about.
    pub worker: Option<WorkerId>,
    /// For people: one sentence.
    pub text: String,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A run was planned: its jobs are handed out.
    RunPlanned,
    /// An operator paused, resumed or cancelled a run.
    RunChanged,
    /// A run has its total.
    RunDone,
    /// A run has all its jobs done, and no total: a check did not pass.
    RunFailed,
    /// A run has jobs to hand out, and nobody has counted for a long while.
    RunStalled,
    /// Jobs failed too often, or their results disagree.
    JobsQuarantined,
    /// A worker was not heard of in time; its jobs go to others.
    WorkerLost,
    /// A worker is heard of, but its counting does not move; its jobs go to others.
    WorkerStalled,
    /// A machine's results were wrong: it gets no more jobs.
    MachineDistrusted,
    /// The disk is nearly full: no more jobs are handed out.
    DiskShort,
    /// The disk has room again.
    DiskRoomy,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::RunPlanned,
        Self::RunChanged,
        Self::RunDone,
        Self::RunFailed,
        Self::RunStalled,
        Self::JobsQuarantined,
        Self::WorkerLost,
        Self::WorkerStalled,
        Self::MachineDistrusted,
        Self::DiskShort,
        Self::DiskRoomy,
    ];

    /// The name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RunPlanned => "run_planned",
            Self::RunChanged => "run_changed",
            Self::RunDone => "run_done",
            Self::RunFailed => "run_failed",
            Self::RunStalled => "run_stalled",
            Self::JobsQuarantined => "jobs_quarantined",
            Self::WorkerLost => "worker_lost",
            Self::WorkerStalled => "worker_stalled",
            Self::MachineDistrusted => "machine_distrusted",
            Self::DiskShort => "disk_short",
            Self::DiskRoomy => "disk_roomy",
        }
    }

    /// Whether somebody should look after it.
    pub const fn is_problem(self) -> bool {
        match self {
            Self::RunPlanned | Self::RunChanged | Self::RunDone | Self::DiskRoomy => false,
            Self::RunFailed
            | Self::RunStalled
            | Self::JobsQuarantined
            | Self::WorkerLost
            | Self::WorkerStalled
            | Self::MachineDistrusted
            | Self::DiskShort => true,
        }
    }
}

impl From<EventKind> for v1::EventKind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::RunPlanned => Self::RunPlanned,
            EventKind::RunChanged => Self::RunChanged,
            EventKind::RunDone => Self::RunDone,
            EventKind::RunFailed => Self::RunFailed,
            EventKind::RunStalled => Self::RunStalled,
            EventKind::JobsQuarantined => Self::JobsQuarantined,
            EventKind::WorkerLost => Self::WorkerLost,
            EventKind::WorkerStalled => Self::WorkerStalled,
            EventKind::MachineDistrusted => Self::MachineDistrusted,
            EventKind::DiskShort => Self::DiskShort,
            EventKind::DiskRoomy => Self::DiskRoomy,
        }
    }
}

impl TryFrom<v1::EventKind> for EventKind {
    type Error = InvalidMessage;

    fn try_from(wire: v1::EventKind) -> Result<Self, Self::Error> {
        let known = Self::ALL.into_iter().find(|kind| v1::EventKind::from(*kind) == wire);
        known.ok_or_else(|| invalid("kind", "is missing or of a later version"))
    }
}

impl From<Event> for v1::Event {
    fn from(event: Event) -> Self {
        Self {
            number: event.number,
            at_ms: event.at,
            kind: v1::EventKind::from(event.kind).into(),
            run: event.run.map_or(0, RunId::get),
            worker_id: event.worker.map_or(0, WorkerId::get),
            text: event.text,
        }
    }
}

impl TryFrom<v1::Event> for Event {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Event) -> Result<Self, Self::Error> {
        let kind = wire.kind().try_into()?;
        let worker = |id| worker_id("worker_id", id);
        Ok(Self {
            number: wire.number,
            at: wire.at_ms,
            kind,
            run: Some(wire.run).filter(|id| *id != 0).map(run_id).transpose()?,
            worker: Some(wire.worker_id).filter(|id| *id != 0).map(worker).transpose()?,
            text: wire.text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_travels_and_has_a_name_of_its_own() {
        let run = RunId::new(7);
        for (kind, worker) in EventKind::ALL.into_iter().zip([None, WorkerId::new(3)].into_iter().cycle()) {
            let event = Event { number: 5, at: 1_000, kind, run, worker, text: "It rained.".to_owned() };
            assert_eq!(Event::try_from(v1::Event::from(event.clone())), Ok(event));
            assert_eq!(EventKind::ALL.iter().filter(|other| other.name() == kind.name()).count(), 1);
        }
        let unknown = v1::Event { kind: 99, ..v1::Event::default() };
        assert_eq!(Event::try_from(unknown).unwrap_err().field, "kind");
    }
}
