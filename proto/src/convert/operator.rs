//! Messages between operators and the coordinator.

use nqueens_kernel::counts::Totals;
use nqueens_kernel::plan::Fingerprint;
use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    Blamed, CheckCounts, Checked, Event, EventKind, Grounds, Interval, MachineName, Outcome, Progress,
    Recounts, RunState, RunStatus, Speed, Submission, TotalEstimate, WorkerStatus,
};

use super::plan::{drawing, plan};
use super::{InvalidMessage, board, invalid, present, run_id, variant, worker_id};
use crate::v1;

fn decimal(field: &'static str, text: &str) -> Result<u128, InvalidMessage> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| invalid(field, "must be a decimal number below 2^128"))
}

impl From<RunStatus> for v1::Run {
    fn from(run: RunStatus) -> Self {
        Self {
            progress: Some(run.progress.into()),
            plan: run.plan.kind().name().to_owned(),
            cells: drawing(&run.plan),
            states_per_job: run.plan.states_per_job(),
            fingerprint: run.fingerprint.map(|fingerprint| fingerprint.0.to_vec()).unwrap_or_default(),
            priority: run.priority,
            replicate_ppm: run.replicate_ppm,
            reason: run.reason.unwrap_or_default(),
            created_at_ms: run.created_at,
            started_at_ms: run.started_at,
            finished_at_ms: run.finished_at,
            recounts: Some(run.recounts.into()),
            result: run.outcome.map(Into::into),
        }
    }
}

impl TryFrom<v1::Run> for RunStatus {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Run) -> Result<Self, Self::Error> {
        let progress: Progress = present("progress", wire.progress)?;
        let outcome = wire.result.map(Outcome::try_from).transpose()?;
        if (progress.state == RunState::Done) != outcome.is_some() {
            return Err(invalid("result", "is there if and only if the run is done"));
        }
        let fingerprint = (!wire.fingerprint.is_empty())
            .then(|| wire.fingerprint.try_into().map_err(|_| invalid("fingerprint", "must be 32 bytes")))
            .transpose()?;
        Ok(Self {
            plan: plan(progress.n, &wire.plan, &wire.cells, wire.states_per_job)?,
            fingerprint: fingerprint.map(Fingerprint),
            priority: wire.priority,
            replicate_ppm: wire.replicate_ppm,
            reason: Some(wire.reason).filter(|reason| !reason.is_empty()),
            created_at: wire.created_at_ms,
            started_at: wire.started_at_ms,
            finished_at: wire.finished_at_ms,
            recounts: wire.recounts.map(Recounts::from).unwrap_or_default(),
            outcome,
            progress,
        })
    }
}

impl From<Recounts> for v1::Recounts {
    fn from(Recounts { agreed, differing, elapsed_us }: Recounts) -> Self {
        Self { agreed, differing, elapsed_us }
    }
}

impl From<v1::Recounts> for Recounts {
    fn from(v1::Recounts { agreed, differing, elapsed_us }: v1::Recounts) -> Self {
        Self { agreed, differing, elapsed_us }
    }
}

impl From<CheckCounts> for v1::CheckCounts {
    fn from(CheckCounts { open, agreed, settled, unmade, confirmed, recounted }: CheckCounts) -> Self {
        Self { open, agreed, settled, unmade, confirmed, recounted }
    }
}

impl From<v1::CheckCounts> for CheckCounts {
    fn from(
        v1::CheckCounts { open, agreed, settled, unmade, confirmed, recounted }: v1::CheckCounts,
    ) -> Self {
        Self { open, agreed, settled, unmade, confirmed, recounted }
    }
}

impl From<Progress> for v1::RunProgress {
    fn from(progress: Progress) -> Self {
        Self {
            run: progress.run.get(),
            n: progress.n.get(),
            state: v1::RunState::from(progress.state).into(),
            jobs: progress.jobs,
            planned: progress.planned,
            done: progress.done,
            leased: progress.leased,
            quarantined: progress.quarantined,
            share_done: progress.share_done,
            states: progress.states.to_string(),
            estimated_states: progress.estimated_states.to_string(),
            estimated_total: progress.estimated_total.map(Into::into),
            speed: progress.speed.map(Into::into),
            time_left_s: progress.time_left_s.map(Into::into),
            checks: Some(progress.checks.into()),
            workers: progress.workers,
        }
    }
}

impl TryFrom<v1::RunProgress> for Progress {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunProgress) -> Result<Self, Self::Error> {
        let accounted = u64::from(wire.done) + u64::from(wire.leased) + u64::from(wire.quarantined);
        if accounted > u64::from(wire.jobs) {
            return Err(invalid("jobs", "is less than those done, leased and in quarantine"));
        }
        if !(0.0..=1.0).contains(&wire.share_done) {
            return Err(invalid("share_done", "must be in 0..1"));
        }
        if wire.workers == Some(0) {
            return Err(invalid("workers", "is absent if there are none"));
        }
        let state = variant("state", wire.state())?;
        let is_planned = |planned: u32| state == RunState::Planning && planned <= wire.jobs;
        if !wire.planned.map_or(state != RunState::Planning, is_planned) {
            return Err(invalid(
                "planned",
                "is there if and only if the run is being planned, and not above jobs",
            ));
        }
        let estimate = |field, wire: Option<_>| wire.map(|wire| interval(field, wire)).transpose();
        Ok(Self {
            run: run_id("run", wire.run)?,
            n: board(wire.n)?,
            state,
            jobs: wire.jobs,
            planned: wire.planned,
            done: wire.done,
            leased: wire.leased,
            quarantined: wire.quarantined,
            share_done: wire.share_done,
            states: decimal("states", &wire.states)?,
            estimated_states: decimal("estimated_states", &wire.estimated_states)?,
            estimated_total: estimate("estimated_total", wire.estimated_total)?,
            speed: wire.speed.map(Speed::try_from).transpose()?,
            time_left_s: estimate("time_left_s", wire.time_left_s)?,
            checks: wire.checks.map(Into::into).unwrap_or_default(),
            workers: wire.workers,
        })
    }
}

impl From<Speed> for v1::Speed {
    fn from(speed: Speed) -> Self {
        Self { threads: speed.threads, states_per_s: speed.states_per_s }
    }
}

impl TryFrom<v1::Speed> for Speed {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Speed) -> Result<Self, Self::Error> {
        let is_speed = |number: f64| number.is_finite() && number >= 0.0;
        if !is_speed(wire.threads) || !is_speed(wire.states_per_s) {
            return Err(invalid("speed", "must be made of finite numbers that are not negative"));
        }
        Ok(Self { threads: wire.threads, states_per_s: wire.states_per_s })
    }
}

pub(super) fn interval(field: &'static str, wire: v1::Estimate) -> Result<Interval, InvalidMessage> {
    let v1::Estimate { value, low, high } = wire;
    let ordered = 0.0 <= low && low <= value && value <= high && high.is_finite();
    ordered
        .then_some(Interval { value, low, high })
        .ok_or_else(|| invalid(field, "must be a number between its bounds"))
}

impl From<Interval> for v1::Estimate {
    fn from(interval: Interval) -> Self {
        let Interval { value, low, high } = interval;
        Self { value, low, high }
    }
}

impl From<Checked> for v1::Check {
    fn from(checked: Checked) -> Self {
        match checked {
            Checked::Published => Self::Published,
            Checked::Symmetric => Self::Symmetric,
            Checked::None => Self::None,
        }
    }
}

impl From<Outcome> for v1::RunResult {
    fn from(outcome: Outcome) -> Self {
        Self {
            count2: outcome.totals.count2.to_string(),
            count4: outcome.totals.count4.to_string(),
            count8: outcome.totals.count8.to_string(),
            total: outcome.total.to_string(),
            check: v1::Check::from(outcome.checked).into(),
            grounds: outcome.grounds.map(v1::Grounds::from),
        }
    }
}

impl TryFrom<v1::RunResult> for Outcome {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunResult) -> Result<Self, Self::Error> {
        let checked = variant("check", wire.check())?;
        let totals = Totals {
            count2: decimal("count2", &wire.count2)?,
            count4: decimal("count4", &wire.count4)?,
            count8: decimal("count8", &wire.count8)?,
            solutions: 0,
        };
        let grounds = wire.grounds.map(Grounds::try_from).transpose()?;
        Ok(Self { totals, total: decimal("total", &wire.total)?, checked, grounds })
    }
}

impl From<Grounds> for v1::Grounds {
    fn from(grounds: Grounds) -> Self {
        let Grounds { estimate, checks_wanted, recounts_wanted } = grounds;
        let TotalEstimate { seed, strata, value, reach } = estimate;
        let (estimate, reach) = (value.to_string(), reach.to_string());
        Self { estimate, reach, seed, strata, checks_wanted, recounts_wanted }
    }
}

impl TryFrom<v1::Grounds> for Grounds {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Grounds) -> Result<Self, Self::Error> {
        let v1::Grounds { estimate, reach, seed, strata, checks_wanted, recounts_wanted } = wire;
        let (value, reach) = (decimal("estimate", &estimate)?, decimal("reach", &reach)?);
        let estimate = TotalEstimate { seed, strata, value, reach };
        Ok(Self { estimate, checks_wanted, recounts_wanted })
    }
}

impl From<WorkerStatus> for v1::WorkerStatus {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            id: worker.id.get(),
            name: worker.name,
            credential: worker.credential.to_string(),
            build: worker.build,
            kernels: worker.kernels,
            device: worker.device,
            threads: worker.threads,
            present: worker.present,
            registered_at_ms: worker.registered_at,
            silent_ms: worker.silent_ms,
            leases: worker.leases,
            states_per_s: worker.states_per_s,
            accepted: worker.accepted,
            draining: worker.draining,
            checks_passed: worker.checks_passed,
            checks_failed: worker.checks_failed,
            distrusted: worker.distrusted,
        }
    }
}

impl TryFrom<v1::WorkerStatus> for WorkerStatus {
    type Error = InvalidMessage;

    fn try_from(wire: v1::WorkerStatus) -> Result<Self, Self::Error> {
        Ok(Self {
            id: worker_id("id", wire.id)?,
            name: wire.name,
            credential: credential("credential", &wire.credential)?,
            build: wire.build,
            kernels: wire.kernels,
            device: wire.device,
            threads: wire.threads,
            present: wire.present,
            registered_at: wire.registered_at_ms,
            silent_ms: wire.silent_ms,
            leases: wire.leases,
            states_per_s: wire.states_per_s,
            accepted: wire.accepted,
            draining: wire.draining,
            checks_passed: wire.checks_passed,
            checks_failed: wire.checks_failed,
            distrusted: wire.distrusted,
        })
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
            EventKind::EngineFailed => Self::EngineFailed,
            EventKind::MachineDistrusted => Self::MachineDistrusted,
            EventKind::DiskShort => Self::DiskShort,
            EventKind::DiskRoomy => Self::DiskRoomy,
        }
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
        Ok(Self {
            number: wire.number,
            at: wire.at_ms,
            kind: variant("kind", wire.kind())?,
            run: (wire.run != 0).then(|| run_id("run", wire.run)).transpose()?,
            worker: (wire.worker_id != 0).then(|| worker_id("worker_id", wire.worker_id)).transpose()?,
            text: wire.text,
        })
    }
}

impl From<Submission> for v1::SubmitRequest {
    fn from(submission: Submission) -> Self {
        Self {
            request_id: submission.request.to_vec(),
            n: submission.plan.n().get(),
            plan: submission.plan.kind().name().to_owned(),
            cells: drawing(&submission.plan),
            states_per_job: submission.plan.states_per_job(),
            priority: submission.priority,
            replicate_ppm: submission.replicate_ppm,
        }
    }
}

impl TryFrom<v1::SubmitRequest> for Submission {
    type Error = InvalidMessage;

    fn try_from(wire: v1::SubmitRequest) -> Result<Self, Self::Error> {
        let n = board(wire.n)?;
        Ok(Self {
            request: wire.request_id.try_into().map_err(|_| invalid("request_id", "must be 16 bytes"))?,
            plan: plan(n, &wire.plan, &wire.cells, wire.states_per_job)?,
            priority: wire.priority,
            replicate_ppm: (wire.replicate_ppm <= 1_000_000)
                .then_some(wire.replicate_ppm)
                .ok_or_else(|| invalid("replicate_ppm", "must be in 0..1000000"))?,
        })
    }
}

impl v1::SetRunStateRequest {
    /// The run, and what it is to be: active, paused or cancelled.
    pub fn change(&self) -> Result<(RunId, RunState), InvalidMessage> {
        match variant("state", self.state())? {
            RunState::Planning | RunState::Done | RunState::Failed => {
                Err(invalid("state", "must be active, paused or cancelled"))
            }
            state => Ok((run_id("run", self.run)?, state)),
        }
    }
}

impl v1::RequeueRequest {
    /// The run, and whose results are taken back.
    pub fn subject(&self) -> Result<(RunId, Blamed), InvalidMessage> {
        let blamed = match (self.job, self.worker_id) {
            (Some(job), 0) => Blamed::Job(job),
            (None, worker) => Blamed::Worker(worker_id("worker_id", worker)?),
            (Some(_), _) => return Err(invalid("job", "and worker_id exclude each other")),
        };
        Ok((run_id("run", self.run)?, blamed))
    }
}

impl From<(RunId, Blamed)> for v1::RequeueRequest {
    fn from((run, blamed): (RunId, Blamed)) -> Self {
        let (job, worker_id) = match blamed {
            Blamed::Job(job) => (Some(job), 0),
            Blamed::Worker(worker) => (None, worker.get()),
        };
        Self { run: run.get(), job, worker_id }
    }
}

fn credential(field: &'static str, name: &str) -> Result<Credential, InvalidMessage> {
    Credential::stored(name).map_err(|error| invalid(field, error))
}

impl v1::SetTrustRequest {
    /// Whom it is about, and whether they are trusted.
    pub fn subject(&self) -> Result<(MachineName, bool), InvalidMessage> {
        let of = Some(&self.credential).filter(|name| !name.is_empty());
        let of = of.map(|name| credential("credential", name)).transpose()?;
        let machines = match (self.machine.is_empty(), of) {
            (false, credential) => MachineName::One { name: self.machine.clone(), credential },
            (true, Some(credential)) => MachineName::All { credential },
            (true, None) => return Err(invalid("machine", "or credential must be given")),
        };
        Ok((machines, self.trusted))
    }
}

impl From<(MachineName, bool)> for v1::SetTrustRequest {
    fn from((machines, trusted): (MachineName, bool)) -> Self {
        let (machine, credential) = match machines {
            MachineName::One { name, credential } => (name, credential),
            MachineName::All { credential } => (String::new(), Some(credential)),
        };
        let credential = credential.map(|credential| credential.to_string()).unwrap_or_default();
        Self { machine, trusted, credential }
    }
}

impl v1::WatchProgressRequest {
    /// The run to watch, or `None` for all, and the milliseconds between two messages, `200..=3_600_000`.
    pub fn subject(&self) -> Result<(Option<RunId>, u32), InvalidMessage> {
        if !(200..=3_600_000).contains(&self.interval_ms) {
            return Err(invalid("interval_ms", "must be in 200..3600000"));
        }
        let run = (self.run != 0).then(|| run_id("run", self.run)).transpose()?;
        Ok((run, self.interval_ms))
    }
}

impl From<RunState> for v1::RunState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Planning => Self::Planning,
            RunState::Active => Self::Active,
            RunState::Paused => Self::Paused,
            RunState::Cancelled => Self::Cancelled,
            RunState::Done => Self::Done,
            RunState::Failed => Self::Failed,
        }
    }
}
