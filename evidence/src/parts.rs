//! Parts of jobs, for jobs whose solutions are too many to be found one by one.

use std::ops::Range;

use nqueens_kernel::colours::{Part, RowSets, recount_part, recount_states};
use nqueens_kernel::engine::{Control, Kernel, Stopped};
use nqueens_kernel::job::{Class, Job};
use nqueens_kernel::random::Random;
use nqueens_kernel::solver::Solver;
use nqueens_model::kernel::KernelName;

/// Some parts of a job of colours, drawn by its place in the plan.
pub(crate) struct SampledParts {
    sets: RowSets,
    parts: Vec<Part>,
}

impl SampledParts {
    /// Jobs for which the search visits no more states than this have all their solutions found one by one: that takes some
    /// seconds.
    const SEARCHED_MAX: u64 = 2_000_000_000;
    /// Parts of each other job.
    const NUMBER: u32 = 4;
    /// States of a part: a second or two.
    const PART_MAX: u64 = 250_000_000;

    /// Of a job that is too large; `None` if it is not, or is not of colours.
    pub(crate) fn of(job: &Job) -> Option<Self> {
        if job.class() != Class::Colours {
            return None;
        }
        let (range, sets) = (job.row_sets()?, RowSets::new(job.n())?);
        if recount_states(&sets, &range) <= Self::SEARCHED_MAX {
            return None;
        }
        Some(Self::draw(sets, &range, Self::PART_MAX))
    }

    fn draw(sets: RowSets, range: &Range<u64>, part_max: u64) -> Self {
        let mut random = Random::new(range.start);
        let parts = (0..Self::NUMBER).map(|_| Part::draw(&sets, range, part_max, &mut random)).collect();
        Self { sets, parts }
    }

    pub(crate) fn number(&self) -> u32 {
        u32::try_from(self.parts.len()).expect("a few")
    }

    /// The engine that multiplies the whole job again: the fastest with other instructions than the one that counted.
    pub(crate) fn multiplied_by(counted_by: KernelName) -> Kernel {
        let others = Kernel::ALL.into_iter().rev().filter(|&kernel| KernelName::from(kernel) != counted_by);
        let mut multiply = others.filter(|&kernel| kernel.multiplies() && kernel.is_available());
        multiply.next().unwrap_or(Kernel::Portable)
    }

    /// Multiplies each part, and finds its solutions one by one; the inner error tells where the two differ.
    pub(crate) fn compare(
        &self,
        solver: &mut Solver,
        control: &Control,
    ) -> Result<Result<(), String>, Stopped> {
        let multiplier = solver.multiplier().expect("an engine that multiplies");
        for &part in &self.parts {
            let multiplied = multiplier.count_part(&self.sets, part, control)?.weighted_solutions;
            let found = recount_part(&self.sets, part, control)?.weighted_solutions;
            if multiplied != found {
                let Part { number, given, columns } = part;
                return Ok(Err(format!(
                    "of orbit {number} with white queens in columns {columns:#x} of {given:#x} this machine \
                     multiplied {multiplied} solutions and found {found}: it is not to be trusted"
                )));
            }
        }
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::plan::{Plan, PlanKind};

    use super::*;

    #[test]
    fn only_large_jobs_of_colours_have_parts() {
        let has_parts = |(n, kind, states)| {
            let plan = Plan::with_states_per_job(BoardSize::new(n).unwrap(), kind, states);
            SampledParts::of(&plan.jobs().next().unwrap()).is_some()
        };
        let whole = u64::MAX;
        for (n, states) in [(14, whole), (20, 1)] {
            assert!(!has_parts((n, PlanKind::Colours, states)));
        }
        assert!([PlanKind::Rows, PlanKind::Border].into_iter().all(|kind| !has_parts((24, kind, whole))));
        assert!([20, 28, 31].into_iter().all(|n| has_parts((n, PlanKind::Colours, whole))));
    }

    #[test]
    fn no_part_is_searched_for_long() {
        for n in 21..=24 {
            let job = Plan::new(BoardSize::new(n).unwrap(), PlanKind::Colours).jobs().nth(7).unwrap();
            let SampledParts { sets, parts } = SampledParts::of(&job).unwrap();
            for part in parts {
                let states = recount_part(&sets, part, &Control::default()).unwrap().states;
                assert!(states <= 250_000_000, "N = {n}: {states} of {part:?}");
            }
        }
    }

    #[test]
    fn parts_are_compared() {
        let sets = RowSets::new(BoardSize::new(18).unwrap()).unwrap();
        let range = 100..sets.len();
        for part_max in [1 << 30, 1 << 20, 1] {
            let parts = SampledParts::draw(sets.clone(), &range, part_max);
            for kernel in [Kernel::Portable, Kernel::best()] {
                let mut solver = Solver::recounting(kernel.engine().unwrap());
                assert_eq!(parts.compare(&mut solver, &Control::default()), Ok(Ok(())));
            }
        }
    }

    #[test]
    fn other_instructions_multiply_again() {
        for kernel in Kernel::ALL {
            let again = SampledParts::multiplied_by(kernel.into());
            assert!(again.multiplies() && again.is_available());
            assert!(again != kernel || Kernel::best() == Kernel::Portable);
        }
    }
}
