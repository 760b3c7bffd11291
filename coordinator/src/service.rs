//! What workers ask of a coordinator, in the types of the model, and the gRPC service before it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nqueens_ledger::{PlannedJob, damaged};
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, WorkerId};
use nqueens_model::message::{Lease, Registration, Session, SyncRequest, SyncResponse};
use nqueens_proto::v1::worker_service_server::WorkerService;
use nqueens_proto::{InvalidMessage, MESSAGE_BYTES_MAX, PLANS, PROTOCOL_VERSION, random_bytes, v1};
use nqueens_scheduler::Refusal;
use nqueens_scheduler::request::{Granted, Sync, Synced, give_back, register};
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use crate::error::Error;
use crate::faults::Faults;
use crate::limits::CountLimits;
use crate::listener::Caller;
use crate::progress::Snapshot;
use crate::reader::Reader;
use crate::writer::Handle;

/// Bytes of leases in one answer, so that it stays well below the largest message however jobs are encoded.
const LEASE_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

/// Bytes of a lease beside its job's prefixes, at most.
const LEASE_BYTES: usize = 100;

/// An idle worker waits no longer for work: it gives a call up after 30 seconds.
const WAIT_MAX_MS: u32 = 20_000;

/// Answers workers; cheap to clone.
#[derive(Clone)]
pub struct Workers {
    pub(crate) writer: Handle,
    pub(crate) reader: Reader,
    pub(crate) limits: Arc<CountLimits>,
    /// Heartbeat interval.
    pub(crate) next_sync_ms: u32,
    pub(crate) snapshot: watch::Receiver<Arc<Snapshot>>,
    /// Told when jobs can't be read; the worker only sees a call that fails, and asks again.
    pub(crate) faults: Faults,
    /// True once the server shuts down.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Workers {
    /// Registers a worker that has shown `credential`.
    pub async fn register(
        &self,
        worker: Registration,
        credential: Credential,
    ) -> Result<Session, Arc<Error>> {
        self.writer.ask(register(worker, credential, random_bytes())).await
    }

    /// Takes a worker's results and gives it jobs; `None` if it has to register first. A worker with nothing to do and nothing
    /// to say is kept waiting until there is work, at most until its next heartbeat is due.
    pub async fn sync(
        &self,
        sync: SyncRequest,
        credential: Credential,
    ) -> Result<Option<SyncResponse>, Arc<Error>> {
        let idle = sync.results.is_empty() && sync.held.is_empty() && sync.returned.is_empty();
        let request = Sync { sync, credential };
        let again = (idle && request.sync.wanted.jobs > 0).then(|| request.clone());
        let answer = self.answer(request).await?;
        match (again, answer) {
            (Some(again), Some(answer)) if answer.leases.is_empty() && !answer.drain => {
                self.work_or_timeout(answer.next_sync_ms.min(WAIT_MAX_MS)).await;
                self.answer(again).await
            }
            (_, answer) => Ok(answer),
        }
    }

    /// Waits for work, at most until the worker's next heartbeat is due.
    async fn work_or_timeout(&self, wait_ms: u32) {
        let (mut snapshot, mut stopping) = (self.snapshot.clone(), self.stopping.clone());
        let before = snapshot.borrow().checks_waiting;
        tokio::select! {
            // An error means that the coordinator closes, which the writer will tell.
            _ = snapshot.wait_for(|now| now.has_ready || now.checks_waiting > before) => {}
            Ok(_) = stopping.wait_for(|stopping| *stopping) => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms.into())) => {}
        }
    }

    async fn answer(&self, request: Sync) -> Result<Option<SyncResponse>, Arc<Error>> {
        let worker = request.sync.session.worker;
        let Some(Synced { acks, granted, revoked, drain }) = self.writer.ask(request).await? else {
            return Ok(None);
        };
        let leases = self.leases(worker, granted).await?;
        Ok(Some(SyncResponse { acks, leases, revoked, next_sync_ms: self.next_sync_ms, drain }))
    }

    /// The content of leases. If it can't be read, the worker gets its leases with its next sync. Leases that do not
    /// fit into one response are returned, and their jobs are leased again.
    async fn leases(&self, worker: WorkerId, granted: Vec<Granted>) -> Result<Vec<Lease>, Arc<Error>> {
        if granted.is_empty() {
            return Ok(Vec::new());
        }
        let mut jobs = self.content(&granted).await.inspect_err(|error| {
            self.faults.tell(Arc::clone(error));
        })?;
        let (mut leases, mut bytes, mut tokens) = (Vec::with_capacity(granted.len()), 0, Vec::new());
        for Granted { token, states, mirrored } in granted {
            let PlannedJob { job, .. } = jobs.remove(&token.job).expect("a job is granted once");
            bytes += LEASE_BYTES + job.prefixes.len();
            // One at least, or it would never leave.
            if leases.is_empty() || bytes <= LEASE_BYTES_MAX {
                leases.push(Lease { token, job, states, mirrored });
            } else {
                tokens.push(token);
            }
        }
        if !tokens.is_empty() {
            self.writer.ask(give_back(worker, tokens)).await?;
        }
        Ok(leases)
    }

    async fn content(&self, granted: &[Granted]) -> Result<BTreeMap<JobId, PlannedJob>, Arc<Error>> {
        let ids = || granted.iter().map(|granted| granted.token.job);
        let jobs = self.reader.jobs(ids()).await?;
        if let Some(gone) = ids().find(|id| !jobs.contains_key(id)) {
            return Err(Arc::new(damaged(format!("job {gone} is gone")).into()));
        }
        self.limits.keep(jobs.iter().map(|(id, job)| (*id, job.weight.counts_max)));
        Ok(jobs)
    }
}

/// What the caller has shown: `access` has looked at it.
fn credential<T>(request: &Request<T>) -> Credential {
    request.extensions().get::<Credential>().expect("every call is looked at before").clone()
}

fn invalid(error: InvalidMessage) -> Status {
    Status::invalid_argument(error.to_string())
}

/// A worker that is not refused for good keeps what it has and comes again.
fn refused(error: Arc<Error>) -> Status {
    match *error {
        Error::Refused(Refusal::TooManyWorkers(..)) => Status::resource_exhausted(error.to_string()),
        Error::Refused(_) => Status::permission_denied(error.to_string()),
        _ => Status::unavailable(error.to_string()),
    }
}

/// [`Workers`] over gRPC.
pub(crate) struct WorkerServer(pub(crate) Workers);

#[tonic::async_trait]
impl WorkerService for WorkerServer {
    async fn register(
        &self,
        request: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        if let Some(caller) = request.extensions().get::<Caller>() {
            caller.register()?;
        }
        let (credential, wire) = (credential(&request), request.into_inner());
        if wire.protocol_version != PROTOCOL_VERSION {
            return Err(Status::failed_precondition(format!(
                "this coordinator speaks protocol {PROTOCOL_VERSION}, the worker {}; \
                 install the same version of nqueens on both",
                wire.protocol_version
            )));
        }
        if wire.plans != PLANS.0 {
            return Err(Status::failed_precondition(
                "this coordinator and the worker split boards into jobs in different ways; \
                 install the same version of nqueens on both",
            ));
        }
        let worker = Registration::try_from(wire).map_err(invalid)?;
        let session = self.0.register(worker, credential).await.map_err(refused)?;
        Ok(Response::new(session.into()))
    }

    async fn sync(&self, request: Request<v1::SyncRequest>) -> Result<Response<v1::SyncResponse>, Status> {
        let credential = credential(&request);
        let sync = SyncRequest::try_from(request.into_inner()).map_err(invalid)?;
        let worker = sync.session.worker;
        let answer = self.0.sync(sync, credential).await.map_err(refused)?;
        let unregistered =
            || Status::not_found(format!("worker {worker} is not registered here; register again"));
        Ok(Response::new(answer.ok_or_else(unregistered)?.into()))
    }
}
