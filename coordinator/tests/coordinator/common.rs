//! A coordinator on a database file, workers on real sockets, and an auditor that reads the file behind their backs.

#![allow(dead_code, reason = "each test program uses its part of this")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use nqueens_coordinator::progress::RunProgress;
use nqueens_coordinator::{Access, Coordinator, Door, Policy, RULES, RunRow, Timing, listen};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::UnitTally;
use nqueens_model::credential::Credential;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::message::Lease;
use nqueens_model::operator::{Event, RunState, RunStatus, Submission, WorkerStatus};
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{CallFailure, JsonClient, PLANS, PROTOCOL_VERSION, Token, v1};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Executor};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;

/// A rule of ledgers that were never restored from a backup, as none is here: those others take results of leases that
/// a lost life gave out.
const LEASES: (&str, &str) = (
    "no result is of a lease that was never given out",
    "SELECT id FROM result JOIN job ON job.run = result.run AND number = job WHERE result.epoch > job.epoch",
);

/// More work than any of these tests has.
pub(crate) const ALL: u64 = u64::MAX;

pub(crate) fn board(n: u32) -> BoardSize {
    BoardSize::new(n).unwrap()
}

/// The token of somebody.
pub(crate) fn token(of: &str) -> Token {
    format!("the-token-of-the-{of}").parse().unwrap()
}

/// A token for each of these owners of workers.
pub(crate) fn access_of(owners: &[&str]) -> Access {
    let tokens = owners.iter().map(|owner| (Credential::named(owner).unwrap(), token(owner)));
    Access::new(tokens.collect(), None).unwrap()
}

/// What takes longer never comes.
pub(crate) const FOR_EVER: Duration = Duration::from_mins(5);

/// The plan `rows` for N = 8: 8 jobs.
pub(crate) fn rows_8() -> Plan {
    Plan::with_states_per_job(board(8), PlanKind::Rows, 100_000)
}

/// A coordinator that serves on a loopback socket.
pub(crate) struct House {
    pub(crate) coordinator: Coordinator,
    url: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl House {
    pub(crate) async fn open(path: &Path, policy: Policy) -> Self {
        Self::guarded(path, policy, &Access::default()).await
    }

    /// One with a new database.
    pub(crate) async fn fresh() -> (Ledger, Self) {
        let ledger = Ledger::new();
        let house = Self::open(&ledger.path, Policy::default()).await;
        (ledger, house)
    }

    /// One that asks for tokens.
    pub(crate) async fn guarded(path: &Path, policy: Policy, access: &Access) -> Self {
        let pace = Timing { policy: Policy { beat_ms: 1_234, ..policy }, ..Timing::default() };
        Self::timed(path, pace, access).await
    }

    /// One that is set up otherwise.
    pub(crate) async fn timed(path: &Path, pace: Timing, access: &Access) -> Self {
        let coordinator = Coordinator::open(path, pace, "test 1.0").await.unwrap();
        let (listener, address) = listen("127.0.0.1:0").await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = coordinator.serve(Door::open(listener, access), None, async { drop(stopped.await) });
        Self { coordinator, url: format!("http://{address}"), stop, serving }
    }

    /// Has it plan a run of which so many results of a million are counted twice; the same again is the same run.
    pub(crate) async fn submit(&self, plan: Plan, replicate_ppm: u32) -> RunRow {
        let submission = Submission { request: [7; 16], plan, priority: 0, replicate_ppm };
        self.coordinator.operator().submit_once(submission).await.unwrap()
    }

    /// Ends this life of the coordinator.
    pub(crate) async fn close(self) {
        drop(self.stop);
        self.serving.await.unwrap();
        self.coordinator.close().await;
    }

    /// Ends the last one, and looks at what it leaves.
    pub(crate) async fn end(self, ledger: &Ledger) {
        self.close().await;
        ledger.audit().await;
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub(crate) async fn channel(&self) -> Channel {
        Channel::from_shared(self.url.clone()).unwrap().connect().await.unwrap()
    }

    pub(crate) async fn client(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.channel().await)
    }

    /// A registered worker; the same number is the same process.
    pub(crate) async fn worker(&self, number: u8) -> Worker {
        self.register(registration(number)).await
    }

    /// A worker that introduces itself so.
    pub(crate) async fn register(&self, registration: v1::RegisterRequest) -> Worker {
        self.register_by(None, registration).await.unwrap()
    }

    /// A worker that shows this token.
    pub(crate) async fn register_by(
        &self,
        token: Option<&Token>,
        registration: v1::RegisterRequest,
    ) -> Result<Worker, Status> {
        let mut client = self.client().await;
        let registered = client.register(shown(token, registration)).await?.into_inner();
        let v1::RegisterResponse { worker_id, secret } = registered;
        Ok(Worker { client, id: worker_id, secret, token: token.cloned() })
    }

    /// A worker that registered before and does not do so again.
    pub(crate) async fn known_worker(&self, worker: &Worker) -> Worker {
        let Worker { id, ref secret, ref token, .. } = *worker;
        Worker { client: self.client().await, id, secret: secret.clone(), token: token.clone() }
    }

    pub(crate) fn progress(&self, run: RunId) -> RunProgress {
        self.coordinator.operator().watch().borrow().run(run).unwrap().clone()
    }

    /// Waits until a run looks like this.
    pub(crate) async fn wait_for(&self, run: RunId, like: impl Fn(&RunProgress) -> bool) -> RunProgress {
        let mut snapshots = self.coordinator.operator().watch();
        let seen = snapshots.wait_for(|snapshot| snapshot.run(run).is_some_and(&like));
        let seen = timeout(FOR_EVER, seen).await.unwrap_or_else(|_| panic!("{:#?}", self.progress(run)));
        seen.unwrap().run(run).unwrap().clone()
    }
}

pub(crate) fn registration(number: u8) -> v1::RegisterRequest {
    v1::RegisterRequest {
        protocol_version: PROTOCOL_VERSION,
        plans: PLANS.0.to_vec(),
        instance: vec![number; 16],
        name: format!("worker {number}"),
        build: "test 1.0".to_owned(),
        kernels: vec!["reference".to_owned()],
        // As long as it has fewer jobs than threads, it gets more.
        threads: 100,
        capability: None,
    }
}

/// A worker's side of the wire, with nothing of its mind.
pub(crate) struct Worker {
    client: WorkerServiceClient<Channel>,
    pub(crate) id: u64,
    pub(crate) secret: Vec<u8>,
    pub(crate) token: Option<Token>,
}

/// A call with a token.
fn shown<T>(token: Option<&Token>, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if let Some(token) = token {
        token.attach(request.metadata_mut().as_mut());
    }
    request
}

impl Worker {
    pub(crate) async fn sync(&mut self, sync: v1::SyncRequest) -> Result<v1::SyncResponse, Status> {
        let sync = v1::SyncRequest { worker_id: self.id, secret: self.secret.clone(), ..sync };
        self.client.sync(shown(self.token.as_ref(), sync)).await.map(tonic::Response::into_inner)
    }

    /// Leases up to so many jobs by one call, which may bring less. No later call revives those that ran out meanwhile.
    pub(crate) async fn take_once(&mut self, jobs: u32) -> Vec<v1::Lease> {
        let sync = v1::SyncRequest { wanted_states: ALL, wanted_jobs: jobs, ..v1::SyncRequest::default() };
        self.sync(sync).await.unwrap().leases
    }

    /// Leases up to so many jobs; the worker holds none before.
    pub(crate) async fn take(&mut self, jobs: usize) -> Vec<v1::Lease> {
        self.take_more(&[], jobs).await
    }

    /// Leases up to so many jobs more, on top of these. Asks again and again, for one answer may hold less: towards the
    /// end of the work each worker gets its share only.
    pub(crate) async fn take_more(&mut self, before: &[v1::Lease], jobs: usize) -> Vec<v1::Lease> {
        let mut leases = before.to_vec();
        loop {
            let sync = v1::SyncRequest {
                held: held(&leases),
                wanted_states: ALL,
                wanted_jobs: u32::try_from(before.len() + jobs - leases.len()).unwrap(),
                ..v1::SyncRequest::default()
            };
            let more = self.sync(sync).await.unwrap().leases;
            if more.is_empty() {
                return leases.split_off(before.len());
            }
            leases.extend(more);
        }
    }

    /// Names what it holds; returns what it has lost, and what was sent again.
    pub(crate) async fn hold(&mut self, leases: &[v1::Lease]) -> (Vec<v1::LeaseToken>, Vec<v1::Lease>) {
        let sync = v1::SyncRequest { held: held(leases), ..v1::SyncRequest::default() };
        let answer = self.sync(sync).await.unwrap();
        (answer.revoked, answer.leases)
    }

    /// Reports results; says what became of each.
    pub(crate) async fn report(&mut self, results: &[v1::JobResult]) -> Vec<v1::Verdict> {
        let acks = self.report_for_reasons(results).await;
        acks.iter().map(v1::ResultAck::verdict).collect()
    }

    /// Reports results; says what became of each, and why.
    pub(crate) async fn report_for_reasons(&mut self, results: &[v1::JobResult]) -> Vec<v1::ResultAck> {
        let sync = v1::SyncRequest { results: results.to_vec(), ..v1::SyncRequest::default() };
        let acks = self.sync(sync).await.unwrap().acks;
        assert!(
            acks.iter().map(|ack| ack.token).eq(results.iter().map(|result| result.token)),
            "one for each result, in the same order"
        );
        acks
    }

    /// Counts whatever it can get, a few jobs at a time, until there is nothing more.
    pub(crate) async fn count_all(&mut self) {
        self.count_all_as(v1::Verdict::Accepted).await;
    }

    /// The same, where every result becomes this.
    pub(crate) async fn count_all_as(&mut self, verdict: v1::Verdict) {
        let mut results = Vec::new();
        loop {
            let reported = !results.is_empty();
            let sync = v1::SyncRequest {
                results: std::mem::take(&mut results),
                wanted_states: ALL,
                wanted_jobs: 3,
                ..v1::SyncRequest::default()
            };
            let answer = self.sync(sync).await.unwrap();
            assert!(answer.acks.iter().all(|ack| ack.verdict() == verdict), "{answer:?}");
            results = answer.leases.iter().map(honest).collect();
            if results.is_empty() && !reported {
                return;
            }
        }
    }
}

fn held(leases: &[v1::Lease]) -> Vec<v1::HeldLease> {
    leases.iter().map(|lease| v1::HeldLease { token: lease.token, states: 1 }).collect()
}

/// What an honest worker reports.
pub(crate) fn honest(lease: &v1::Lease) -> v1::JobResult {
    let token = lease.token;
    let job = Lease::try_from(lease.clone()).unwrap().job.decode().unwrap();
    let mut solver = Solver::recounting(Kernel::Reference.engine().unwrap());
    let mut count = |job: &Job| solver.count_job(job, &Control::default()).unwrap().unwrap();
    let UnitTally { counts, states } = count(&job);
    let each: Vec<_> =
        job.parts(lease.states).iter().map(|part| <[u64; 4]>::from(count(part).counts)).collect();
    let parts = if each.len() > 1 { each.concat() } else { Vec::new() };
    let Counts { count2, count4, count8, solutions } = counts;
    let kernel = "reference".to_owned();
    let (elapsed_us, cpu_us) = (7, Some(5));
    v1::JobResult { token, count2, count4, count8, kernel, states, elapsed_us, cpu_us, solutions, parts }
}

/// Off by one orbit, in the direction that can't be told from a right one.
pub(crate) fn falsified(result: &v1::JobResult) -> v1::JobResult {
    let count8 = if result.count8 > 0 { result.count8 - 1 } else { 1 };
    v1::JobResult { count8, ..result.clone() }
}

/// A database file of its own for each test, read by plain SQL.
pub(crate) struct Ledger {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.db");
        Self { _folder: folder, path }
    }

    pub(crate) async fn connect(&self) -> SqliteConnection {
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&self.path)).await.unwrap()
    }

    /// The first column of a query, as text; numbers included.
    pub(crate) async fn ask(&self, query: &str) -> Vec<String> {
        let mut connection = self.connect().await;
        let text =
            format!("SELECT CAST(answer AS TEXT) FROM (WITH asked(answer) AS ({query}) SELECT * FROM asked)");
        let answers = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        answers
    }

    /// Everything that has to last: runs, jobs, results, workers.
    pub(crate) async fn everything(&self) -> Vec<String> {
        let mut all = self.ask("SELECT json_array(id, n, plan, states_per_job, jobs, hex(fingerprint), seed, state, reason, outcome) FROM run ORDER BY id").await;
        all.extend(self.ask("SELECT json_array(run, number, class, bound1, hex(prefixes), states, state, epoch, failures, lapses, worker) FROM job ORDER BY run, number").await);
        all.extend(self.ask("SELECT json_array(id, run, job, epoch, worker, kernel, count2, count4, count8, states, elapsed_us, verdict, reported_at) FROM result ORDER BY id").await);
        all.extend(
            self.ask(
                "SELECT json_array(id, hex(instance), name, build, kernels, threads) FROM worker ORDER BY id",
            )
            .await,
        );
        all
    }

    /// The verdicts in the ledger, in the order of their commits.
    pub(crate) async fn verdicts(&self) -> Vec<String> {
        self.ask("SELECT verdict FROM result ORDER BY id").await
    }

    /// Breaks nothing, and finds whatever is broken.
    pub(crate) async fn audit(&self) {
        for (rule, query) in RULES.into_iter().chain([LEASES]) {
            assert_eq!(self.ask(query).await, Vec::<String>::new(), "{rule}");
        }
        let mut connection = self.connect().await;
        if !self.verdicts().await.is_empty() {
            let tries = [
                "DELETE FROM result",
                "UPDATE result SET count8 = count8 + 1",
                "UPDATE result SET verdict = 'accepted'",
            ];
            for statement in tries {
                let error = connection.execute(statement).await.unwrap_err().to_string();
                assert!(error.contains("results are append-only"), "{statement}: {error}");
            }
        }
        connection.close().await.unwrap();
    }
}

/// An operator on a socket.
pub(crate) struct Operators(pub(crate) JsonClient);

impl Operators {
    pub(crate) async fn submit(&self, submission: Submission) -> Result<RunStatus, CallFailure> {
        self.0.post("/v1/runs", &submission).await
    }

    pub(crate) async fn runs(&self) -> Vec<RunStatus> {
        self.0.get("/v1/runs").await.unwrap()
    }

    pub(crate) async fn run(&self, run: RunId) -> Result<RunStatus, CallFailure> {
        self.0.get(&format!("/v1/runs/{run}")).await
    }

    pub(crate) async fn set(&self, run: RunId, state: RunState) -> Result<RunStatus, CallFailure> {
        self.0.post(&format!("/v1/runs/{run}/state"), &state).await
    }

    pub(crate) async fn retry(&self, run: RunId) -> Result<RunStatus, CallFailure> {
        self.0.post(&format!("/v1/runs/{run}/retry"), &()).await
    }

    pub(crate) async fn workers(&self) -> Vec<WorkerStatus> {
        self.0.get("/v1/workers").await.unwrap()
    }

    pub(crate) async fn drain(&self, worker: WorkerId) -> Result<(), CallFailure> {
        self.0.post(&format!("/v1/workers/{worker}/drain"), &()).await
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        self.0.get("/v1/events").await.unwrap()
    }
}

pub(crate) async fn operator(house: &House) -> Operators {
    Operators(JsonClient::new(house.channel().await, None))
}

/// The status and the words of a refusal.
pub(crate) fn refusal(failure: CallFailure) -> (u16, String) {
    match failure {
        CallFailure::Refused(status, text) => (status.as_u16(), text),
        other => panic!("{other:?}"),
    }
}

/// [`rows_8`]: 8 jobs.
pub(crate) fn submission(request: u8) -> Submission {
    Submission { request: [request; 16], plan: rows_8(), priority: 0, replicate_ppm: 0 }
}
