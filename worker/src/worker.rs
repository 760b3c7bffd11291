//! A worker's life: register, then sync until told to stop.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use nqueens_kernel::engine::Kernel;
use nqueens_proto::BATCH_MAX;
use nqueens_proto::id::WorkerId;
use nqueens_proto::message::{
    HeldLease, JobResult, Registration, ReturnedLease, SyncRequest, SyncResponse, Verdict,
};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::client::{Client, WorkerError};
use crate::pool::{Finished, Load, Pool};
use crate::selftest::Proof;

/// Results wait so long for company, unless the pool runs dry.
const FLUSH: Duration = Duration::from_millis(100);

/// Two syncs are at least so far apart.
const BREATH: Duration = Duration::from_millis(10);

/// When it is told to stop, it has so long to hand over what it has.
const FAREWELL: Duration = Duration::from_secs(5);

/// Jobs held at once, at most.
const HELD_MAX: usize = 5 * BATCH_MAX;

/// Jobs for each thread at once while its speed is not known.
const FIRST_JOBS: usize = 32;

/// How a worker is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// What its owner calls it.
    pub name: String,
    /// Program version and source revision.
    pub build: String,
    /// Counting threads.
    pub threads: NonZeroUsize,
    /// The engine in use.
    pub engine: Proof,
    /// Engines offered, the one in use first.
    pub kernels: Vec<Kernel>,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Results that the coordinator took.
    pub accepted: u64,
    /// Results that it did not.
    pub refused: u64,
}

/// Works for a coordinator until `stop`, then hands back what it has not counted.
///
/// Waits for a coordinator that is not there, as long as it takes; an error is one that waiting does not mend.
pub async fn work(
    config: Config,
    client: Client,
    stop: impl Future<Output = ()>,
) -> Result<Summary, WorkerError> {
    let registration = Registration {
        instance: instance(),
        name: config.name,
        build: config.build,
        kernels: config.kernels,
        threads: u32::try_from(config.threads.get()).unwrap_or(u32::MAX),
    };
    let threads = config.threads.get();
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    let states_per_s = config.engine.states_per_s * threads as f64;
    let pool = Pool::start(config.engine.kernel, config.threads);
    let mut worker = Worker {
        client,
        registration,
        id: None,
        outbox: Vec::new(),
        returned: Vec::new(),
        states_per_s,
        measured: false,
        summary: Summary::default(),
    };
    let outcome = worker.serve(&pool, stop).await;
    if outcome.is_ok() {
        worker.take_leave(&pool).await;
    }
    // Joining waits for the threads to see their stop flags.
    tokio::task::spawn_blocking(move || pool.close()).await.expect("closing the pool does not panic");
    outcome.map(|()| worker.summary)
}

fn instance() -> [u8; 16] {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system has random bits");
    bytes
}

/// The conversation's pace.
struct Rhythm {
    /// Time between two heartbeats.
    ahead: Duration,
    /// Whether the coordinator had all the work that was asked for.
    more_work: bool,
    /// When it last answered.
    synced: Option<Instant>,
}

struct Worker {
    client: Client,
    registration: Registration,
    id: Option<WorkerId>,
    /// Counted, not acknowledged.
    outbox: Vec<JobResult>,
    /// To be given back.
    returned: Vec<ReturnedLease>,
    /// Speed in estimated states, all threads together.
    states_per_s: f64,
    /// Whether that was measured on the run's own jobs; if not, it is a guess from the engine's test.
    measured: bool,
    summary: Summary,
}

impl Worker {
    async fn serve(&mut self, pool: &Pool, stop: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let mut stop = pin!(stop);
        let mut retry: Option<backon::ExponentialBackoff> = None;
        let mut rhythm = Rhythm { ahead: Duration::from_millis(200), more_work: true, synced: None };
        let mut next = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                () = pool.stirred() => {}
                () = sleep_until(next) => {}
            }
            self.collect(pool);
            let (load, wanted) = (pool.load(), self.wanted(rhythm.ahead));
            if retry.is_none() {
                next = self.next_sync(&rhythm, load, wanted);
            }
            if Instant::now() < next {
                continue;
            }
            // Giving the call up half-way is harmless: it is the same call next time.
            let outcome = tokio::select! {
                outcome = self.sync(pool, wanted.saturating_sub(load.states)) => outcome,
                () = &mut stop => return Ok(()),
            };
            match outcome {
                Ok(answer) => {
                    retry = None;
                    rhythm = Rhythm {
                        ahead: Duration::from_millis(answer.next_sync_ms.into()),
                        more_work: !answer.leases.is_empty() || wanted <= load.states,
                        synced: Some(Instant::now()),
                    };
                    next = Instant::now();
                    self.follow(pool, answer);
                }
                Err(error) if error.is_passing() => {
                    let pause = retry.get_or_insert_with(patience).next().expect("it never gives up");
                    warn!(%error, pause_ms = pause.as_millis(), "trying again");
                    next = Instant::now() + pause;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// When there is something to say: at once if threads are about to idle, soon if there are results, and at the
    /// coordinator's rhythm in any case.
    fn next_sync(&self, rhythm: &Rhythm, load: Load, wanted: u64) -> Instant {
        let Some(synced) = rhythm.synced else { return Instant::now() };
        let hungry = rhythm.more_work && load.states < wanted / 2;
        let to_say = !self.outbox.is_empty() || !self.returned.is_empty();
        let full = load.jobs == 0 || self.outbox.len() >= BATCH_MAX / 2;
        let pause = if hungry || (to_say && full) {
            BREATH
        } else if to_say {
            FLUSH
        } else {
            rhythm.ahead
        };
        synced + pause.min(rhythm.ahead)
    }

    /// Takes over what the threads have finished.
    fn collect(&mut self, pool: &Pool) {
        for finished in pool.take_finished() {
            match finished {
                Finished::Failed(returned) => {
                    warn!(job = %returned.token.job, failure = returned.failure, "could not count a job");
                    self.returned.push(returned);
                }
                Finished::Counted { result, states_estimate } => {
                    if result.elapsed_us > 0 {
                        #[expect(clippy::cast_precision_loss, reason = "a speed")]
                        let speed = states_estimate as f64 / result.elapsed_us as f64
                            * 1e6
                            * f64::from(self.registration.threads);
                        let weight = if self.measured { 0.1 } else { 1.0 };
                        self.states_per_s += weight * (speed - self.states_per_s);
                        self.measured = true;
                    }
                    self.outbox.push(result);
                }
            }
        }
    }

    /// The work it wants to have at hand, in estimated states: for two beats, so that one is left when it asks.
    fn wanted(&self, ahead: Duration) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let states = (self.states_per_s * 2.0 * ahead.as_secs_f64()) as u64;
        // Engines are far faster on larger boards than in their test.
        if self.measured { states.max(1) } else { states.saturating_mul(100) }
    }

    async fn sync(&mut self, pool: &Pool, wanted_states: u64) -> Result<SyncResponse, WorkerError> {
        loop {
            let worker = match self.id {
                Some(id) => id,
                None => self.register().await?,
            };
            let held = pool.held();
            let jobs_max =
                if self.measured { BATCH_MAX } else { FIRST_JOBS * self.registration.threads as usize };
            let wanted_jobs = HELD_MAX.saturating_sub(held.len()).min(jobs_max).min(BATCH_MAX);
            let results = self.outbox.iter().take(BATCH_MAX).copied().collect();
            let returned = self.returned.iter().take(BATCH_MAX).cloned().collect();
            // What waits for a later batch is still held.
            let later = self.outbox.iter().skip(BATCH_MAX).map(|result| result.token);
            let later = later.chain(self.returned.iter().skip(BATCH_MAX).map(|returned| returned.token));
            let held = held.into_iter().chain(later.map(|token| HeldLease { token, states: 0 })).collect();
            let request = SyncRequest { worker, results, held, returned, wanted_states, wanted_jobs };
            match self.client.sync(request).await {
                Err(WorkerError::Unregistered) => self.id = None,
                answer => return answer,
            }
        }
    }

    async fn register(&mut self) -> Result<WorkerId, WorkerError> {
        let id = self.client.register(&self.registration).await?;
        info!(worker = %id, name = self.registration.name, threads = self.registration.threads, "registered");
        self.id = Some(id);
        Ok(id)
    }

    /// Does what the coordinator says.
    fn follow(&mut self, pool: &Pool, answer: SyncResponse) {
        debug!(acks = answer.acks.len(), leases = answer.leases.len(), held = pool.load().jobs, "synced");
        for ack in &answer.acks {
            match ack.verdict {
                Verdict::Accepted => self.summary.accepted += 1,
                verdict => {
                    self.summary.refused += 1;
                    info!(job = %ack.token.job, ?verdict, reason = ack.reason, "result not accepted");
                }
            }
        }
        self.outbox.drain(..answer.acks.len().min(self.outbox.len()));
        self.returned.drain(..self.returned.len().min(BATCH_MAX));
        if !answer.revoked.is_empty() {
            debug!(jobs = answer.revoked.len(), "leases revoked");
        }
        pool.revoke(&answer.revoked);
        pool.add(answer.leases);
    }

    /// Gives up what the threads have not finished.
    fn abandon(&mut self, pool: &Pool) {
        self.returned.extend(pool.abandon().into_iter().map(|token| ReturnedLease { token, failure: None }));
        self.collect(pool);
    }

    /// Reports what is counted and hands back the rest, within [`FAREWELL`].
    async fn take_leave(&mut self, pool: &Pool) {
        self.abandon(pool);
        let farewell = async {
            // Once in any case, if it is known there: a call given up half-way may have been granted leases, which come
            // again with the next answer.
            while self.id.is_some() {
                let answer = self.sync(pool, 0).await?;
                self.follow(pool, answer);
                self.abandon(pool);
                if self.outbox.is_empty() && self.returned.is_empty() {
                    break;
                }
            }
            Ok::<_, WorkerError>(())
        };
        match timeout(FAREWELL, farewell).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!(%error, "could not hand over; the leases will run out"),
            Err(_elapsed) => warn!("no time left to hand over; the leases will run out"),
        }
    }
}

/// Pauses between tries: growing, jittered, for as long as it takes.
fn patience() -> backon::ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(20))
        .with_jitter()
        .without_max_times()
        .build()
}
