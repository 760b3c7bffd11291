//! Jobs counted again by an independent engine.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::solver::Solver;

use crate::parts::Parts;
use crate::sample::Claim;

/// A job that was counted again.
#[derive(Clone, Debug)]
pub struct Recount {
    /// What the ledger says.
    pub claim: Claim,
    /// The engine that counted again.
    pub kernel: Kernel,
    /// Parts of the job whose solutions were found one by one as well, for all of it would have taken too long.
    pub parts: u32,
    /// What it found; the error says why there was nothing to count, or that the parts came to something else.
    pub found: Result<Counts, String>,
}

impl Recount {
    /// Whether both agree.
    pub fn agrees(&self) -> bool {
        self.found == Ok(self.claim.counts)
    }
}

/// The fastest engine that shares no search with the first one. The block engines are one search for several kinds of
/// CPU. Half boards were joined, and are recounted row by row; colours were multiplied by the block engines, and are
/// searched by the plain ones.
pub fn other_road(class: Class, counted_by: Kernel) -> Kernel {
    match counted_by {
        Kernel::Portable | Kernel::Avx2 | Kernel::Avx512 if class != Class::Halves => Kernel::Scalar,
        _ => Kernel::best(),
    }
}

/// Counts jobs again, in order, on some threads: each job's mirror image, by the given engine or by an [independent
/// one](other_road). If a search would take too long for jobs of colours, they are multiplied again with other
/// instructions, and some of their [parts](nqueens_kernel::colours::Part) are searched. `done` gets every recounted
/// job; after `control` stopped the counting, the rest is left out.
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
        let mut solvers = Solvers::default();
        while let Some(claim) = claims.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Ok(recount) = solvers.recount(claim, kernel, control) else { return };
            done.lock().expect("nobody panics there")(recount);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads.get().min(claims.len()) {
            scope.spawn(work);
        }
    });
}

/// What one thread counts with.
#[derive(Default)]
struct Solvers(BTreeMap<Kernel, Solver>);

impl Solvers {
    fn get(&mut self, kernel: Kernel) -> &mut Solver {
        let new = || Solver::recounting(kernel).expect("an engine for this machine");
        self.0.entry(kernel).or_insert_with(new)
    }

    fn recount(
        &mut self,
        claim: &Claim,
        chosen: Option<Kernel>,
        control: &Control,
    ) -> Result<Recount, Stopped> {
        let road = other_road(claim.job.class, claim.kernel);
        let recount = |kernel, parts, found| Recount { claim: claim.clone(), kernel, parts, found };
        let job = match claim.job.decode() {
            Ok(job) => job,
            Err(invalid) => {
                return Ok(recount(chosen.unwrap_or(road), 0, Err(format!("it is no job: {invalid}"))));
            }
        };
        let parts = if chosen.is_none() && road < Kernel::Portable { Parts::of(&job) } else { None };
        let Some(parts) = parts else {
            let kernel = chosen.unwrap_or(road);
            return Ok(recount(kernel, 0, count(&job, self.get(kernel), control)?));
        };
        let kernel = Parts::multiplied_by(claim.kernel);
        let solver = self.get(kernel);
        let found = match parts.compare(solver, control)? {
            Ok(()) => count(&job, solver, control)?,
            Err(difference) => Err(difference),
        };
        Ok(recount(kernel, parts.number(), found))
    }
}

fn count(job: &Job, solver: &mut Solver, control: &Control) -> Result<Result<Counts, String>, Stopped> {
    let mut sum = Counts::ZERO;
    for unit in job.units(solver.leaf_test()) {
        match sum.checked_add(unit.solve(solver, control)?.counts) {
            Ok(more) => sum = more,
            Err(overflow) => return Ok(Err(overflow.to_string())),
        }
    }
    Ok(Ok(sum))
}
