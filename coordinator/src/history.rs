//! What operators look back on: the latest events, and how the runs went over time. The database has the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use nqueens_ledger as ledger;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Event, History, Interval, Moment, RunState, WallTime};
use sqlx::sqlite::SqliteConnection;

use crate::error::Error;
use crate::progress::{RunProgress, Snapshot};

/// The latest events, oldest first.
pub type Events = Arc<Vec<Event>>;

/// Runs with a history. When another one begins, that which has been over for longest loses its own.
const RUNS_MAX: usize = 64;

/// The histories of runs; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histories(Arc<Mutex<HashMap<RunId, History>>>);

/// What is to be added at a time, and what goes for it.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    moments: Vec<(RunId, Moment)>,
    forgotten: Vec<RunId>,
}

impl Growth {
    /// Stores it, inside of the transaction that is open on `db`.
    pub(crate) async fn persist(&self, db: &mut SqliteConnection) -> Result<(), Error> {
        for run in &self.forgotten {
            ledger::delete_moments(db, *run).await?;
        }
        for (run, moment) in &self.moments {
            ledger::insert_moment(db, *run, moment).await?;
        }
        Ok(())
    }
}

impl Histories {
    /// Goes on with what is stored.
    pub(crate) fn restored(stored: HashMap<RunId, History>) -> Self {
        Self(Arc::new(Mutex::new(stored)))
    }

    /// What a snapshot adds, as of a time.
    pub(crate) fn growth(&self, at: WallTime, snapshot: &Snapshot) -> Growth {
        let histories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_active = |id: RunId| snapshot.run(id).is_some_and(|run| run.state == RunState::Active);
        let mut growth = Growth::default();
        let mut kept = histories.len();
        for run in snapshot.runs.iter().filter(|run| run.state == RunState::Active) {
            match histories.get(&run.id) {
                Some(history) if !history.is_due(at) => continue,
                Some(_) => {}
                None if kept < RUNS_MAX => kept += 1,
                None => {
                    let over =
                        histories.iter().filter(|(id, _)| !is_active(**id) && !growth.forgotten.contains(id));
                    let latest = |history: &History| history.moments().last().map(|moment| moment.at);
                    let Some((id, _)) = over.min_by_key(|(id, history)| (latest(history), **id)) else {
                        continue;
                    };
                    growth.forgotten.push(*id);
                }
            }
            growth.moments.push((run.id, moment(at, run)));
        }
        growth
    }

    /// Takes up what has been stored.
    pub(crate) fn grow(&self, growth: Growth) {
        let mut histories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        histories.retain(|run, _| !growth.forgotten.contains(run));
        for (run, moment) in growth.moments {
            histories.entry(run).or_default().add(moment);
        }
    }

    /// The moments of a run, oldest first; none if it was not followed.
    pub(crate) fn of(&self, run: RunId) -> Vec<Moment> {
        let histories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        histories.get(&run).map_or_else(Vec::new, |history| history.moments().to_vec())
    }
}

/// The database has no room for numbers that are none, and results must not wait for them.
fn moment(at: WallTime, run: &RunProgress) -> Moment {
    let known =
        |found: Interval| [found.value, found.low, found.high].iter().all(|number| number.is_finite());
    Moment {
        at,
        share_done: run.share_done(),
        states_per_s: run.measured.map(|measured| measured.speed.states_per_s),
        total: run.estimated_total().filter(|total| known(*total)),
        time_left_s: run.time_left_s().filter(|left| known(*left)),
    }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::plan::{Plan, PlanKind};
    use nqueens_scheduler::Sums;

    use super::*;

    fn run(id: u64, state: RunState) -> RunProgress {
        let plan = Plan::new(BoardSize::new(8).unwrap(), PlanKind::Border);
        let (id, sums) = (RunId::new(id).unwrap(), Sums::default());
        let (measured, threads, workers) = (None, None, 0);
        RunProgress { id, plan, state, jobs: 0, planned: None, sums, measured, threads, workers }
    }

    #[test]
    fn a_run_that_is_over_makes_room_for_another() {
        let histories = Histories::default();
        let note = |at, runs: &dyn Fn(u64) -> RunState| {
            let runs = (1..=RUNS_MAX as u64 + 1).map(|id| run(id, runs(id))).collect();
            histories.grow(histories.growth(at, &Snapshot { runs, ..Snapshot::default() }));
        };
        let moments = |id| histories.of(RunId::new(id).unwrap()).len();
        let last = RUNS_MAX as u64 + 1;
        note(0, &|_| RunState::Active);
        note(500, &|_| RunState::Active);
        assert_eq!(
            [1, 2, 3, last].map(moments),
            [1, 1, 1, 0],
            "a moment a second, and no room for one more run"
        );
        note(1_000, &|id| if id == 3 || id == last { RunState::Paused } else { RunState::Active });
        note(2_000, &|id| if id == 2 || id == 3 { RunState::Done } else { RunState::Active });
        assert_eq!([1, 2, 3, last].map(moments), [3, 2, 0, 1], "3 was over before 2");
    }
}
