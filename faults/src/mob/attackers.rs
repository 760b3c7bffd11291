//! Those who mean harm: they speak the workers' protocol, each with a valid token of their own.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::random::Random;
use nqueens_kernel::solver::Solver;
use nqueens_model::message::Lease;
use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{MESSAGE_BYTES_MAX, PLANS, PROTOCOL_VERSION, Token, v1};
use tokio::task::JoinSet;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use super::scene::Scene;

/// Machines under one credential, of those who are found out one after the other.
const MACHINES: u32 = 8;

/// Machines of the one who fails every job.
const FAILERS: usize = 15;

/// Machines of one who lets leases run out.
const HOLDERS: usize = 6;

/// Jobs that are taken at once, at most.
const JOBS_MAX: u64 = 8;

/// More states than any machine visits in a second: who claims it gets more jobs.
const SPEED_MAX: u64 = 1 << 40;

/// Whoever does not answer within this time is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Somebody with a token, who has as many machines as there are names.
pub(super) struct Owner {
    pub(super) scene: Arc<Scene>,
    pub(super) channel: Channel,
    pub(super) token: Token,
    /// What results are wrong by: the same number for those who collude.
    pub(super) lie: u64,
    pub(super) random: Random,
}

/// A worker's side of the wire.
struct Process {
    client: WorkerServiceClient<Channel>,
    scene: Arc<Scene>,
    token: Token,
    id: u64,
    secret: Vec<u8>,
}

impl Owner {
    fn goes_on(&self) -> bool {
        self.scene.goes_on()
    }

    async fn rest(&mut self, millis: RangeInclusive<u64>) {
        tokio::time::sleep(Duration::from_millis(self.random.number(millis))).await;
    }

    fn bytes(&mut self) -> [u8; 16] {
        (u128::from(self.random.bits()) << 64 | u128::from(self.random.bits())).to_ne_bytes()
    }

    /// Registers a new process under a name.
    async fn enter(&mut self, name: &str) -> Result<Process, Status> {
        let instance = self.bytes();
        self.enter_as(name, instance).await
    }

    async fn enter_as(&mut self, name: &str, instance: [u8; 16]) -> Result<Process, Status> {
        let registration = self.registration(name, instance);
        Process::register(&self.scene, self.channel.clone(), &self.token, registration).await
    }

    fn registration(&mut self, name: &str, instance: [u8; 16]) -> v1::RegisterRequest {
        let (family, device) = ("classic-rows".to_owned(), "any".to_owned());
        let capability = v1::Capability { family, device, states_per_s: self.random.number(1..=SPEED_MAX) };
        v1::RegisterRequest {
            protocol_version: PROTOCOL_VERSION,
            plans: PLANS.0.to_vec(),
            instance: instance.to_vec(),
            name: name.to_owned(),
            build: "mob 1.0".to_owned(),
            kernels: vec!["reference".to_owned()],
            threads: u32::try_from(self.random.number(1..=100)).expect("small"),
            capability: Some(capability),
        }
    }

    /// Plausible, and wrong by this owner's number.
    fn falsified(&self, right: v1::JobResult) -> v1::JobResult {
        self.scene.count("lies told", 1);
        let count8 = right.count8.checked_sub(self.lie).unwrap_or(right.count8 + self.lie);
        v1::JobResult { count8, ..right }
    }

    /// Takes jobs and counts them right.
    async fn work(&mut self, process: &mut Process) -> Result<Vec<v1::JobResult>, Status> {
        let wanted = self.random.number(1..=JOBS_MAX);
        let leases = process.take(wanted).await?;
        Ok(tokio::task::block_in_place(|| leases.iter().map(count).collect()))
    }

    /// Works well for a while, and then lies in some or in all jobs; under the next name, when that is found out.
    pub(super) async fn lie(mut self) {
        let sincere = self.random.number(0..=15);
        let share = [100, 400, 1_000][self.random.index(3)];
        for name in 0..MACHINES {
            let Ok(mut process) = self.enter(&format!("liar {name}")).await else { return };
            let mut jobs = 0;
            while self.goes_on() {
                let Ok(mut results) = self.work(&mut process).await else { break };
                for result in &mut results {
                    jobs += 1;
                    if jobs > sincere && self.random.permille(share) {
                        *result = self.falsified(result.clone());
                    }
                }
                if process.report(results).await.is_err() {
                    break;
                }
                self.rest(20..=200).await;
            }
        }
    }

    /// Many names, that come, say the same, confirm each other unasked, and go.
    pub(super) async fn crowd(mut self) {
        let mut names = self.scene.workers_max + 1;
        while self.goes_on() {
            // All at once, so that they are alive together.
            let mut coming = JoinSet::new();
            for _ in 0..names {
                let (name, instance) = (format!("sybil {}", self.random.bits()), self.bytes());
                let registration = self.registration(&name, instance);
                let (scene, token) = (Arc::clone(&self.scene), self.token.clone());
                let channel = self.channel.clone();
                coming.spawn(async move { Process::register(&scene, channel, &token, registration).await });
            }
            let mut crowd = Vec::new();
            for answer in coming.join_all().await {
                match answer {
                    Ok(process) => crowd.push(process),
                    Err(refusal) if refusal.code() == Code::PermissionDenied => return,
                    Err(_) => {}
                }
            }
            let mut said = Vec::new();
            for process in &mut crowd {
                if !self.goes_on() {
                    return;
                }
                let Ok(results) = self.work(process).await else { continue };
                let lies: Vec<_> = results.into_iter().map(|result| self.falsified(result)).collect();
                drop(process.report(lies.clone()).await);
                said.extend(lies);
            }
            for process in &mut crowd {
                let echo = (0..said.len().min(3)).map(|_| said[self.random.index(said.len())].clone());
                drop(process.report(echo.collect()).await);
            }
            self.rest(500..=3_000).await;
            names = 10;
        }
    }

    /// Says over and over that it is there, on many calls at once.
    pub(super) async fn chatter(self) {
        let mut callers = JoinSet::new();
        for _ in 0..32 {
            let client = WorkerServiceClient::new(self.channel.clone());
            let (scene, token) = (Arc::clone(&self.scene), self.token.clone());
            let mut process = Process { client, scene, token, id: u64::from(u32::MAX), secret: Vec::new() };
            callers.spawn(async move {
                while process.scene.goes_on() {
                    let refusal = process.sync("chatter", v1::SyncRequest::default()).await;
                    if refusal.is_err_and(|refusal| refusal.code() == Code::ResourceExhausted) {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            });
        }
        callers.join_all().await;
    }

    /// A result for a lease that somebody has, or may have.
    fn forged(&mut self) -> Vec<v1::JobResult> {
        let tokens = self.scene.tokens();
        let mut token = match tokens.len() {
            0 => v1::LeaseToken { run: 1, job: 1, epoch: 1, ticket: 1 },
            length => tokens[self.random.index(length)],
        };
        if self.random.permille(500) {
            token.job += u32::try_from(self.random.below(50)).expect("small");
            token.epoch = u32::try_from(self.random.number(1..=1 << 24)).expect("25 bits");
        }
        let kernel = "reference".to_owned();
        let token = Some(token);
        vec![v1::JobResult {
            token,
            count8: self.lie,
            kernel,
            states: 1,
            elapsed_us: 1,
            ..Default::default()
        }]
    }

    /// Speaks for other workers, under their names and their numbers.
    pub(super) async fn impersonate(mut self, honest: &[&str]) {
        for _ in 0..MACHINES {
            // The coordinator's own counting has no instance that anybody could have.
            drop(self.enter_as("(the coordinator)", [0; 16]).await);
            let names = [honest, &["(the coordinator)"]].concat();
            let name = names[self.random.index(names.len())];
            let Ok(mut process) = self.enter(name).await else { return };
            while self.goes_on() {
                let victim = self.random.number(1..=process.id + 2);
                if victim == process.id {
                    continue;
                }
                let secret = match self.random.index(3) {
                    0 => Vec::new(),
                    1 => self.bytes().to_vec(),
                    _ => process.secret.clone(),
                };
                let results = self.forged();
                let returned = self.forged().into_iter();
                let returned = returned
                    .map(|result| v1::ReturnedLease { token: result.token, failure: "no".to_owned() });
                let returned = returned.collect();
                let sync =
                    v1::SyncRequest { worker_id: victim, secret, results, returned, ..Default::default() };
                if process.send("calls for another worker", sync.clone()).await.is_ok() {
                    self.scene.find(format!("worker {} spoke for worker {victim}", process.id));
                }
                // Not for somebody else, but of what somebody else has.
                if self.random.permille(100) {
                    let forged = self.forged();
                    self.scene.count("lies about leases of others", forged.len());
                    if process.report(forged).await.is_err() {
                        break;
                    }
                } else if process.take(1).await.is_err() {
                    break;
                }
                self.rest(20..=200).await;
            }
        }
    }

    /// Takes jobs under many names, and fails all of them.
    pub(super) async fn fail(mut self) {
        let mut processes = Vec::new();
        while self.goes_on() {
            if processes.len() < FAILERS
                && let Ok(process) = self.enter(&format!("failer {}", processes.len())).await
            {
                processes.push(process);
            }
            for process in &mut processes {
                let Ok(leases) = process.take(JOBS_MAX).await else { return };
                let failed = |lease: &v1::Lease| v1::ReturnedLease {
                    token: lease.token,
                    failure: "it burns".to_owned(),
                };
                let returned: Vec<_> = leases.iter().map(failed).collect();
                self.scene.count("jobs failed", returned.len());
                let sync = v1::SyncRequest { returned, ..Default::default() };
                if process.sync("calls", sync).await.is_err() {
                    return;
                }
            }
            self.rest(100..=500).await;
        }
    }

    /// Takes jobs and does nothing: half of its machines fall silent, the others say that they are at it.
    pub(super) async fn hold(mut self) {
        let mut processes = Vec::new();
        for number in 0..HOLDERS {
            if let Ok(process) = self.enter(&format!("holder {number}")).await {
                processes.push((process, Vec::new()));
            }
        }
        let mut turn = 0;
        while self.goes_on() {
            for (number, (process, leases)) in processes.iter_mut().enumerate() {
                let is_silent = number % 2 == 0;
                if is_silent && turn % 15 != 0 {
                    continue;
                }
                if is_silent || leases.is_empty() {
                    let Ok(taken) = process.take(JOBS_MAX).await else { return };
                    self.scene.count("jobs held", taken.len());
                    *leases = taken;
                    continue;
                }
                let held = leases.iter().map(|lease| v1::HeldLease { token: lease.token, states: turn });
                let sync = v1::SyncRequest { held: held.collect(), ..Default::default() };
                let Ok(answer) = process.sync("calls", sync).await else { return };
                leases.retain(|lease| !answer.revoked.iter().any(|revoked| Some(*revoked) == lease.token));
            }
            turn += 1;
            self.rest(800..=1_000).await;
        }
    }
}

impl Process {
    async fn register(
        scene: &Arc<Scene>,
        channel: Channel,
        token: &Token,
        registration: v1::RegisterRequest,
    ) -> Result<Self, Status> {
        let client = WorkerServiceClient::new(channel);
        let client = client.max_decoding_message_size(MESSAGE_BYTES_MAX);
        let (scene, token) = (Arc::clone(scene), token.clone());
        let mut process = Self { client, scene, token, id: 0, secret: Vec::new() };
        let (request, begun) = (process.request(registration), Instant::now());
        let answer = process.client.register(request).await;
        let answer = process.note("registrations", begun, answer)?;
        (process.id, process.secret) = (answer.worker_id, answer.secret);
        Ok(process)
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        self.token.attach(request.metadata_mut().as_mut());
        request.set_timeout(PATIENCE);
        request
    }

    fn note<T>(&self, what: &str, begun: Instant, answer: Result<Response<T>, Status>) -> Result<T, Status> {
        self.scene.count(what, 1);
        self.scene.time(begun);
        if let Err(refusal) = &answer {
            self.scene.count(&format!("{what} refused: {:?}", refusal.code()), 1);
        }
        answer.map(Response::into_inner)
    }

    /// Calls, whoever it is said to be from.
    async fn send(&mut self, what: &str, sync: v1::SyncRequest) -> Result<v1::SyncResponse, Status> {
        let (request, begun) = (self.request(sync), Instant::now());
        let answer = self.client.sync(request).await;
        self.note(what, begun, answer)
    }

    async fn sync(&mut self, what: &str, sync: v1::SyncRequest) -> Result<v1::SyncResponse, Status> {
        let (worker_id, secret) = (self.id, self.secret.clone());
        self.send(what, v1::SyncRequest { worker_id, secret, ..sync }).await
    }

    async fn take(&mut self, jobs: u64) -> Result<Vec<v1::Lease>, Status> {
        let wanted_jobs = u32::try_from(jobs).expect("few");
        let sync = v1::SyncRequest { wanted_states: u64::MAX, wanted_jobs, ..Default::default() };
        let leases = self.sync("calls", sync).await?.leases;
        self.scene.remember(leases.iter().filter_map(|lease| lease.token));
        Ok(leases)
    }

    async fn report(&mut self, results: Vec<v1::JobResult>) -> Result<(), Status> {
        let sync = v1::SyncRequest { results, ..Default::default() };
        for ack in self.sync("calls", sync).await?.acks {
            self.scene.count(&format!("results: {:?}", ack.verdict()), 1);
        }
        Ok(())
    }
}

/// What an honest worker reports.
fn count(lease: &v1::Lease) -> v1::JobResult {
    let token = lease.token;
    let job = Lease::try_from(lease.clone()).expect("a lease").job.decode().expect("a job");
    let mut solver = Solver::recounting(Kernel::Reference.engine().expect("it is always there"));
    let tally = solver.count_job(&job, &Control::default()).expect("it is not stopped").expect("no overflow");
    let Counts { count2, count4, count8, solutions } = tally.counts;
    let kernel = "reference".to_owned();
    v1::JobResult {
        token,
        count2,
        count4,
        count8,
        parts: Vec::new(),
        kernel,
        states: tally.states,
        elapsed_us: 7,
        cpu_us: None,
        solutions,
    }
}
