//! The same count from the mirror image: for second counts that are to share as little as possible with the first.

use super::{Control, Engine, Kernel, Stopped, Tally};
use crate::subproblem::Subproblem;

/// Counts each subproblem as it is or, once told to, by its [mirror image](Subproblem::mirrored): other masks, other
/// shifts, other order.
pub(crate) struct Mirrored {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) is_on: bool,
}

impl Engine for Mirrored {
    fn kernel(&self) -> Kernel {
        self.engine.kernel()
    }

    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        if self.is_on {
            self.engine.count(&problem.mirrored(), control)
        } else {
            self.engine.count(problem, control)
        }
    }

    fn leaf_test(&self) -> bool {
        self.engine.leaf_test()
    }
}
