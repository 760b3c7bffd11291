//! Thousands of simulated clusters, each from a seed: the real decisions against a batch system that refuses, forgets to
//! answer, preempts, requeues, loses nodes and lingers, and against restarts of the fleet, with its state or without.

mod cluster;
mod life;

use std::num::NonZeroU64;

/// Number of seeds, or one seed: `FLEET_SEEDS=100000`, `FLEET_SEED=7`.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn fleets_keep_their_promises() {
    if let Some(seed) = variable("FLEET_SEED") {
        println!("{:#?}", life::live(seed));
        return;
    }
    let seeds = variable("FLEET_SEEDS").and_then(NonZeroU64::new).map_or(2_000, NonZeroU64::get);
    let mut all = life::Happened::default();
    for seed in 0..seeds {
        let lived = std::panic::catch_unwind(|| life::live(seed));
        all.add(&lived.unwrap_or_else(|_| panic!("seed {seed} fails; FLEET_SEED={seed} repeats it")));
    }
    println!("{seeds} seeds: {all:#?}");
    // A simulation in which nothing happens proves nothing.
    let happened = [
        all.submitted,
        all.refused,
        all.limited,
        all.uncertain,
        all.preempted,
        all.requeued,
        all.nodes_lost,
        all.held,
        all.lingered,
        all.failed,
        all.restarts,
        all.states_lost,
        all.away,
        all.stops,
        all.unlisted,
        all.killed_in_submit,
    ];
    assert!(happened.iter().all(|times| *times > seeds / 100), "{all:#?}");
}

#[test]
fn ten_thousand_allocations_run_within_ten_minutes_and_then_the_batch_system_has_peace() {
    let (ramp, calls) = life::grow_large();
    println!("all run after {ramp} s; calls a minute: {calls:?}");
    assert!(ramp < 600, "{ramp} s");
    assert!(calls.iter().all(|calls| *calls <= 4), "{calls:?}");
}
