//! One look at the batch system and the coordinator, and what is done about it.

use std::io;

use crate::UnixSeconds;
use crate::backend::Backend;
use crate::decide::{FleetLimits, decide, submitted};
use crate::state::{Demand, FleetState};

/// Where the state of a fleet lies.
pub trait StateStore {
    /// Reads the state, changes it, and returns when it is safe.
    fn change<T>(&self, change: impl FnOnce(&mut FleetState) -> T) -> io::Result<T>;
}

/// Looks once, and acts. `clock` tells the time. `demand` is what the coordinator answered a moment ago, `None` if it did
/// not. `log` gets a line for each event and decision.
///
/// The state is on disk before a submit, and again after its answer: a process that is killed between the two does not
/// submit twice in its next life.
pub fn look<Store: StateStore>(
    clock: impl Fn() -> UnixSeconds,
    store: &Store,
    backend: &mut dyn Backend,
    limits: &FleetLimits,
    demand: Option<Demand>,
    mut log: impl FnMut(String),
) -> io::Result<()> {
    let asked_at = clock();
    let known = store.change(|state| state.not_ended())?;
    let queue = backend.list(&known);
    let decision = store.change(|state| {
        state.list_error = queue.as_ref().err().map(ToString::to_string);
        decide(clock(), asked_at, state, limits, queue.as_ref().ok(), demand)
    })?;
    decision.notes.into_iter().for_each(&mut log);
    if let Err(error) = backend.end(&decision.end) {
        // Whoever is still there is told again.
        log(format!("can't end allocations: {error}"));
    }
    let mut next = Some(decision.submit).filter(|count| *count > 0);
    while let Some(count) = next {
        let answer = backend.submit(count);
        let (note, fewer) = store.change(|state| submitted(clock(), state, count, answer))?;
        log(note);
        next = fewer;
    }
    Ok(())
}
