//! What operator and coordinator tell each other, in domain types, and the conversions from and to the wire.
//! `nqueens/v1/operator.proto` has the full story of each field.

use std::str::FromStr;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Totals;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};

use crate::convert::{InvalidMessage, invalid, stored};
use crate::id::{RunId, WorkerId};
use crate::v1;

/// Milliseconds since 1970, UTC.
pub type WallTime = i64;

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunState {
    /// Hands out jobs.
    Active,
    /// Hands out nothing; takes results.
    Paused,
    /// Given up; results are set aside.
    Cancelled,
    /// All jobs done, all checks passed, has a total.
    Done,
    /// All jobs done, but a check did not pass: it has no total.
    Failed,
}

impl RunState {
    const ALL: [Self; 5] = [Self::Active, Self::Paused, Self::Cancelled, Self::Done, Self::Failed];

    /// The state's name in the database and for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Cancelled => "cancelled",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether there is still work: the run is neither done nor failed nor cancelled.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

impl From<RunState> for v1::RunState {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Active => Self::Active,
            RunState::Paused => Self::Paused,
            RunState::Cancelled => Self::Cancelled,
            RunState::Done => Self::Done,
            RunState::Failed => Self::Failed,
        }
    }
}

impl TryFrom<v1::RunState> for RunState {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunState) -> Result<Self, Self::Error> {
        match wire {
            v1::RunState::Active => Ok(Self::Active),
            v1::RunState::Paused => Ok(Self::Paused),
            v1::RunState::Cancelled => Ok(Self::Cancelled),
            v1::RunState::Done => Ok(Self::Done),
            v1::RunState::Failed => Ok(Self::Failed),
            v1::RunState::Unspecified => Err(invalid("state", "is missing or of a later version")),
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Orbits by size.
    pub totals: Totals,
    /// All solutions.
    pub total: u128,
    /// What they were held against.
    pub checked: Checked,
}

/// What a result was held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The published counts.
    Published,
    /// The separately counted symmetric solutions; there is no published count.
    Symmetric,
}

impl Checked {
    /// The name used in the database and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Symmetric => "symmetric",
        }
    }

    /// What was checked, for people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Published => "equal to the published count",
            Self::Symmetric => {
                "no count is published; COUNT2 and COUNT4 equal the separately counted symmetric solutions"
            }
        }
    }
}

impl From<Outcome> for v1::RunResult {
    fn from(outcome: Outcome) -> Self {
        let check = match outcome.checked {
            Checked::Published => v1::Check::Published,
            Checked::Symmetric => v1::Check::Symmetric,
        };
        Self {
            count2: outcome.totals.count2.to_string(),
            count4: outcome.totals.count4.to_string(),
            count8: outcome.totals.count8.to_string(),
            total: outcome.total.to_string(),
            check: check.into(),
        }
    }
}

impl TryFrom<v1::RunResult> for Outcome {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RunResult) -> Result<Self, Self::Error> {
        let checked = match wire.check() {
            v1::Check::Published => Checked::Published,
            v1::Check::Symmetric => Checked::Symmetric,
            v1::Check::Unspecified => return Err(invalid("check", "is missing or of a later version")),
        };
        let totals = Totals {
            count2: decimal("count2", &wire.count2)?,
            count4: decimal("count4", &wire.count4)?,
            count8: decimal("count8", &wire.count8)?,
            solutions: 0,
        };
        Ok(Self { totals, total: decimal("total", &wire.total)?, checked })
    }
}

fn decimal(field: &'static str, text: &str) -> Result<u128, InvalidMessage> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| invalid(field, "must be a decimal number below 2^128"))
}

fn run_id(number: u64) -> Result<RunId, InvalidMessage> {
    RunId::new(number).ok_or_else(|| invalid("run", "must be in 1..2^48"))
}

fn worker_id(field: &'static str, number: u64) -> Result<WorkerId, InvalidMessage> {
    WorkerId::new(number).ok_or_else(|| invalid(field, "must be in 1..2^63"))
}

fn plan(n: BoardSize, kind: &str, states_per_job: u64) -> Result<Plan, InvalidMessage> {
    let kind = PlanKind::from_str(kind).map_err(|error| invalid("plan", error))?;
    if stored("states_per_job", states_per_job)? == 0 {
        return Err(invalid("states_per_job", "must be at least 1"));
    }
    Ok(Plan::with_states_per_job(n, kind, states_per_job))
}

/// A request for a run. The same one again is the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Drawn by whoever asks; the run's name and the order of its jobs follow from it.
    pub request: [u8; 16],
    /// How N is to be cut into jobs.
    pub plan: Plan,
    /// Among active runs, higher goes first.
    pub priority: i32,
}

impl Submission {
    /// The name of the run.
    pub fn run(&self) -> RunId {
        RunId::from_random(self.bits(0))
    }

    /// Fixes the order of the run's jobs.
    pub fn seed(&self) -> u64 {
        self.bits(8)
    }

    fn bits(&self, from: usize) -> u64 {
        u64::from_be_bytes(self.request[from..from + 8].try_into().expect("8 bytes"))
    }
}

impl From<Submission> for v1::SubmitRequest {
    fn from(submission: Submission) -> Self {
        Self {
            request_id: submission.request.to_vec(),
            n: submission.plan.n().get(),
            plan: submission.plan.kind().name().to_owned(),
            states_per_job: submission.plan.states_per_job(),
            priority: submission.priority,
        }
    }
}

impl TryFrom<v1::SubmitRequest> for Submission {
    type Error = InvalidMessage;

    fn try_from(wire: v1::SubmitRequest) -> Result<Self, Self::Error> {
        let n = BoardSize::new(wire.n).map_err(|error| invalid("n", error))?;
        Ok(Self {
            request: wire.request_id.try_into().map_err(|_| invalid("request_id", "must be 16 bytes"))?,
            plan: plan(n, &wire.plan, wire.states_per_job)?,
            priority: wire.priority,
        })
    }
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Its name.
    pub run: RunId,
    /// The board that it counts.
    pub n: BoardSize,
    /// What it is doing.
    pub state: RunState,
    /// Number of jobs.
    pub jobs: u32,
    /// Jobs with an accepted result.
    pub done: u32,
    /// Jobs that somebody counts.
    pub leased: u32,
    /// Jobs in quarantine.
    pub quarantined: u32,
    /// Share of the estimated work that is done, `0.0..=1.0`.
    pub share_done: f64,
    /// States visited for the jobs that are done.
    pub states: u128,
}

impl Progress {
    /// Whether nothing is left but jobs in quarantine, which wait for somebody's eye.
    pub fn is_stuck(&self) -> bool {
        self.state.is_open() && self.quarantined > 0 && self.done + self.quarantined == self.jobs
    }
}

impl From<Progress> for v1::RunProgress {
    fn from(progress: Progress) -> Self {
        Self {
            run: progress.run.get(),
            n: progress.n.get(),
            state: v1::RunState::from(progress.state).into(),
            jobs: progress.jobs,
            done: progress.done,
            leased: progress.leased,
            quarantined: progress.quarantined,
            share_done: progress.share_done,
            states: progress.states.to_string(),
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
        Ok(Self {
            run: run_id(wire.run)?,
            n: BoardSize::new(wire.n).map_err(|error| invalid("n", error))?,
            state: wire.state().try_into()?,
            jobs: wire.jobs,
            done: wire.done,
            leased: wire.leased,
            quarantined: wire.quarantined,
            share_done: wire.share_done,
            states: decimal("states", &wire.states)?,
        })
    }
}

/// A run in full.
#[derive(Clone, Debug, PartialEq)]
pub struct RunStatus {
    /// How far it is, with its name, board and state.
    pub progress: Progress,
    /// How N was cut into jobs.
    pub plan: Plan,
    /// Of the plan.
    pub fingerprint: Fingerprint,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// Which check it did not pass, if it failed.
    pub reason: Option<String>,
    /// When it was submitted.
    pub created_at: WallTime,
    /// When it was done.
    pub finished_at: Option<WallTime>,
    /// The result, once it is done.
    pub outcome: Option<Outcome>,
}

impl From<RunStatus> for v1::Run {
    fn from(run: RunStatus) -> Self {
        Self {
            progress: Some(run.progress.into()),
            plan: run.plan.kind().name().to_owned(),
            states_per_job: run.plan.states_per_job(),
            fingerprint: run.fingerprint.0.to_vec(),
            priority: run.priority,
            reason: run.reason.unwrap_or_default(),
            created_at_ms: run.created_at,
            finished_at_ms: run.finished_at,
            result: run.outcome.map(Into::into),
        }
    }
}

impl TryFrom<v1::Run> for RunStatus {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Run) -> Result<Self, Self::Error> {
        let progress: Progress =
            wire.progress.ok_or_else(|| invalid("progress", "is missing"))?.try_into()?;
        let outcome = wire.result.map(Outcome::try_from).transpose()?;
        if (progress.state == RunState::Done) != outcome.is_some() {
            return Err(invalid("result", "is there if and only if the run is done"));
        }
        let fingerprint =
            wire.fingerprint.try_into().map_err(|_| invalid("fingerprint", "must be 32 bytes"))?;
        Ok(Self {
            plan: plan(progress.n, &wire.plan, wire.states_per_job)?,
            fingerprint: Fingerprint(fingerprint),
            priority: wire.priority,
            reason: Some(wire.reason).filter(|reason| !reason.is_empty()),
            created_at: wire.created_at_ms,
            finished_at: wire.finished_at_ms,
            outcome,
            progress,
        })
    }
}

impl TryFrom<Option<v1::Run>> for RunStatus {
    type Error = InvalidMessage;

    fn try_from(wire: Option<v1::Run>) -> Result<Self, Self::Error> {
        wire.ok_or_else(|| invalid("run", "is missing"))?.try_into()
    }
}

/// A worker that has been heard of since the coordinator started.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerStatus {
    /// Its name in the ledger.
    pub id: WorkerId,
    /// What its owner calls it.
    pub name: String,
    /// Program version and source revision.
    pub build: String,
    /// Its engines, the one in use first.
    pub kernels: Vec<String>,
    /// Its counting threads.
    pub threads: u32,
    /// When it registered.
    pub registered_at: WallTime,
    /// Since it was last heard of, in milliseconds.
    pub silent_ms: u64,
    /// Jobs leased to it.
    pub leases: u64,
    /// Measured speed of all its threads, in estimated states a second; `None` before its first result.
    pub states_per_s: Option<f64>,
    /// Results accepted from it since the coordinator started.
    pub accepted: u64,
    /// An operator wants it to go.
    pub draining: bool,
}

impl From<WorkerStatus> for v1::WorkerStatus {
    fn from(worker: WorkerStatus) -> Self {
        Self {
            id: worker.id.get(),
            name: worker.name,
            build: worker.build,
            kernels: worker.kernels,
            threads: worker.threads,
            registered_at_ms: worker.registered_at,
            silent_ms: worker.silent_ms,
            leases: worker.leases,
            states_per_s: worker.states_per_s,
            accepted: worker.accepted,
            draining: worker.draining,
        }
    }
}

impl TryFrom<v1::WorkerStatus> for WorkerStatus {
    type Error = InvalidMessage;

    fn try_from(wire: v1::WorkerStatus) -> Result<Self, Self::Error> {
        Ok(Self {
            id: worker_id("id", wire.id)?,
            name: wire.name,
            build: wire.build,
            kernels: wire.kernels,
            threads: wire.threads,
            registered_at: wire.registered_at_ms,
            silent_ms: wire.silent_ms,
            leases: wire.leases,
            states_per_s: wire.states_per_s,
            accepted: wire.accepted,
            draining: wire.draining,
        })
    }
}

impl v1::GetRunRequest {
    /// The run asked for.
    pub fn id(&self) -> Result<RunId, InvalidMessage> {
        run_id(self.run)
    }
}

impl v1::SetRunStateRequest {
    /// The run, and what it is to be: active, paused or cancelled.
    pub fn change(&self) -> Result<(RunId, RunState), InvalidMessage> {
        match RunState::try_from(self.state())? {
            RunState::Done | RunState::Failed => Err(invalid("state", "must be active, paused or cancelled")),
            state => Ok((run_id(self.run)?, state)),
        }
    }
}

impl v1::RetryQuarantinedRequest {
    /// The run asked for.
    pub fn id(&self) -> Result<RunId, InvalidMessage> {
        run_id(self.run)
    }
}

impl v1::DrainWorkerRequest {
    /// The worker asked for.
    pub fn id(&self) -> Result<WorkerId, InvalidMessage> {
        worker_id("worker_id", self.worker_id)
    }
}

impl v1::WatchProgressRequest {
    /// The run to watch, or `None` for all, and the milliseconds between two messages, `200..=3_600_000`.
    pub fn subject(&self) -> Result<(Option<RunId>, u32), InvalidMessage> {
        if !(200..=3_600_000).contains(&self.interval_ms) {
            return Err(invalid("interval_ms", "must be in 200..3600000"));
        }
        let run = (self.run != 0).then(|| run_id(self.run)).transpose()?;
        Ok((run, self.interval_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> RunStatus {
        let n = BoardSize::new(27).expect("in range");
        RunStatus {
            progress: Progress {
                run: RunId::from_random(0xabc),
                n,
                state: RunState::Done,
                jobs: 7,
                done: 4,
                leased: 2,
                quarantined: 1,
                share_done: 0.5,
                states: u128::MAX,
            },
            plan: Plan::with_states_per_job(n, PlanKind::Border, 1_000),
            fingerprint: Fingerprint([7; 32]),
            priority: -3,
            reason: None,
            created_at: 1,
            finished_at: Some(2),
            outcome: Some(Outcome {
                totals: Totals { count2: 1, count4: 2, count8: u128::MAX, solutions: 0 },
                total: u128::MAX - 1,
                checked: Checked::Symmetric,
            }),
        }
    }

    #[test]
    fn what_is_sent_arrives() {
        assert_eq!(RunStatus::try_from(v1::Run::from(done())), Ok(done()));
        for state in RunState::ALL {
            assert_eq!(RunState::try_from(v1::RunState::from(state)), Ok(state));
            assert_eq!(RunState::from_name(state.name()), Some(state));
        }
        let submission = Submission { request: *b"12345678abcdefgh", plan: done().plan, priority: 7 };
        assert_eq!(Submission::try_from(v1::SubmitRequest::from(submission)), Ok(submission));
        assert_eq!(submission.seed(), u64::from_be_bytes(*b"abcdefgh"));
        let worker = WorkerStatus {
            id: WorkerId::new(7).expect("in range"),
            name: "west".to_owned(),
            build: "1".to_owned(),
            kernels: vec!["scalar".to_owned()],
            threads: 2,
            registered_at: 3,
            silent_ms: 4,
            leases: 5,
            states_per_s: Some(6.5),
            accepted: 8,
            draining: true,
        };
        assert_eq!(WorkerStatus::try_from(v1::WorkerStatus::from(worker.clone())), Ok(worker));
    }

    #[test]
    fn what_no_honest_peer_sends_is_refused() {
        let run = || v1::Run::from(done());
        let progress = || v1::RunProgress::from(done().progress);
        let with = |progress| v1::Run { progress: Some(progress), ..run() };
        let result = || run().result.expect("done");
        let wrong = [
            ("progress", v1::Run { progress: None, ..run() }),
            ("run", with(v1::RunProgress { run: 1 << 48, ..progress() })),
            ("n", with(v1::RunProgress { n: 32, ..progress() })),
            ("state", with(v1::RunProgress { state: 99, ..progress() })),
            ("jobs", with(v1::RunProgress { jobs: 6, ..progress() })),
            ("share_done", with(v1::RunProgress { share_done: f64::NAN, ..progress() })),
            ("states", with(v1::RunProgress { states: "+1".to_owned(), ..progress() })),
            ("plan", v1::Run { plan: "luck".to_owned(), ..run() }),
            ("states_per_job", v1::Run { states_per_job: 0, ..run() }),
            ("fingerprint", v1::Run { fingerprint: vec![0; 31], ..run() }),
            ("result", v1::Run { result: None, ..run() }),
            ("check", v1::Run { result: Some(v1::RunResult { check: 0, ..result() }), ..run() }),
            ("total", v1::Run { result: Some(v1::RunResult { total: String::new(), ..result() }), ..run() }),
        ];
        for (field, wire) in wrong {
            assert_eq!(RunStatus::try_from(wire).expect_err(field).field, field);
        }
    }
}
