//! A cluster in one thread: hundreds of workers, a network, a disk, a clock, and everything that can go wrong with them,
//! all drawn from a seed. What goes wrong with one seed goes wrong with it again.
//!
//! The coordinator's state machine takes time and requests as arguments and gives out what is to be stored, so it runs
//! here as it does in the product. The rest is simulated: [`life`] groups requests into transactions as `writer` does,
//! [`store`] is a database that forgets what was not committed, [`worker`] counts and talks as the worker does, and
//! [`world`] has the network, the clock and the faults. Real sockets, files and processes have tests of their own; what
//! they can't have is thousands of histories a minute.
//!
//! `docs/simulation.md` tells how to run more of it, and what it has found.

mod life;
mod scenario;
mod store;
mod witness;
mod worker;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::scenario::{Fault, Scenario};
use self::world::{Figures, World};

/// Seeds that every run of the tests takes: so many of small worlds, and a few of whatever size they are.
const SMALL: u64 = 300;
const ANY: u64 = 8;

/// Tries to make a failing scenario smaller, at most.
const TRIES_MAX: usize = 400;

/// What has failed once.
const REGRESSIONS: &[&str] = &[
    // Two processes under one name, after a backup was restored.
    "50 workers=12 runs=2 jobs=13 seconds=79 faults=loss,duplicate,death,failure,crash,restore,leap,operator",
];

/// Lets a scenario happen; the error is what did not hold.
fn outcome(scenario: &Scenario) -> Result<Figures, String> {
    catch_unwind(AssertUnwindSafe(|| World::new(scenario).run())).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })
}

/// The smallest scenario found that fails as this one does.
fn smallest(failing: Scenario) -> Scenario {
    let (mut smallest, mut tries) = (failing, 0);
    // What it says on its way there is of no interest.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    'smaller: while tries < TRIES_MAX {
        for simpler in smallest.simpler() {
            tries += 1;
            if outcome(&simpler).is_err() {
                smallest = simpler;
                continue 'smaller;
            }
        }
        break;
    }
    std::panic::set_hook(hook);
    smallest
}

fn check(scenario: Scenario) -> Figures {
    outcome(&scenario).unwrap_or_else(|what| {
        let smallest = smallest(scenario.clone());
        let why = outcome(&smallest).expect_err("it failed a moment ago");
        panic!(
            "{what}\n  SIMULATION='{scenario}'\nand smaller: {why}\n  SIMULATION='{smallest}'\n\
             replay it with that variable and: cargo test -p nqueens-scheduler --lib simulation::one -- --ignored --nocapture"
        )
    })
}

#[test]
fn nothing_is_lost_and_nothing_counted_twice() {
    for seed in 0..SMALL {
        check(Scenario::of(seed).small());
    }
    for seed in 0..ANY {
        check(Scenario::of(seed));
    }
}

#[test]
fn what_has_failed_once_does_not_fail_again() {
    for text in REGRESSIONS {
        check(text.parse().expect("a scenario"));
    }
}

#[test]
fn scenarios_read_back_what_they_print() {
    for seed in 0..100 {
        let scenario = Scenario::of(seed);
        assert_eq!(scenario.to_string().parse(), Ok(scenario));
    }
}

#[test]
#[ignore = "replays the scenario in the variable SIMULATION"]
fn one() {
    let text = std::env::var("SIMULATION").expect("SIMULATION holds a seed or a scenario");
    let figures = World::new(&text.parse().expect("a scenario")).run();
    println!("{figures:?}");
}

#[test]
#[ignore = "takes as many seeds as the variable SIMULATION_SEEDS says: FIRST..END"]
fn many() {
    let range = std::env::var("SIMULATION_SEEDS").unwrap_or_else(|_| "0..10000".to_owned());
    let (first, end) = range.split_once("..").expect("FIRST..END");
    let [first, end] = [first, end].map(|number| number.parse::<u64>().expect("a number"));
    let mut sum = Figures::default();
    for seed in first..end {
        let figures = check(Scenario::of(seed));
        sum.steps += figures.steps;
        sum.commits += figures.commits;
        sum.results += figures.results;
        sum.done += figures.done;
        sum.simulated_ms += figures.simulated_ms;
        sum.faults.iter_mut().zip(figures.faults).for_each(|(sum, more)| *sum += more);
    }
    let days = sum.simulated_ms / 86_400_000;
    println!("{} seeds, {} steps, {} commits, {days} days", end - first, sum.steps, sum.commits);
    println!("{} jobs done at the end, {} results kept", sum.done, sum.results);
    for (fault, times) in Fault::ALL.iter().zip(sum.faults) {
        println!("{:>10} {times}", fault.name());
    }
}
