//! The worker's main loop: carries out the conversation's actions, in order, and reports what they lead to.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use nqueens_kernel::engine::Factory;
use nqueens_model::kernel::KernelName;
use nqueens_model::message::Registration;
use nqueens_proto::random_bytes;
use nqueens_worker_protocol::{
    Action, CallError, Conversation, ProtocolEvent, Setup, SpoolContents, Summary,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{Coordinator, WorkerError};
use crate::crew::{self, Crew};
use crate::pool::{MemoryMax, Pool};
use crate::spool::Spool;

/// Shortest time between two looks at what the threads have finished, while they have more to do.
const BREATH: Duration = Duration::from_millis(10);

/// A disk that takes longer for a write has failed.
const WRITE_MAX: Duration = Duration::from_secs(10);

/// Threads stop at once, but a device's waits for its launches first: two minutes at most for each of two.
const CLOSE_MAX: Duration = Duration::from_mins(5);

pub struct Config {
    /// What its owner calls it.
    pub name: String,
    /// Program version and source revision.
    pub build: String,
    /// Counting threads, at least one crew. The engine of the first is in use where a coordinator asks for another one than
    /// that of a first count.
    pub crews: Vec<Crew>,
    /// Where the threads have their engines from.
    pub factory: Arc<Factory>,
    /// Other engines that are offered.
    pub offered: Vec<KernelName>,
    pub memory: MemoryMax,
    /// Where results are kept until they are acknowledged; without one they die with the process.
    pub spool: Option<Spool>,
    /// Time for running jobs to finish after a stop; the others are returned at once.
    pub drain: Duration,
    /// The worker must be gone after this time; `None` for no limit.
    pub time_max: Option<Duration>,
    /// The worker goes when it had nothing to count for this time; `None` to wait for work without a limit.
    pub idle_max: Option<Duration>,
}

/// Works for a coordinator until `stop`, or until that tells it to go; then finishes what it can in the time that
/// it has for it, and hands back the rest.
///
/// Waits for an unreachable coordinator without a limit; an error is one that does not pass by waiting.
pub async fn work(
    config: Config,
    coordinator: impl Coordinator,
    stop: impl Future<Output = ()>,
) -> Result<Summary, WorkerError> {
    let begun = Instant::now();
    let mut kernels: Vec<_> = config.crews.iter().map(|crew| crew.kernel).chain(config.offered).collect();
    let mut seen = HashSet::new();
    kernels.retain(|kernel| seen.insert(*kernel));
    let registration = Registration {
        instance: random_bytes(),
        name: config.name,
        build: config.build,
        kernels,
        capability: Some(crew::capability(&config.crews)),
        threads: crew::threads(&config.crews),
    };
    let states_per_s = config.crews.iter().map(Crew::speed).sum();
    let pool = Pool::start(config.factory, config.crews, config.memory);
    let mut spool = config.spool;
    let conversation = Conversation::new(Setup {
        registration,
        states_per_s,
        drain: config.drain,
        deadline: config.time_max,
        idle_max: config.idle_max,
        coordinator: coordinator.address().to_owned(),
        spool: spool.as_mut().map(|spool| SpoolContents {
            name: spool.dir().display().to_string(),
            results: spool.take_recovered(),
        }),
    });
    let worker = Runtime { coordinator, pool, spool: spool.map(Arc::new), late: None, call: None, end: None };
    worker.live(begun, conversation, stop).await
}

/// A call to the coordinator and what comes of it.
type CallFuture = Pin<Box<dyn Future<Output = ProtocolEvent> + Send>>;

struct Runtime<C> {
    coordinator: C,
    pool: Pool,
    spool: Option<Arc<Spool>>,
    /// A write that took too long. Another one waits for its end: writes out of order could lose results.
    late: Option<JoinHandle<Result<(), String>>>,
    call: Option<CallFuture>,
    end: Option<Result<Summary, CallError>>,
}

impl<C: Coordinator> Runtime<C> {
    async fn live(
        mut self,
        begun: Instant,
        mut conversation: Conversation,
        stop: impl Future<Output = ()>,
    ) -> Result<Summary, WorkerError> {
        let (mut stop, mut stopped, mut abandoned) = (pin!(stop), false, false);
        let (mut rested, mut progressed) = (begun, false);
        let outcome = loop {
            if let Some(outcome) = self.end.take() {
                break outcome;
            }
            let wake = conversation.wake_at().map(|at| begun + at);
            let wake = wake.into_iter().chain(progressed.then_some(rested)).min();
            let (calling, call) = (self.call.is_some(), &mut self.call);
            let event = tokio::select! {
                biased;
                () = &mut stop, if !stopped => {
                    stopped = true;
                    ProtocolEvent::Stop
                }
                // Nothing can be counted, and what is left can be given back.
                () = self.pool.abandoned(), if !abandoned => {
                    (stopped, abandoned) = (true, true);
                    ProtocolEvent::Stop
                }
                event = async { call.as_mut().expect("polled only then").await }, if calling => {
                    self.call = None;
                    event
                }
                () = self.pool.idle() => ProtocolEvent::Looked(self.pool.look()),
                () = self.pool.progressed(), if !progressed => {
                    progressed = true;
                    continue;
                }
                () = sleep_until(wake.unwrap_or(begun)), if wake.is_some() => {
                    ProtocolEvent::Looked(self.pool.look())
                }
            };
            if matches!(event, ProtocolEvent::Looked(_)) {
                (rested, progressed) = (Instant::now() + BREATH, false);
            }
            let mut events = VecDeque::from([event]);
            while let Some(event) = events.pop_front() {
                for action in conversation.on(begun.elapsed(), event) {
                    events.extend(self.perform(action).await);
                }
            }
        };
        self.pool.close_within(CLOSE_MAX).await;
        if abandoned { Err(WorkerError::Abandoned) } else { outcome.map_err(WorkerError::Call) }
    }

    /// Does what the conversation wants; what comes of it at once.
    async fn perform(&mut self, action: Action) -> Option<ProtocolEvent> {
        match action {
            Action::Register(registration) => {
                let coordinator = self.coordinator.clone();
                self.call(
                    async move { coordinator.register(registration).await.map(ProtocolEvent::Registered) },
                );
            }
            Action::Sync(sync) => {
                let coordinator = self.coordinator.clone();
                self.call(async move { coordinator.sync(sync).await.map(ProtocolEvent::Answered) });
            }
            Action::Count(leases) => self.pool.add(leases),
            Action::Revoke(tokens) => self.pool.revoke(&tokens),
            Action::GiveUp { begun } => {
                self.pool.give_up(begun);
                return Some(ProtocolEvent::Looked(self.pool.look()));
            }
            Action::Write(change) => {
                let spool = Arc::clone(self.spool.as_ref().expect("only who has a spool is asked to write"));
                let late = Err("the disk does not answer".to_owned());
                if self.late.as_ref().is_some_and(|late| !late.is_finished()) {
                    return Some(ProtocolEvent::Written(change, late));
                }
                let written = change.clone();
                let mut writing = tokio::task::spawn_blocking(move || {
                    spool.write(&written).map_err(|error| error.to_string())
                });
                let Ok(outcome) = timeout(WRITE_MAX, &mut writing).await else {
                    self.late = Some(writing);
                    return Some(ProtocolEvent::Written(change, late));
                };
                return Some(ProtocolEvent::Written(change, outcome.expect("writing a file does not panic")));
            }
            Action::End(outcome) => self.end = Some(outcome),
        }
        None
    }

    /// Begins a call; one that is on its way is given up.
    fn call(&mut self, call: impl Future<Output = Result<ProtocolEvent, CallError>> + Send + 'static) {
        self.call = Some(Box::pin(async {
            call.await.unwrap_or_else(|error| {
                let jitter = f64::from(u32::from_ne_bytes(random_bytes())) / 2_f64.powi(32);
                ProtocolEvent::Failed { error, jitter }
            })
        }));
    }
}
