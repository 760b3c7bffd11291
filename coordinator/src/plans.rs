//! The runs that are being planned: one at a time, the others wait. They live in memory: a coordinator that restarts drops
//! what is not planned to its end.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use nqueens_kernel::plan::PlanSize;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Recounts, RunState, RunStatus, WallTime};
use nqueens_scheduler::{RunSettings, Sums};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

use crate::error::Error;
use crate::planner::BATCH;
use crate::progress::RunProgress;

/// Runs that are planned or wait for it.
const PLANS_MAX: usize = 16;

/// Runs whose end is kept for those who ask why they are gone.
const FAILURES_MAX: usize = 64;

/// A run whose jobs are not all stored.
#[derive(Clone, Copy, Debug)]
pub struct UnplannedRun {
    /// What it is to be.
    pub(crate) settings: RunSettings,
    /// When it was submitted.
    pub(crate) created_at: WallTime,
    /// About how many jobs it will have.
    pub(crate) expected: u32,
    /// Jobs stored so far.
    pub(crate) stored: u32,
}

impl UnplannedRun {
    pub(crate) fn new(settings: RunSettings, size: PlanSize, created_at: WallTime, stored: u32) -> Self {
        let expected = u32::try_from(size.about).unwrap_or(u32::MAX);
        Self { settings, created_at, expected, stored }
    }

    pub(crate) fn id(&self) -> RunId {
        self.settings.id
    }

    pub(crate) fn progress(&self) -> RunProgress {
        let RunSettings { id, plan, .. } = self.settings;
        // What was expected may have been too few.
        let jobs = self.expected.max(self.stored);
        let run = RunProgress::new(id, plan, RunState::Planning, jobs, &Sums::default());
        RunProgress { planned: Some(self.stored), ..run }
    }

    /// The run in full.
    pub fn status(&self) -> RunStatus {
        let RunSettings { priority, replicate_ppm, .. } = self.settings;
        RunStatus {
            progress: (&self.progress()).into(),
            fingerprint: None,
            priority,
            replicate_ppm,
            reason: None,
            created_at: self.created_at,
            started_at: None,
            finished_at: None,
            outcome: None,
            recounts: Recounts::default(),
        }
    }
}

/// How far a plan is.
#[derive(Clone, Debug, Default)]
struct PlanningState {
    /// Another run's turn comes first.
    waits: bool,
    stored: u32,
    is_cancelled: bool,
    end: Option<Result<(), Arc<Error>>>,
}

/// A run that is being planned.
#[derive(Debug)]
pub(crate) struct Planning {
    begun: UnplannedRun,
    stage: watch::Sender<PlanningState>,
}

impl Planning {
    pub(crate) fn settings(&self) -> &RunSettings {
        &self.begun.settings
    }

    pub(crate) fn run(&self) -> UnplannedRun {
        UnplannedRun { stored: self.stage.borrow().stored, ..self.begun }
    }

    pub(crate) fn note_stored(&self, jobs: u32) {
        self.stage.send_modify(|stage| stage.stored = jobs);
    }

    /// Asks for its end, which comes unless its last job is stored before.
    pub(crate) fn cancel(&self) {
        self.stage.send_modify(|stage| stage.is_cancelled = true);
    }

    /// Waits until somebody cancels it.
    pub(crate) async fn cancelled(&self) {
        self.until(|stage| stage.is_cancelled).await;
    }

    /// Waits until it has ended, or is going to take a while.
    pub(crate) async fn underway(&self) -> Result<(), Arc<Error>> {
        let stage = self.until(|stage| stage.end.is_some() || stage.waits || stage.stored >= BATCH).await;
        stage.end.unwrap_or(Ok(()))
    }

    /// Waits until it has ended: all jobs are stored, or none.
    pub(crate) async fn ended(&self) -> Result<(), Arc<Error>> {
        self.until(|stage| stage.end.is_some()).await.end.expect("it has ended")
    }

    async fn until(&self, like: impl FnMut(&PlanningState) -> bool) -> PlanningState {
        self.stage.subscribe().wait_for(like).await.expect("the sender is here").clone()
    }
}

/// All of them; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plans {
    turn: Arc<Mutex<()>>,
    registry: Arc<StdMutex<PlanRegistry>>,
}

#[derive(Debug, Default)]
struct PlanRegistry {
    open: BTreeMap<RunId, Arc<Planning>>,
    /// The latest that were not planned to their ends, and why.
    failed: VecDeque<(RunId, Arc<Error>)>,
}

impl Plans {
    fn registry(&self) -> MutexGuard<'_, PlanRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a run, unless one of its name is here; says whether this one is new.
    pub(crate) fn enter(&self, begun: UnplannedRun) -> Result<(Arc<Planning>, bool), Error> {
        let mut registry = self.registry();
        if let Some(planning) = registry.open.get(&begun.id()) {
            return Ok((Arc::clone(planning), false));
        }
        if registry.open.len() >= PLANS_MAX {
            return Err(Error::TooManyPlans(PLANS_MAX));
        }
        registry.failed.retain(|(run, _)| *run != begun.id());
        let planning = Arc::new(Planning { begun, stage: watch::Sender::default() });
        registry.open.insert(begun.id(), Arc::clone(&planning));
        Ok((planning, true))
    }

    pub(crate) fn get(&self, run: RunId) -> Option<Arc<Planning>> {
        self.registry().open.get(&run).cloned()
    }

    /// All, oldest first.
    pub(crate) fn runs(&self) -> Vec<UnplannedRun> {
        let mut runs: Vec<_> = self.registry().open.values().map(|planning| planning.run()).collect();
        runs.sort_by_key(|run| (run.created_at, run.id()));
        runs
    }

    /// Why a run was not planned to its end.
    pub(crate) fn failure(&self, run: RunId) -> Option<Arc<Error>> {
        self.registry().failed.iter().find(|(failed, _)| *failed == run).map(|(_, error)| Arc::clone(error))
    }

    /// Waits until it is a run's turn, which is over when the guard is dropped; `None` if it is cancelled before.
    pub(crate) async fn turn(&self, planning: &Planning) -> Option<OwnedMutexGuard<()>> {
        if let Ok(turn) = Arc::clone(&self.turn).try_lock_owned() {
            return Some(turn);
        }
        planning.stage.send_modify(|stage| stage.waits = true);
        tokio::select! {
            turn = Arc::clone(&self.turn).lock_owned() => Some(turn),
            () = planning.cancelled() => None,
        }
    }

    /// Removes a run from the registry, and tells those who wait for it.
    pub(crate) fn end(&self, planning: &Planning, end: Result<(), Arc<Error>>) {
        let (run, mut registry) = (planning.begun.id(), self.registry());
        registry.open.remove(&run);
        if let Err(error) = &end {
            registry.failed.push_back((run, Arc::clone(error)));
            let surplus = registry.failed.len().saturating_sub(FAILURES_MAX);
            registry.failed.drain(..surplus);
        }
        drop(registry);
        planning.stage.send_modify(|stage| stage.end = Some(end));
    }
}
