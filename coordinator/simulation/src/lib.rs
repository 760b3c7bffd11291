//! For development: a cluster in one thread, with everything that can go wrong in it, all drawn from a seed. What goes wrong
//! with one seed goes wrong with it again, on every machine.
//!
//! The scheduler and the workers' protocol are those that ship: both take time and events as arguments and give out what is to
//! be done. Simulated is what they stand on: the `ledger` forgets what was not committed, the `coordinator` makes
//! transactions of requests as the writer does, a `worker` has threads, a spool and a clock, and the `world` has the
//! network and the faults. `invariants` are what must hold.
//!
//! `docs/simulation.md` tells how to run it, and what it has found.

#![forbid(unsafe_code)]

mod ask;
mod coordinator;
mod invariants;
mod job;
mod ledger;
mod luck;
mod scenario;
pub mod search;
mod worker;
mod world;

pub use ledger::{Ledger, Record};
pub use scenario::{Fault, Scenario};
pub use world::{Campaign, Figures};

/// The ledger in memory after this many lives of the coordinator and transactions of a scenario, with all that was stored in
/// it: for another ledger to be held against it.
pub fn record(scenario: &Scenario, records: usize) -> Ledger {
    world::World::new(scenario).record(records)
}
