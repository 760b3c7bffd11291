//! A recording proxy: everything that workers and coordinator say to each other passes through it.
//!
//! It writes down each acknowledgement before the worker receives it, so that the ledger can be compared with it. It
//! can also repeat recorded calls.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nqueens_kernel::random::Random;
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use nqueens_proto::v1::{
    JobResult, LeaseToken, RegisterRequest, RegisterResponse, SyncRequest, SyncResponse, Verdict,
};
use nqueens_proto::{MESSAGE_BYTES_MAX, v1};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};

use crate::wal::Mark;

/// So many of the latest calls are remembered.
const CALLS_MAX: usize = 500;

/// A lease under which something was reported: run, job, epoch.
pub(crate) type Token = [u64; 3];

/// What a result found: orbits of 2, 4 and 8, and single solutions.
pub(crate) type Counts = [u64; 4];

/// A result that the coordinator has acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) counts: Counts,
    /// How much was in the database's log by then.
    pub(crate) mark: Option<Mark>,
}

/// All that was acknowledged, and whether as the job's own or as equal to that: who reports twice may get both answers.
pub(crate) type Acknowledgements = HashMap<(Token, bool), Acknowledged>;

/// Answers workers by asking the coordinator, and writes down what it says.
#[derive(Clone)]
pub(crate) struct RecordingProxy {
    record: Arc<Mutex<Record>>,
    coordinator: WorkerServiceClient<Channel>,
    /// Of the coordinator's database.
    wal_index: PathBuf,
}

#[derive(Default)]
struct Record {
    acknowledged: Acknowledgements,
    /// Acknowledgements that were seen, repetitions and all.
    seen: u64,
    /// What may never be said, and was.
    findings: Vec<String>,
    /// Grows with every restored ledger. What an earlier one says is void.
    ledger: u64,
    calls: VecDeque<Request<SyncRequest>>,
}

impl RecordingProxy {
    /// Begins to answer on a port of this machine.
    pub(crate) async fn start(coordinator: SocketAddr, database: &Path) -> (Self, SocketAddr) {
        let endpoint = Endpoint::from_shared(format!("http://{coordinator}")).expect("an address");
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(5))
            .tcp_nodelay(true);
        let coordinator =
            WorkerServiceClient::new(endpoint.connect_lazy()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let mut wal_index = database.as_os_str().to_owned();
        wal_index.push("-shm");
        let recording_proxy = Self { record: Arc::default(), coordinator, wal_index: wal_index.into() };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let service =
            WorkerServiceServer::new(recording_proxy.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        tokio::spawn(
            Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
        );
        (recording_proxy, address)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nobody panics with it")
    }

    /// What was acknowledged until now.
    pub(crate) fn acknowledged(&self) -> Acknowledgements {
        self.record().acknowledged.clone()
    }

    /// How many acknowledgements were seen, repetitions and all.
    pub(crate) fn seen(&self) -> u64 {
        self.record().seen
    }

    /// What may never be said, and was.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.record().findings.clone()
    }

    /// An older ledger takes the place of the coordinator's: only this was acknowledged by it.
    pub(crate) fn restore(&self, acknowledged: Acknowledgements) {
        let mut record = self.record();
        record.acknowledged = acknowledged;
        record.ledger += 1;
    }

    /// Repeats this many earlier calls at once; returns how many of them were answered.
    pub(crate) async fn repeat(&self, calls: usize, random: &mut Random) -> usize {
        let old: Vec<_> = {
            let record = &self.record();
            (0..calls.min(record.calls.len()))
                .map(|_| copy(&record.calls[random.index(record.calls.len())]))
                .collect()
        };
        let calls = old.into_iter().map(|call| {
            let recording_proxy = self.clone();
            tokio::spawn(async move { recording_proxy.pass_on(call).await })
        });
        let mut answered = 0;
        for call in calls.collect::<Vec<_>>() {
            answered += usize::from(call.await.expect("no panic").is_ok());
        }
        answered
    }

    async fn pass_on(&self, call: Request<SyncRequest>) -> Result<Response<SyncResponse>, Status> {
        let (ledger, results) = (self.record().ledger, call.get_ref().results.clone());
        let answer = self.coordinator.clone().sync(call).await?;
        let mark = Mark::read(&self.wal_index);
        let mut record = self.record();
        if record.ledger == ledger {
            for (result, ack) in results.iter().zip(&answer.get_ref().acks) {
                record.note(result, ack, mark);
            }
        }
        drop(record);
        Ok(answer)
    }
}

impl Record {
    fn note(&mut self, result: &JobResult, ack: &v1::ResultAck, mark: Option<Mark>) {
        self.seen += 1;
        let accepted = match ack.verdict() {
            Verdict::Accepted => true,
            Verdict::Duplicate => false,
            other => return self.findings.push(format!("{result:?} is {other:?}: {}", ack.reason)),
        };
        if result.token != ack.token {
            return self.findings.push(format!("{result:?} is answered by {ack:?}"));
        }
        let Some(LeaseToken { run, job, epoch, .. }) = result.token else { return };
        let token = [run, job.into(), epoch.into()];
        let counts = [result.count2, result.count4, result.count8, result.solutions];
        // The first time is the one whose promise is older.
        self.acknowledged.entry((token, accepted)).or_insert(Acknowledged { counts, mark });
    }
}

fn copy(call: &Request<SyncRequest>) -> Request<SyncRequest> {
    let mut copy = Request::new(call.get_ref().clone());
    *copy.metadata_mut() = call.metadata().clone();
    copy
}

/// A task of its own: a worker that hangs up does not keep the answer from being heard.
async fn on_its_own<T: Send + 'static>(
    call: impl Future<Output = Result<T, Status>> + Send + 'static,
) -> Result<T, Status> {
    let failed = |status: Status| match status.code() {
        // What is said of the way to the coordinator looks to a worker as if it were its own.
        Code::Unknown | Code::Internal | Code::Cancelled => Status::unavailable(status.message()),
        _ => status,
    };
    tokio::spawn(call).await.expect("no panic").map_err(failed)
}

#[tonic::async_trait]
impl WorkerService for RecordingProxy {
    async fn register(&self, call: Request<RegisterRequest>) -> Result<Response<RegisterResponse>, Status> {
        let mut coordinator = self.coordinator.clone();
        on_its_own(async move { coordinator.register(call).await }).await
    }

    async fn sync(&self, call: Request<SyncRequest>) -> Result<Response<SyncResponse>, Status> {
        {
            let mut record = self.record();
            if record.calls.len() == CALLS_MAX {
                record.calls.pop_front();
            }
            record.calls.push_back(copy(&call));
        }
        let recording_proxy = self.clone();
        on_its_own(async move { recording_proxy.pass_on(call).await }).await
    }
}
