//! Events for operators, published after the commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use nqueens_model::id::{JobId, RunId, WorkerId};
use nqueens_model::numbers::{counted, thousands};
use nqueens_model::operator::{EventKind, RunState};
use tracing::warn;

use crate::dispatch::{ChangedJob, Dispatch, JobState, Machine, Millis, Run};

/// Workers that have to vanish for somebody to suspect that the system kills them.
const VANISHED_MANY: usize = 3;

/// An event before it is numbered and published as an [`Event`](nqueens_model::operator::Event).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvent {
    pub kind: EventKind,
    pub run: Option<RunId>,
    pub worker: Option<WorkerId>,
    /// What happened, for people.
    pub text: String,
}

impl NewEvent {
    pub(crate) fn of(run: &Run, kind: EventKind, what: impl std::fmt::Display) -> Self {
        Self { kind, run: Some(run.id()), worker: None, text: format!("{}: {what}", run.plan().subject()) }
    }

    pub(crate) fn disk(is_short: bool) -> Self {
        let (kind, text) = if is_short {
            (EventKind::DiskShort, "The disk is nearly full: no more jobs are leased.")
        } else {
            (EventKind::DiskRoomy, "The disk has space again: jobs are leased.")
        };
        Self { kind, run: None, worker: None, text: text.to_owned() }
    }

    /// Ended leases, each with its worker, the machine of that, and whether it still sends heartbeats: one event per worker.
    /// `vanished` workers of its machine fell silent; several in a row are no accident.
    pub(crate) fn lapses(
        ended: impl IntoIterator<Item = (WorkerId, Machine, bool)>,
        lease_ms: Millis,
        vanished: impl Fn(WorkerId) -> usize,
    ) -> Vec<Self> {
        let mut leases = BTreeMap::<_, (Machine, u64)>::new();
        for (worker, machine, heard_of) in ended {
            leases.entry((worker, heard_of)).or_insert((machine, 0)).1 += 1;
        }
        let news = leases.into_iter().map(|((worker, heard_of), (machine, leases))| {
            let jobs = counted(leases, "job");
            let (kind, mut text) = if heard_of {
                let what = "sends heartbeats, but its counting makes no progress";
                (EventKind::WorkerStalled, format!("{machine} {what}: {jobs} back."))
            } else {
                let silent = format!("after {} s without a heartbeat", lease_ms / 1_000);
                (EventKind::WorkerLost, format!("{machine} lost {silent}: {jobs} back."))
            };
            let vanished = if heard_of { 0 } else { vanished(worker) };
            if vanished >= VANISHED_MANY {
                let _ = write!(text, " Memory? {vanished} workers of its name have vanished like this.");
            }
            warn!(%worker, leases, "{text}");
            Self { kind, run: None, worker: Some(worker), text }
        });
        news.collect()
    }

    pub(crate) fn engine_failed(worker: WorkerId, machine: &Machine, fault: &str) -> Self {
        let text = format!("{machine} reports: {fault}.");
        warn!(%worker, "{text}");
        Self { kind: EventKind::EngineFailed, run: None, worker: Some(worker), text }
    }

    pub(crate) fn distrusted(machine: &Machine, reason: &str, jobs: usize) -> Self {
        let jobs = thousands(jobs);
        let text = format!(
            "Untrusted: {machine:#}. It gets no more jobs; {jobs} of its results are counted again. {reason}"
        );
        Self { kind: EventKind::MachineDistrusted, run: None, worker: None, text }
    }

    /// Jobs that went into quarantine, among all that changed: a line for each run. `told` are those in quarantine that
    /// were told about: a job that two results disagree about changes there as well, for others are asked about it.
    pub(crate) fn quarantined(
        changed: &[ChangedJob],
        dispatch: &Dispatch,
        told: &mut BTreeSet<JobId>,
    ) -> Vec<Self> {
        let mut jobs = BTreeMap::<_, Vec<_>>::new();
        for (job, slot, _) in changed {
            if slot.state != JobState::Quarantined {
                told.remove(job);
            } else if told.insert(*job) {
                jobs.entry(job.run).or_default().push((job, slot));
            }
        }
        let news = jobs.into_iter().filter_map(|(run, jobs)| {
            let (job, slot) = jobs[0];
            let (count, failures, lapses) = (jobs.len(), slot.failures, slot.lapses);
            warn!(%run, jobs = count, first = %job, failures, lapses, "jobs quarantined");
            let why = format!("failed attempts: {failures}, expired leases: {lapses}");
            let what = if count == 1 {
                format!("job {job} is quarantined; {why}")
            } else {
                format!("{} jobs are quarantined; the first is {job}, {why}", thousands(count))
            };
            Some(Self::of(dispatch.run(run)?, EventKind::JobsQuarantined, format_args!("{what}.")))
        });
        news.collect()
    }
}

/// Looks out for runs that nobody counts.
#[derive(Debug, Default)]
pub struct Stalls {
    /// Since when, and whether that was told.
    idle: HashMap<RunId, (Millis, bool)>,
}

impl Stalls {
    /// The runs that had jobs to lease for this long while nobody counted; each is reported once.
    pub fn look(&mut self, now: Millis, patience: Millis, dispatch: &Dispatch) -> Vec<NewEvent> {
        let is_idle =
            |run: &Run| run.state() == RunState::Active && run.estimate_ready() > 0 && run.sums().leased == 0;
        self.idle.retain(|run, _| dispatch.run(*run).is_some_and(is_idle));
        let mut news = Vec::new();
        for run in dispatch.runs().filter(|run| is_idle(run)) {
            let (since, told) = self.idle.entry(run.id()).or_insert((now, false));
            if !*told && now.saturating_sub(*since) >= patience {
                *told = true;
                let seconds = patience / 1_000;
                warn!(run = %run.id(), n = run.plan().n().get(), seconds, "run stalled: nobody counts");
                let what = format!("nobody has counted for {} seconds.", thousands(seconds));
                news.push(NewEvent::of(run, EventKind::RunStalled, what));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use nqueens_model::credential::Credential;

    use super::*;

    #[test]
    fn a_line_for_each_worker() {
        let lapse = |id, heard_of| {
            let machine = Machine::new(Credential::shared(), if id == 1 { "attic" } else { "west" });
            (WorkerId::new(id).unwrap(), machine, heard_of)
        };
        let news = NewEvent::lapses([lapse(2, false), lapse(1, true), lapse(2, false)], 60_000, |_| 2);
        let told: Vec<_> = news.iter().map(|news| (news.worker.unwrap().get(), news.kind)).collect();
        assert_eq!(told, [(1, EventKind::WorkerStalled), (2, EventKind::WorkerLost)]);
        assert_eq!(news[0].text, "attic sends heartbeats, but its counting makes no progress: 1 job back.");
        assert_eq!(news[1].text, "west lost after 60 s without a heartbeat: 2 jobs back.");
        let news = NewEvent::lapses(std::iter::repeat_n(lapse(2, false), 1_204), 60_000, |_| 3);
        assert_eq!(
            news[0].text,
            "west lost after 60 s without a heartbeat: 1,204 jobs back. Memory? 3 workers of its name have vanished like this."
        );
    }
}
