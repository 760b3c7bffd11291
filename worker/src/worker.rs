//! A worker's life: register, then sync until told to go.

use std::future::Future;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::time::Duration;

use nqueens_kernel::engine::Kernel;
use nqueens_model::id::{LeaseToken, WorkerId};
use nqueens_model::message::{
    BATCH_MAX, HeldLease, Registration, ReturnedLease, SyncRequest, SyncResponse, Verdict,
};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::client::{Client, WorkerError};
use crate::outage::Outage;
use crate::outbox::Outbox;
use crate::pool::{Finished, Load, Pool};
use crate::selftest::Proof;
use crate::spool::Spool;

/// Results wait so long for company, unless the pool runs dry.
const FLUSH: Duration = Duration::from_millis(250);

/// Two syncs are at least so far apart, and two looks at what the threads have finished, while they have more to do.
const BREATH: Duration = Duration::from_millis(10);

/// At its end it has so long to hand over what it has.
const FAREWELL: Duration = Duration::from_secs(5);

/// Jobs held and results waiting, at most.
const HELD_MAX: usize = 5 * BATCH_MAX;

/// Jobs for each thread at once while its speed is not known.
const FIRST_JOBS: usize = 32;

/// How a worker is set up.
#[derive(Debug)]
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
    /// Bytes that joins of half boards and multiplied colours may take, all threads together.
    pub memory_max: u64,
    /// Where results are kept until they are acknowledged; without one they die with the process.
    pub spool: Option<Spool>,
    /// When told to go, it has so long to finish the jobs that have begun; it hands back the others at once.
    pub drain: Duration,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Results that the coordinator took.
    pub accepted: u64,
    /// Results that it did not.
    pub refused: u64,
    /// Results that could not be reported before the end; a spool has them.
    pub unreported: usize,
    /// Leases that could not be handed back; they will run out.
    pub unreturned: usize,
    /// Whether the coordinator told it to go.
    pub dismissed: bool,
}

/// Works for a coordinator until `stop`, or until that tells it to go; then finishes what it can in the time that
/// it has for it, and hands back the rest.
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
    let pool = Pool::start(config.engine.kernel, config.threads, config.memory_max);
    let mut worker = Worker {
        client,
        registration,
        id: None,
        outbox: Outbox::new(config.spool),
        returned: Vec::new(),
        states_per_s,
        measured: false,
        drain: config.drain,
        deadline: None,
        in_doubt: false,
        summary: Summary::default(),
    };
    let outcome = worker.serve(&pool, stop).await;
    worker.take_leave(&pool, outcome.is_ok()).await;
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
    /// Work at hand after its last answer, in estimated states.
    stocked: u64,
    /// When it last answered.
    synced: Option<Instant>,
}

struct Worker {
    client: Client,
    registration: Registration,
    id: Option<WorkerId>,
    /// Counted, not acknowledged.
    outbox: Outbox,
    /// To be given back.
    returned: Vec<ReturnedLease>,
    /// Speed in estimated states, all threads together.
    states_per_s: f64,
    /// Whether that was measured on the run's own jobs; if not, it is a guess from the engine's test.
    measured: bool,
    /// Time for begun jobs once it is told to go.
    drain: Duration,
    /// It was told to go: until when it may count on.
    deadline: Option<Instant>,
    /// It asked for leases and has not heard since: some may be its own without its knowing.
    in_doubt: bool,
    summary: Summary,
}

impl Worker {
    async fn serve(&mut self, pool: &Pool, stop: impl Future<Output = ()>) -> Result<(), WorkerError> {
        let mut stop = pin!(stop);
        let mut outage: Option<Outage> = None;
        let mut rhythm =
            Rhythm { ahead: Duration::from_millis(200), more_work: true, stocked: 0, synced: None };
        let mut next = Instant::now();
        let mut rested = next;
        loop {
            let wake = [self.outbox.store_at(), self.deadline].into_iter().flatten().fold(next, Instant::min);
            tokio::select! {
                biased;
                () = &mut stop, if self.deadline.is_none() => {
                    self.leave(pool);
                    next = Instant::now();
                }
                () = pool.ran_dry() => {}
                () = async { sleep_until(rested).await; pool.stirred().await } => {}
                () = sleep_until(wake) => {}
            }
            rested = Instant::now() + BREATH;
            self.collect(pool);
            if self.outbox.store_at().is_some_and(|at| at <= Instant::now()) {
                self.outbox.store().await;
            }
            if self.is_done(pool) {
                return Ok(());
            }
            let (load, wanted) = (pool.load(), self.wanted(rhythm.ahead));
            if outage.is_none() {
                next = self.next_sync(&rhythm, load, wanted);
            }
            if Instant::now() < next {
                continue;
            }
            self.outbox.store().await;
            let deadline = self.deadline;
            // Giving the call up half-way is harmless: it is the same call next time.
            let outcome = tokio::select! {
                outcome = self.sync(pool, wanted.saturating_sub(load.states)) => outcome,
                () = &mut stop, if deadline.is_none() => {
                    self.leave(pool);
                    next = Instant::now();
                    continue;
                }
                () = reached(deadline) => return Ok(()),
            };
            match outcome {
                Ok(answer) => {
                    if let Some(outage) = outage.take() {
                        outage.end();
                    }
                    rhythm = Rhythm {
                        ahead: Duration::from_millis(answer.next_sync_ms.into()),
                        more_work: !answer.leases.is_empty() || wanted <= load.states,
                        stocked: 0,
                        synced: Some(Instant::now()),
                    };
                    next = Instant::now();
                    self.follow(pool, answer).await?;
                    rhythm.stocked = pool.load().states;
                }
                Err(error) if error.is_passing() => {
                    let outage = outage.get_or_insert_with(Outage::begin);
                    next = Instant::now() + outage.pause(&error, self.client.url());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes no more work, and gives back what has not begun.
    fn leave(&mut self, pool: &Pool) {
        self.give_back(pool.take_waiting());
        let (begun, drain_s) = (pool.load().jobs, self.drain.as_secs());
        info!(begun, returned = self.returned.len(), drain_s, "leaving: begun jobs have so long to finish");
        self.deadline = Some(Instant::now() + self.drain);
    }

    fn give_back(&mut self, tokens: impl IntoIterator<Item = LeaseToken>) {
        self.returned.extend(tokens.into_iter().map(|token| ReturnedLease { token, failure: None }));
    }

    /// Whether it was told to go, and there is nothing left to do or no time left to do it.
    fn is_done(&self, pool: &Pool) -> bool {
        self.deadline.is_some_and(|deadline| {
            deadline <= Instant::now() || (pool.load().jobs == 0 && !self.has_to_say())
        })
    }

    /// Whether there is anything to report or to hand back.
    fn has_to_say(&self) -> bool {
        !self.outbox.is_empty() || !self.returned.is_empty() || (self.deadline.is_some() && self.in_doubt)
    }

    /// When there is something to say: at once if threads are about to idle, soon if there are results, and at the
    /// coordinator's rhythm in any case.
    fn next_sync(&self, rhythm: &Rhythm, load: Load, wanted: u64) -> Instant {
        let Some(synced) = rhythm.synced else { return Instant::now() };
        // It may have got less than it wanted, for there are others: then it asks again when half of that is used up.
        let hungry = rhythm.more_work && load.states < wanted / 2 && load.states <= rhythm.stocked / 2;
        let to_say = self.has_to_say();
        let full = self.outbox.len() >= BATCH_MAX / 2;
        // With nothing to do it asks at once: the coordinator keeps it waiting until there is work.
        let pause = if load.jobs == 0 && to_say {
            Duration::ZERO
        } else if hungry || (to_say && full) || load.jobs == 0 {
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
        if self.deadline.is_some() {
            return 0;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let states = (self.states_per_s * 2.0 * ahead.as_secs_f64()) as u64;
        // Engines are far faster on larger boards than in their test.
        if self.measured { states.max(1) } else { states.saturating_mul(100) }
    }

    async fn sync(&mut self, pool: &Pool, wanted_states: u64) -> Result<SyncResponse, WorkerError> {
        // A coordinator that has forgotten this worker gets to know it again, once.
        for _ in 0..2 {
            let worker = match self.id {
                Some(id) => id,
                None => self.register().await?,
            };
            let report = self.report(pool, worker, wanted_states);
            self.in_doubt |= report.wanted_jobs > 0;
            match self.client.sync(report).await {
                Err(WorkerError::Unregistered) => (self.id, self.in_doubt) = (None, false),
                Err(error) => return Err(error),
                Ok(answer) => {
                    self.in_doubt = false;
                    return Ok(answer);
                }
            }
        }
        Err(WorkerError::Unregistered)
    }

    /// Everything that there is to say.
    fn report(&self, pool: &Pool, worker: WorkerId, wanted_states: u64) -> SyncRequest {
        let mut held = pool.held();
        let first = if self.measured { BATCH_MAX } else { FIRST_JOBS * self.registration.threads as usize };
        let wanted_jobs = HELD_MAX.saturating_sub(held.len() + self.outbox.len()).min(BATCH_MAX).min(first);
        // What waits for a later batch is still held.
        let later = self.outbox.later().map(|result| result.token);
        let later = later.chain(self.returned.iter().skip(BATCH_MAX).map(|returned| returned.token));
        held.extend(later.map(|token| HeldLease { token, states: 0 }));
        // Beyond that it can only be another's: a spool may hold any number.
        held.truncate(2 * HELD_MAX);
        SyncRequest {
            worker,
            instance: Some(self.registration.instance),
            results: self.outbox.batch().copied().collect(),
            held,
            returned: self.returned.iter().take(BATCH_MAX).cloned().collect(),
            wanted_states,
            wanted_jobs: if wanted_states > 0 { wanted_jobs } else { 0 },
        }
    }

    async fn register(&mut self) -> Result<WorkerId, WorkerError> {
        let id = self.client.register(&self.registration).await?;
        info!(worker = %id, name = self.registration.name, threads = self.registration.threads, "registered");
        self.id = Some(id);
        Ok(id)
    }

    /// Does what the coordinator says.
    async fn follow(&mut self, pool: &Pool, answer: SyncResponse) -> Result<(), WorkerError> {
        debug!(acks = answer.acks.len(), leases = answer.leases.len(), held = pool.load().jobs, "synced");
        self.outbox.acknowledge(&answer.acks).await?;
        for ack in &answer.acks {
            match ack.verdict {
                Verdict::Accepted => self.summary.accepted += 1,
                verdict => {
                    self.summary.refused += 1;
                    debug!(job = %ack.token.job, ?verdict, reason = ack.reason, "result not accepted");
                }
            }
        }
        self.returned.drain(..self.returned.len().min(BATCH_MAX));
        if !answer.revoked.is_empty() {
            debug!(jobs = answer.revoked.len(), "leases revoked");
        }
        pool.revoke(&answer.revoked);
        if self.deadline.is_some() {
            // Granted before it was told to go; the answer had got lost.
            self.give_back(answer.leases.into_iter().map(|lease| lease.token));
            return Ok(());
        }
        pool.add(answer.leases);
        if answer.drain {
            info!("an operator asked this worker to go");
            self.summary.dismissed = true;
            self.leave(pool);
        }
        Ok(())
    }

    /// Reports what is counted and hands back the rest, within [`FAREWELL`]; puts on disk what can't be reported.
    async fn take_leave(&mut self, pool: &Pool, on_terms: bool) {
        self.give_back(pool.abandon());
        self.collect(pool);
        self.outbox.store().await;
        let farewell = async {
            while on_terms && self.has_to_say() {
                let answer = self.sync(pool, 0).await?;
                self.follow(pool, answer).await?;
            }
            Ok::<_, WorkerError>(())
        };
        let handed_over = timeout(FAREWELL, farewell).await;
        (self.summary.unreported, self.summary.unreturned) = (self.outbox.len(), self.returned.len());
        let Summary { unreported, unreturned, .. } = self.summary;
        if self.has_to_say() {
            let reason = match handed_over {
                Ok(Ok(())) => "refused".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(elapsed) => elapsed.to_string(),
            };
            let kept = self.outbox.is_kept();
            warn!(
                reason,
                unreported, kept, unreturned, "could not hand over everything; the leases will run out"
            );
        }
    }
}

/// Waits for a moment that may never come.
async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
