//! Plans, as several messages have them.

use std::str::FromStr;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::plan::{Plan, PlanKind};

use super::{InvalidMessage, invalid, stored};

/// Bytes of a drawing, at most: 31 lines of 31 cells are fewer.
const DRAWING_MAX: usize = 1_024;

/// A plan by its kind, the board of a plan `cells`, and the size of its jobs.
pub(super) fn plan(
    n: BoardSize,
    kind: &str,
    cells: &str,
    states_per_job: u64,
) -> Result<Plan, InvalidMessage> {
    let kind = PlanKind::from_str(kind).map_err(|error| invalid("plan", error))?;
    if stored("states_per_job", states_per_job)? == 0 {
        return Err(invalid("states_per_job", "must be at least 1"));
    }
    if cells.len() > DRAWING_MAX {
        return Err(invalid("cells", format!("must have at most {DRAWING_MAX} bytes")));
    }
    let board = (!cells.is_empty()).then(|| cells.parse::<Cells>()).transpose();
    let board = board.map_err(|error| invalid("cells", error))?;
    Plan::stored(n, kind, board, states_per_job)
        .ok_or_else(|| invalid("cells", "are there if and only if the plan is cells"))
}

/// The board of a plan `cells`; nothing of another.
pub(super) fn drawing(plan: &Plan) -> String {
    plan.cells().map_or_else(String::new, |cells| cells.to_string())
}
