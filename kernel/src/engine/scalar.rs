//! A mask a row and a look ahead: as fast as plain code gets.

use super::{Control, Engine, Kernel, Stopped, Tally};
use crate::subproblem::Subproblem;

/// TODO
pub(super) struct Scalar;

impl Engine for Scalar {
    fn kernel(&self) -> Kernel {
        Kernel::Scalar
    }

    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped> {
        super::reference::Reference.count(problem, control)
    }
}
