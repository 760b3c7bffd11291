//! The levels of one search: what the steps need to know of each row, worked out once a job.

use crate::subproblem::Subproblem;

/// Rows that a child is held against beyond its own, at most.
pub(super) const AHEAD_MAX: usize = 4;
/// Rows left at the last level, the leaf, whose nodes are completed without storing anything.
const LEAF_ROWS: usize = 3;
/// A level is expanded once it holds this many nodes, or nothing else is left to do.
const READY: usize = 8192;
/// Nodes expanded at a time.
pub(super) const CHUNK: usize = 8192;

/// The rows that a child is held against beyond its own, if it has so many left. It is stored if each row looked at keeps an
/// open cell and, where none is left out, every free column has an open cell too.
fn ahead(rows_left: usize) -> usize {
    match rows_left {
        0..LEAF_ROWS => unreachable!("children of leaves are not stored"),
        3 | 6.. => 2,
        4 => 3,
        5 => AHEAD_MAX,
    }
}

/// One open row and those below it.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// Allowed columns of this row and the next ones; 0 below the last. Bit 0 is the lowest free column.
    pub(super) allowed: [u32; AHEAD_MAX + 2],
    /// `[0]`: rows from this one to the next; `[k]`: from the next to the `k`-th below that. 0 below the last.
    pub(super) gaps: [u32; AHEAD_MAX + 2],
    /// Whether all rows that children are held against follow each other without a gap.
    pub(super) adjacent: bool,
    /// The rows that a child has left; `None` at the leaf.
    pub(super) rows_left: Option<usize>,
    /// Nodes that the level can hold at one time, at most.
    pub(super) room: usize,
}

/// The levels from the first open row to the leaf.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// One or more.
    pub(super) levels: Vec<Level>,
    /// Free columns of the root; bit 0 is the lowest.
    pub(super) free: u32,
}

impl Schedule {
    /// The levels of `problem`; `None` if it has too few open rows for a root above the last two.
    ///
    /// **Room.** A level is only expanded while the one below holds fewer than [`READY`] nodes (`search` asserts
    /// it), and at most [`CHUNK`] nodes at a time. A node with `m` rows left has `m` free columns, so no more
    /// children than that, nor than its row has allowed columns. So a level never holds more than
    /// `READY - 1 + CHUNK * children` nodes; nor more than there can be at all, the product of the children of
    /// the levels above.
    pub(super) fn of(problem: &Subproblem) -> Option<Self> {
        let rows = problem.rows();
        let leaf = rows.len().checked_sub(LEAF_ROWS)?;
        let offset = problem.free().trailing_zeros();
        let (mut room, mut nodes) = (1, 1_usize);
        let mut levels = Vec::with_capacity(leaf + 1);
        for at in 0..=leaf {
            let rows_left = (at < leaf).then(|| rows.len() - at - 1);
            let last = at + 1 + rows_left.map_or(1, ahead);
            let allowed = std::array::from_fn(|k| rows.get(at + k).map_or(0, |row| row.allowed >> offset));
            let below = |from: usize, to: usize| {
                rows.get(to).map_or(0, |row| u32::from(row.row) - u32::from(rows[from].row))
            };
            let gaps =
                std::array::from_fn(|k| if k == 0 { below(at, at + 1) } else { below(at + 1, at + 1 + k) });
            let adjacent = below(at, last) as usize == last - at;
            levels.push(Level { allowed, gaps, adjacent, rows_left, room });

            let children = (rows[at].allowed.count_ones() as usize).min(rows.len() - at);
            nodes = nodes.saturating_mul(children);
            room = nodes.min(READY - 1 + CHUNK * children);
        }
        Some(Self { levels, free: problem.free() >> offset })
    }

    /// Columns from the lowest free one to the highest.
    pub(super) fn span(&self) -> u32 {
        u32::BITS - self.free.leading_zeros()
    }
}

/// Whether a level with `nodes` nodes is worth going down to at once.
pub(super) fn is_ready(nodes: usize) -> bool {
    nodes >= READY
}
