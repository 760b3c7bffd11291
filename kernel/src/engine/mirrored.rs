//! The same count from the mirror image: for second counts that are to share as little as possible with the first.

use super::{Control, Engine, Stopped, Tally};
use crate::isa::Isa;
use crate::subproblem::Subproblem;

/// Counts each subproblem as it is or, once told to, by its [mirror image](Subproblem::mirrored): other masks, other
/// shifts, other order.
pub(crate) struct Mirrored {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) is_on: bool,
}

impl Engine for Mirrored {
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        if self.is_on {
            self.engine.count(&problem.mirrored(), control)
        } else {
            self.engine.count(problem, control)
        }
    }

    fn batch_max(&self) -> usize {
        self.engine.batch_max()
    }

    fn count_batch(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Stopped> {
        if self.is_on {
            let mirrored: Vec<_> = problems.iter().map(Subproblem::mirrored).collect();
            self.engine.count_batch(&mirrored, tallies, control)
        } else {
            self.engine.count_batch(problems, tallies, control)
        }
    }

    fn isa(&self) -> Option<Isa> {
        self.engine.isa()
    }

    fn leaf_test(&self) -> bool {
        self.engine.leaf_test()
    }
}
