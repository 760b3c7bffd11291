//! Samples against published counts.

use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::known::published;
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::sampling::{Estimate, Estimates, Sampler};
use nqueens_kernel::solver::Solver;

use crate::board;

const SEEDS: u32 = 300;

/// A solver as fast as any on boards of this size.
fn solver() -> Solver {
    Solver::new(Kernel::Scalar.engine().expect("it runs everywhere"), 1 << 20)
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn truth(n: u32) -> f64 {
    published(board(n)).expect("small boards are known").total as f64
}

/// What 300 strata say, with so few states counted below each descent that much is left to guess on small boards.
fn estimates(sampler: &Sampler, seed: u64, solver: &mut Solver) -> Estimates {
    const STRATA: u32 = 300;
    let control = Control::default();
    let draw = |number| sampler.draw((number, STRATA), seed, 20, solver, &control).expect("nobody stops it");
    sampler.estimate(&(0..STRATA).map(draw).collect::<Vec<_>>())
}

fn holds(estimate: Estimate, truth: f64) -> bool {
    estimate.low() <= truth && truth <= estimate.high()
}

#[test]
fn intervals_hold_the_truth_about_as_often_as_they_say() {
    let (mut solver, mut held_in_all, mut boards) = (solver(), [0; 2], 0);
    for kind in [PlanKind::Border, PlanKind::Rows] {
        for n in 8..=12 {
            let sampler = Sampler::new(board(n), kind);
            let all = sampler.count(&mut solver, &Control::default()).expect("nobody stops it");
            assert_eq!((all.solutions.value, all.solutions.reach), (truth(n), 0.0), "{kind}, N = {n}");
            let (mut held, mut sum, mut squares) = ([0; 2], 0.0, 0.0);
            for seed in 0..SEEDS {
                let Estimates { solutions, states } = estimates(&sampler, seed.into(), &mut solver);
                held[0] += u32::from(holds(solutions, truth(n)));
                held[1] += u32::from(holds(states, all.states.value));
                sum += solutions.value;
                squares += solutions.reach * solutions.reach;
            }
            // All seeds together are far more certain: they show a bias that no single interval would.
            let off = (sum - f64::from(SEEDS) * truth(n)).abs() / squares.sqrt();
            assert!(off < 1.5, "{kind}, N = {n}: the mean is off by {off} of its interval");
            assert!(
                held.iter().all(|&held| held * 100 >= SEEDS * 85),
                "{kind}, N = {n}: {held:?} of {SEEDS}"
            );
            (0..2).for_each(|what| held_in_all[what] += held[what]);
            boards += 1;
        }
    }
    for held in held_in_all {
        let percent = f64::from(held) * 100.0 / f64::from(boards * SEEDS);
        assert!((92.5..=97.0).contains(&percent), "{percent} % instead of 95");
    }
}

#[test]
fn boards_without_prefixes_are_known() {
    let mut solver = solver();
    for (n, solutions) in [(1, 1.0), (2, 0.0), (3, 0.0)] {
        let sampler = Sampler::new(board(n), PlanKind::Border);
        let sampled = estimates(&sampler, 1, &mut solver);
        assert_eq!((sampled.solutions.value, sampled.states.value), (solutions, 0.0), "N = {n}");
        assert_eq!(sampler.count(&mut solver, &Control::default()), Ok(sampled));
    }
}

#[test]
fn a_seed_gives_the_same_everywhere() {
    let sampler = Sampler::new(board(14), PlanKind::Border);
    let Estimates { solutions, .. } = estimates(&sampler, 1, &mut solver());
    assert_eq!((solutions.value, solutions.reach), (318_312.898_740_061_2, 86_600.108_586_276_56));
    assert!(holds(solutions, truth(14)));
    let other = estimates(&sampler, 2, &mut solver());
    assert_ne!(other.solutions, solutions);
}
