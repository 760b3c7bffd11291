//! Jobs counted again by another road.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::job::Class;
use nqueens_kernel::solver::Solver;

use crate::sample::Claim;

/// A job that was counted again.
#[derive(Clone, Debug)]
pub struct Recount {
    /// What the ledger says.
    pub claim: Claim,
    /// The engine that counted again.
    pub kernel: Kernel,
    /// What it found; the error says why there was nothing to count.
    pub found: Result<Counts, String>,
}

impl Recount {
    /// Whether both agree.
    pub fn agrees(&self) -> bool {
        self.found == Ok(self.claim.counts)
    }
}

/// The fastest engine that shares no search with the one that counted. The block engines are one search for several kinds
/// of CPU; half boards were joined, and are counted row by row now.
pub fn other_road(class: Class, counted_by: Kernel) -> Kernel {
    match counted_by {
        Kernel::Portable | Kernel::Avx2 | Kernel::Avx512 if class != Class::Halves => Kernel::Scalar,
        _ => Kernel::best(),
    }
}

/// Counts jobs again, in their order, on some threads: each job's mirror image, by the engine that is asked for or by
/// [another one](other_road) than counted it before. `done` hears of every job that is done; those that were not when
/// `control` stopped it, it never hears of.
///
/// # Panics
/// If this machine can't run `kernel`.
pub fn recount(
    claims: &[Claim],
    kernel: Option<Kernel>,
    threads: NonZeroUsize,
    control: &Control,
    done: impl FnMut(Recount) + Send,
) {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(done));
    let work = || {
        let mut solvers = BTreeMap::new();
        while let Some(claim) = claims.get(next.fetch_add(1, Ordering::Relaxed)) {
            let kernel = kernel.unwrap_or_else(|| other_road(claim.job.class, claim.kernel));
            let solver = solvers
                .entry(kernel)
                .or_insert_with(|| Solver::recounting(kernel).expect("an engine for this machine"));
            let Ok(found) = count(claim, solver, control) else { return };
            let recount = Recount { claim: claim.clone(), kernel, found };
            done.lock().expect("nobody panics there")(recount);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.get().min(claims.len()) {
            scope.spawn(work);
        }
    });
}

fn count(claim: &Claim, solver: &mut Solver, control: &Control) -> Result<Result<Counts, String>, Stopped> {
    let job = match claim.job.decode() {
        Ok(job) => job,
        Err(invalid) => return Ok(Err(format!("it is no job: {invalid}"))),
    };
    let mut sum = Counts::ZERO;
    for unit in job.units(solver.leaf_test()) {
        match sum.checked_add(unit.solve(solver, control)?.counts) {
            Ok(more) => sum = more,
            Err(overflow) => return Ok(Err(overflow.to_string())),
        }
    }
    Ok(Ok(sum))
}
