//! The same count from the mirror image: for recounts that are to share as little as possible with the count.

use super::{Control, Engine, Kernel, Stopped, Tally};
use crate::subproblem::Subproblem;

/// Counts each subproblem by its [mirror image](Subproblem::mirrored): other masks, other shifts, other order.
pub(crate) struct Mirrored(pub(crate) Box<dyn Engine>);

impl Engine for Mirrored {
    fn kernel(&self) -> Kernel {
        self.0.kernel()
    }

    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        self.0.count(&problem.mirrored(), control)
    }

    fn leaf_test(&self) -> bool {
        self.0.leaf_test()
    }
}
