//! Jobs counted again by an independent engine.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use nqueens_kernel::counts::Counts;
use nqueens_kernel::engine::{Control, Factory, Kernel, Stopped};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::unit::UnitTally;
use nqueens_model::kernel::KernelName;

use crate::parts::SampledParts;
use crate::sample::Claim;

#[derive(Clone, Debug)]
pub struct Recount {
    pub claim: Claim,
    pub kernel: Kernel,
    /// Parts of the job whose solutions were found one by one as well, for all of it would have taken too long.
    pub parts: u32,
    /// What it found; the error says why there was nothing to count, or that the parts came to something else.
    pub found: Result<Counts, String>,
    pub states: u64,
}

impl Recount {
    pub fn agrees(&self) -> bool {
        self.found == Ok(self.claim.counts)
    }
}

/// The fastest engine of another family than the one that counted. An unknown engine is taken for a block engine. Colours are
/// always counted by the search that multiplies nothing.
pub fn independent_engine(class: Class, counted_by: KernelName) -> Kernel {
    if class == Class::Colours {
        return Kernel::Scalar;
    }
    let known = counted_by.as_str().parse().unwrap_or(Kernel::Portable);
    let plan = class.plan();
    let available = Kernel::ALL.into_iter().rev().filter(|kernel| kernel.is_available());
    let mut independent = available.filter(|kernel| kernel.family(plan) != known.family(plan));
    independent.next().expect("engines of several families run everywhere")
}

/// Counts jobs again, in order, on some threads: each job's mirror image, by the given engine or by an [independent
/// one](independent_engine). If a search would take too long for jobs of colours, they are multiplied again with other
/// instructions, and some of their [parts](nqueens_kernel::colours::Part) are searched. `done` gets every recounted
/// job; after `control` stopped the counting, the rest is left out.
///
/// # Panics
/// If the factory has no `kernel` for this machine.
pub fn recount(
    claims: &[Claim],
    kernel: Option<Kernel>,
    threads: NonZeroUsize,
    factory: &Factory,
    control: &Control,
    done: impl FnMut(Recount) + Send,
) {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(done));
    let work = || {
        let mut solvers = Solvers { factory, made: BTreeMap::new() };
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

struct Solvers<'a> {
    factory: &'a Factory,
    made: BTreeMap<Kernel, Solver>,
}

impl Solvers<'_> {
    fn get(&mut self, kernel: Kernel) -> &mut Solver {
        let engine = || (self.factory)(kernel.name()).expect("an engine for this machine");
        self.made.entry(kernel).or_insert_with(|| Solver::recounting(engine()))
    }

    fn recount(
        &mut self,
        claim: &Claim,
        chosen: Option<Kernel>,
        control: &Control,
    ) -> Result<Recount, Stopped> {
        let independent = independent_engine(claim.job.class, claim.kernel);
        let recount = |kernel, parts, counted: Result<UnitTally, String>| Recount {
            claim: claim.clone(),
            kernel,
            parts,
            states: counted.as_ref().map_or(0, |tally| tally.states),
            found: counted.map(|tally| tally.counts),
        };
        let job = match claim.job.decode() {
            Ok(job) => job,
            Err(invalid) => {
                return Ok(recount(
                    chosen.unwrap_or(independent),
                    0,
                    Err(format!("it is no job: {invalid}")),
                ));
            }
        };
        let parts = if chosen.is_none() { SampledParts::of(&job) } else { None };
        let Some(parts) = parts else {
            let kernel = chosen.unwrap_or(independent);
            return Ok(recount(kernel, 0, count(&job, self.get(kernel), control)?));
        };
        let kernel = SampledParts::multiplied_by(claim.kernel);
        let solver = self.get(kernel);
        let found = match parts.compare(solver, control)? {
            Ok(()) => count(&job, solver, control)?,
            Err(difference) => Err(difference),
        };
        Ok(recount(kernel, parts.number(), found))
    }
}

fn count(job: &Job, solver: &mut Solver, control: &Control) -> Result<Result<UnitTally, String>, Stopped> {
    Ok(solver.count_job(job, control)?.map_err(|overflow| overflow.to_string()))
}
