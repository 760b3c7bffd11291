//! Conversion from wire to domain types, with every check that is possible on a single message, and back.

use std::num::{NonZeroU32, NonZeroU64};

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::job::Job;
use nqueens_model::id::{JobId, LeaseToken, RunId, WorkerId};
use nqueens_model::kernel::Capability;
use nqueens_model::message::{
    BATCH_MAX, EncodedJob, FAILURE_BYTES_MAX, FAULTS_MAX, HeldLease, JobResult, Lease, Registration,
    ResultAck, ReturnedLease, Session, SyncRequest, SyncResponse, THREADS_MAX, Verdict, Wanted,
};
use nqueens_model::name;
use strum::VariantArray;

use crate::v1;

/// A message that no honest peer sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid message: {field} {problem}")]
pub struct InvalidMessage {
    /// The field at fault, as the `.proto` file names it.
    pub field: &'static str,
    pub problem: String,
}

fn invalid(field: &'static str, problem: impl ToString) -> InvalidMessage {
    InvalidMessage { field, problem: problem.to_string() }
}

/// What a message has to have in this field.
fn present<Wire, Domain>(field: &'static str, wire: Option<Wire>) -> Result<Domain, InvalidMessage>
where
    Domain: TryFrom<Wire, Error = InvalidMessage>,
{
    wire.ok_or_else(|| invalid(field, "is missing"))?.try_into()
}

/// A number that fits the 63 bits that the database has for it.
fn stored(field: &'static str, number: u64) -> Result<u64, InvalidMessage> {
    i64::try_from(number).map(|_| number).map_err(|_| invalid(field, "must be below 2^63"))
}

fn named(field: &'static str, text: String) -> Result<String, InvalidMessage> {
    name::check(&text).map_err(|error| invalid(field, error))?;
    Ok(text)
}

/// Why something failed; `None` if the text is empty.
fn failure(field: &'static str, text: String) -> Result<Option<String>, InvalidMessage> {
    if text.len() > FAILURE_BYTES_MAX || !text.chars().all(name::is_printable) {
        let problem = format!("must be a line of printable characters, of at most {FAILURE_BYTES_MAX} bytes");
        return Err(invalid(field, problem));
    }
    Ok((!text.is_empty()).then_some(text))
}

fn faults(lines: Vec<String>) -> Result<Vec<String>, InvalidMessage> {
    let present = |line| failure("faults", line)?.ok_or_else(|| invalid("faults", "must not be empty lines"));
    few("faults", FAULTS_MAX, lines)?.into_iter().map(present).collect()
}

fn batch<Wire, Domain>(
    field: &'static str,
    length_max: usize,
    items: Vec<Wire>,
) -> Result<Vec<Domain>, InvalidMessage>
where
    Domain: TryFrom<Wire, Error = InvalidMessage>,
{
    few(field, length_max, items)?.into_iter().map(Domain::try_from).collect()
}

fn few<Item>(field: &'static str, length_max: usize, items: Vec<Item>) -> Result<Vec<Item>, InvalidMessage> {
    if items.len() > length_max {
        return Err(invalid(field, format!("has {} items, at most {length_max} are allowed", items.len())));
    }
    Ok(items)
}

fn each<Domain, Wire: From<Domain>>(items: Vec<Domain>) -> Vec<Wire> {
    items.into_iter().map(Wire::from).collect()
}

impl From<LeaseToken> for v1::LeaseToken {
    fn from(token: LeaseToken) -> Self {
        Self {
            run: token.job.run.get(),
            job: token.job.number,
            epoch: token.epoch.get(),
            ticket: token.ticket,
        }
    }
}

impl TryFrom<v1::LeaseToken> for LeaseToken {
    type Error = InvalidMessage;

    fn try_from(wire: v1::LeaseToken) -> Result<Self, Self::Error> {
        let run = RunId::new(wire.run).ok_or_else(|| invalid("token.run", "must be in 1..2^48"))?;
        Ok(Self {
            job: JobId { run, number: wire.job },
            epoch: NonZeroU32::new(wire.epoch).ok_or_else(|| invalid("token.epoch", "must be at least 1"))?,
            ticket: wire.ticket,
        })
    }
}

impl From<Registration> for v1::RegisterRequest {
    fn from(worker: Registration) -> Self {
        Self {
            protocol_version: crate::PROTOCOL_VERSION,
            instance: worker.instance.to_vec(),
            name: worker.name,
            build: worker.build,
            kernels: worker.kernels.iter().map(ToString::to_string).collect(),
            threads: worker.threads,
            plans: crate::PLANS.0.to_vec(),
            capability: worker.capability.map(v1::Capability::from),
        }
    }
}

impl TryFrom<v1::RegisterRequest> for Registration {
    type Error = InvalidMessage;

    /// The protocol version and the plans are the caller's to check, first of all.
    fn try_from(wire: v1::RegisterRequest) -> Result<Self, Self::Error> {
        let kernels: Result<Vec<_>, _> = wire.kernels.iter().map(|name| name.parse()).collect();
        let kernels = kernels.map_err(|error| invalid("kernels", error))?;
        if kernels.is_empty() || kernels.len() > 64 {
            return Err(invalid("kernels", "must name 1..64 engines"));
        }
        if !(1..=THREADS_MAX).contains(&wire.threads) {
            return Err(invalid("threads", format!("must be in 1..{THREADS_MAX}")));
        }
        Ok(Self {
            instance: wire.instance.try_into().map_err(|_| invalid("instance", "must be 16 bytes"))?,
            name: named("name", wire.name)?,
            build: named("build", wire.build)?,
            kernels,
            capability: wire.capability.map(Capability::try_from).transpose()?,
            threads: wire.threads,
        })
    }
}

impl From<Capability> for v1::Capability {
    fn from(capability: Capability) -> Self {
        let Capability { family, device, states_per_s } = capability;
        Self { family: family.to_string(), device, states_per_s }
    }
}

impl TryFrom<v1::Capability> for Capability {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Capability) -> Result<Self, Self::Error> {
        if wire.states_per_s == 0 {
            return Err(invalid("states_per_s", "must be at least 1"));
        }
        Ok(Self {
            family: wire.family.parse().map_err(|error| invalid("family", error))?,
            device: named("device", wire.device)?,
            states_per_s: stored("states_per_s", wire.states_per_s)?,
        })
    }
}

impl From<Session> for v1::RegisterResponse {
    fn from(session: Session) -> Self {
        Self { worker_id: session.worker.get(), secret: session.secret.to_vec() }
    }
}

impl TryFrom<v1::RegisterResponse> for Session {
    type Error = InvalidMessage;

    fn try_from(wire: v1::RegisterResponse) -> Result<Self, Self::Error> {
        session(wire.worker_id, wire.secret)
    }
}

fn session(worker: u64, secret: Vec<u8>) -> Result<Session, InvalidMessage> {
    let advice = "must be the 16 bytes of the registration; earlier versions of nqueens have none: install the same version \
                  on both";
    let secret = secret.try_into().map_err(|_| invalid("secret", advice))?;
    let worker = WorkerId::new(worker).ok_or_else(|| invalid("worker_id", "must be in 1..2^63"))?;
    Ok(Session { worker, secret })
}

impl From<SyncRequest> for v1::SyncRequest {
    fn from(sync: SyncRequest) -> Self {
        Self {
            worker_id: sync.session.worker.get(),
            secret: sync.session.secret.to_vec(),
            results: each(sync.results),
            held: each(sync.held),
            returned: each(sync.returned),
            wanted_states: sync.wanted.states,
            wanted_jobs: u32::try_from(sync.wanted.jobs).unwrap_or(u32::MAX),
            wanted_job_states_max: Some(sync.wanted.job_states_max)
                .filter(|max| *max < u64::MAX)
                .unwrap_or(0),
            leaving: sync.leaving,
            faults: sync.faults,
        }
    }
}

impl TryFrom<v1::SyncRequest> for SyncRequest {
    type Error = InvalidMessage;

    fn try_from(wire: v1::SyncRequest) -> Result<Self, Self::Error> {
        let wanted_jobs = usize::try_from(wire.wanted_jobs).ok().filter(|jobs| *jobs <= BATCH_MAX);
        Ok(Self {
            session: session(wire.worker_id, wire.secret)?,
            results: batch("results", BATCH_MAX, wire.results)?,
            // A worker holds a few batches at most.
            held: batch("held", 10 * BATCH_MAX, wire.held)?,
            returned: batch("returned", BATCH_MAX, wire.returned)?,
            wanted: Wanted {
                states: wire.wanted_states,
                jobs: wanted_jobs
                    .ok_or_else(|| invalid("wanted_jobs", format!("must be at most {BATCH_MAX}")))?,
                job_states_max: NonZeroU64::new(wire.wanted_job_states_max).map_or(u64::MAX, NonZeroU64::get),
            },
            leaving: wire.leaving,
            faults: faults(wire.faults)?,
        })
    }
}

impl From<SyncResponse> for v1::SyncResponse {
    fn from(answer: SyncResponse) -> Self {
        Self {
            acks: each(answer.acks),
            leases: each(answer.leases),
            revoked: each(answer.revoked),
            next_sync_ms: answer.next_sync_ms,
            drain: answer.drain,
        }
    }
}

impl TryFrom<v1::SyncResponse> for SyncResponse {
    type Error = InvalidMessage;

    fn try_from(wire: v1::SyncResponse) -> Result<Self, Self::Error> {
        Ok(Self {
            acks: batch("acks", BATCH_MAX, wire.acks)?,
            leases: batch("leases", 10 * BATCH_MAX, wire.leases)?,
            revoked: batch("revoked", 10 * BATCH_MAX, wire.revoked)?,
            next_sync_ms: wire.next_sync_ms,
            drain: wire.drain,
        })
    }
}

impl From<Lease> for v1::Lease {
    fn from(lease: Lease) -> Self {
        Self {
            token: Some(lease.token.into()),
            n: lease.job.n.get(),
            class: lease.job.class.name().to_owned(),
            bound1: lease.job.bound1.into(),
            prefixes: lease.job.prefixes,
            states: lease.states,
            mirrored: lease.mirrored,
        }
    }
}

impl TryFrom<v1::Lease> for Lease {
    type Error = InvalidMessage;

    fn try_from(wire: v1::Lease) -> Result<Self, Self::Error> {
        let n = BoardSize::new(wire.n).map_err(|error| invalid("n", error))?;
        let class = wire.class.parse().map_err(|error| invalid("class", error))?;
        let bound1 = u8::try_from(wire.bound1).map_err(|error| invalid("bound1", error))?;
        let job = EncodedJob { n, class, bound1, prefixes: wire.prefixes };
        Ok(Self { token: present("token", wire.token)?, job, states: wire.states, mirrored: wire.mirrored })
    }
}

impl From<HeldLease> for v1::HeldLease {
    fn from(held: HeldLease) -> Self {
        Self { token: Some(held.token.into()), states: held.states }
    }
}

impl TryFrom<v1::HeldLease> for HeldLease {
    type Error = InvalidMessage;

    fn try_from(wire: v1::HeldLease) -> Result<Self, Self::Error> {
        Ok(Self { token: present("token", wire.token)?, states: wire.states })
    }
}

impl From<ReturnedLease> for v1::ReturnedLease {
    fn from(returned: ReturnedLease) -> Self {
        Self { token: Some(returned.token.into()), failure: returned.failure.unwrap_or_default() }
    }
}

impl TryFrom<v1::ReturnedLease> for ReturnedLease {
    type Error = InvalidMessage;

    fn try_from(wire: v1::ReturnedLease) -> Result<Self, Self::Error> {
        Ok(Self { token: present("token", wire.token)?, failure: failure("failure", wire.failure)? })
    }
}

impl From<JobResult> for v1::JobResult {
    fn from(result: JobResult) -> Self {
        Self {
            token: Some(result.token.into()),
            count2: result.counts.count2,
            count4: result.counts.count4,
            count8: result.counts.count8,
            kernel: result.kernel.to_string(),
            states: result.states,
            elapsed_us: result.elapsed_us,
            cpu_us: result.cpu_us,
            solutions: result.counts.solutions,
            parts: result.parts.into_iter().flat_map(<[u64; 4]>::from).collect(),
        }
    }
}

impl TryFrom<v1::JobResult> for JobResult {
    type Error = InvalidMessage;

    fn try_from(wire: v1::JobResult) -> Result<Self, Self::Error> {
        let counts = Counts {
            count2: stored("count2", wire.count2)?,
            count4: stored("count4", wire.count4)?,
            count8: stored("count8", wire.count8)?,
            solutions: stored("solutions", wire.solutions)?,
        };
        Ok(Self {
            token: present("token", wire.token)?,
            counts,
            parts: parts(&wire.parts, counts)?,
            kernel: wire.kernel.parse().map_err(|error| invalid("kernel", error))?,
            states: stored("states", wire.states)?,
            elapsed_us: stored("elapsed_us", wire.elapsed_us)?,
            cpu_us: wire.cpu_us.map(|time| stored("cpu_us", time)).transpose()?,
        })
    }
}

/// What was found in the parts of a job that has these counts.
fn parts(numbers: &[u64], counts: Counts) -> Result<Vec<Counts>, InvalidMessage> {
    let (parts, []) = numbers.as_chunks::<4>() else {
        return Err(invalid("parts", "must have four numbers each"));
    };
    if parts.len() == 1 || parts.len() as u64 > Job::PARTS_MAX {
        return Err(invalid("parts", format!("must be 2..{} or none", Job::PARTS_MAX)));
    }
    let parts: Vec<_> = parts.iter().copied().map(Counts::from).collect();
    let sum = parts.iter().try_fold(Counts::ZERO, |sum, part| sum.checked_add(*part));
    if !parts.is_empty() && sum != Ok(counts) {
        return Err(invalid("parts", "do not add up to the job's counts"));
    }
    Ok(parts)
}

impl From<Verdict> for v1::Verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Accepted => Self::Accepted,
            Verdict::Duplicate => Self::Duplicate,
            Verdict::Conflict => Self::Conflict,
            Verdict::Implausible => Self::Implausible,
            Verdict::Unknown => Self::Unknown,
        }
    }
}

impl From<ResultAck> for v1::ResultAck {
    fn from(ack: ResultAck) -> Self {
        let verdict = v1::Verdict::from(ack.verdict).into();
        Self { token: Some(ack.token.into()), verdict, reason: ack.reason }
    }
}

impl TryFrom<v1::ResultAck> for ResultAck {
    type Error = InvalidMessage;

    fn try_from(wire: v1::ResultAck) -> Result<Self, Self::Error> {
        let verdict = Verdict::VARIANTS.iter().find(|known| v1::Verdict::from(**known) == wire.verdict());
        let verdict = *verdict.ok_or_else(|| invalid("verdict", "is missing or of a later version"))?;
        Ok(Self { token: present("token", wire.token)?, verdict, reason: wire.reason })
    }
}
