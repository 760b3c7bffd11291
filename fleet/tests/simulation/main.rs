//! Thousands of simulated clusters, each from a seed: the real decisions against a batch system that refuses, forgets to
//! answer, preempts, requeues, loses nodes and lingers, and against restarts of the fleet, with its state or without.

mod cluster;
mod life;

use std::num::NonZeroU64;

use life::{Happening, Tally};
use strum::VariantArray;

/// Number of seeds, or one seed: `FLEET_SEEDS=100000`, `FLEET_SEED=7`.
fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn told(tally: Tally) -> Vec<(Happening, u64)> {
    Happening::VARIANTS.iter().copied().zip(tally).collect()
}

#[test]
fn fleets_keep_their_promises() {
    if let Some(seed) = variable("FLEET_SEED") {
        println!("{:?}", told(life::live(seed)));
        return;
    }
    let seeds = variable("FLEET_SEEDS").and_then(NonZeroU64::new).map_or(2_000, NonZeroU64::get);
    let mut all = [0; Happening::VARIANTS.len()];
    for seed in 0..seeds {
        let lived = std::panic::catch_unwind(|| life::live(seed));
        let lived = lived.unwrap_or_else(|_| panic!("seed {seed} fails; FLEET_SEED={seed} repeats it"));
        all.iter_mut().zip(lived).for_each(|(all, times)| *all += times);
    }
    println!("{seeds} seeds: {:?}", told(all));
    // A simulation in which nothing happens proves nothing.
    assert!(all.iter().all(|times| *times > seeds / 100), "{:?}", told(all));
}

#[test]
fn ten_thousand_allocations_run_within_ten_minutes_and_then_the_batch_system_has_peace() {
    let (ramp, calls) = life::grow_large();
    println!("all run after {ramp} s; calls a minute: {calls:?}");
    assert!(ramp < 600, "{ramp} s");
    assert!(calls.iter().all(|calls| *calls <= 4), "{calls:?}");
}
