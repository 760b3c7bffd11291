//! Messages between worker and coordinator. `proto/nqueens/v1/worker.proto` documents each field.

use std::fmt;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::job::{Class, InvalidJob, Job};
use strum::{IntoStaticStr, VariantArray};

use crate::id::{LeaseToken, WorkerId};
use crate::kernel::{Capability, KernelName};

/// Most results, returned leases or new leases in one message.
pub const BATCH_MAX: usize = 1_000;

/// Bytes of the reason that comes with a returned lease, at most.
pub const FAILURE_BYTES_MAX: usize = 200;

/// Lines about engines that failed in one worker's process, at most; each has at most [`FAILURE_BYTES_MAX`] bytes.
pub const FAULTS_MAX: usize = 16;

/// More counting threads than any machine has: a worker that claims more is refused.
pub const THREADS_MAX: u32 = 4_096;

/// A worker's introduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Drawn by the worker's process at its start.
    pub instance: [u8; 16],
    /// What its owner calls it; a [name](crate::name::check).
    pub name: String,
    /// Program version and source revision; a [name](crate::name::check).
    pub build: String,
    /// Engines that it offers, the one in use first; at least one.
    pub kernels: Vec<KernelName>,
    /// Of the engine in use; some workers don't say.
    pub capability: Option<Capability>,
    /// Counting threads, `1..=THREADS_MAX`.
    pub threads: u32,
}

/// What a worker proves in every call after its registration that it is the one that registered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Session {
    pub worker: WorkerId,
    /// Drawn by the coordinator when the worker's process registered.
    pub secret: [u8; 16],
}

impl fmt::Debug for Session {
    /// Without the secret: logs are read by others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("worker", &self.worker).finish_non_exhaustive()
    }
}

/// A worker's regular word: results and heartbeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRequest {
    pub session: Session,
    /// Jobs counted and not yet acknowledged.
    pub results: Vec<JobResult>,
    /// Every other lease that it holds.
    pub held: Vec<HeldLease>,
    /// Leases given back uncounted.
    pub returned: Vec<ReturnedLease>,
    /// Work wanted on top.
    pub wanted: Wanted,
    /// The worker ends, and holds nothing after this.
    pub leaving: bool,
    /// Engines that have failed since its process began, a line each with the reason: all of them every time, the first ones
    /// first.
    pub faults: Vec<String>,
}

/// Work that a worker wants to be leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Estimated states of all jobs together. If one job is leased it may have more.
    pub states: u64,
    /// Number of jobs, up to [`BATCH_MAX`].
    pub jobs: usize,
    /// Estimated states of each job, at least 1: the worker would not finish a larger one in the time that it has.
    pub job_states_max: u64,
}

impl Wanted {
    pub const NONE: Self = Self::new(0, 0);

    /// So much work, in jobs of any size.
    pub const fn new(states: u64, jobs: usize) -> Self {
        Self { states, jobs, job_states_max: u64::MAX }
    }
}

/// The coordinator's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncResponse {
    /// One for each result, in the same order.
    pub acks: Vec<ResultAck>,
    pub leases: Vec<Lease>,
    /// Held leases that no longer are the worker's.
    pub revoked: Vec<LeaseToken>,
    /// When to sync again at the latest, in milliseconds.
    pub next_sync_ms: u32,
    /// An operator asks the worker to go.
    pub drain: bool,
}

/// A job as it is stored and sent; the worker decodes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedJob {
    pub n: BoardSize,
    pub class: Class,
    pub bound1: u8,
    /// As [`Job::encode`] gives them.
    pub prefixes: Vec<u8>,
}

impl From<&Job> for EncodedJob {
    fn from(job: &Job) -> Self {
        Self { n: job.n(), class: job.class(), bound1: job.bound1(), prefixes: job.encode() }
    }
}

impl EncodedJob {
    /// The job, with everything about it checked.
    pub fn decode(&self) -> Result<Job, InvalidJob> {
        Job::decode(self.n, self.class, self.bound1, &self.prefixes)
    }
}

/// A job handed to a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub token: LeaseToken,
    pub job: EncodedJob,
    /// Estimated work in states.
    pub states: u64,
    /// Count the mirror image of each board.
    pub mirrored: bool,
}

/// A lease that a worker is at work on or has waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLease {
    pub token: LeaseToken,
    /// States visited so far.
    pub states: u64,
}

/// A lease that a worker gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedLease {
    pub token: LeaseToken,
    /// Why the job failed there; `None` if it was simply not counted.
    pub failure: Option<String>,
}

/// What counting a job gave. Every number is below 2^63.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    pub token: LeaseToken,
    pub counts: Counts,
    /// The same for each of the job's [parts](Job::parts), in their order: they add up to `counts`. None of a job that is one
    /// part.
    pub parts: Vec<Counts>,
    pub kernel: KernelName,
    pub states: u64,
    /// Thread time spent, in microseconds.
    pub elapsed_us: u64,
    /// Processor time of this, in microseconds; `None` where it is not measured.
    pub cpu_us: Option<u64>,
}

impl JobResult {
    /// Processor time in microseconds; thread time where it is not measured.
    pub fn processor_us(&self) -> u64 {
        self.cpu_us.unwrap_or(self.elapsed_us)
    }
}

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultAck {
    pub token: LeaseToken,
    pub verdict: Verdict,
    /// For people: why it was not accepted; empty if it was.
    pub reason: String,
}

/// What can become of a result; `worker.proto` tells each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    Accepted,
    /// The job needs none; or a second count that was asked for, and equal.
    Duplicate,
    /// A second count that was asked for, and differs.
    Conflict,
    Implausible,
    /// Its token is none that was given to its credential.
    Unknown,
}

impl Verdict {
    /// The name in the database, which keeps no results of verdict `Unknown`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
