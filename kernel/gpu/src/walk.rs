//! A tree in chunks that a device walks one beside the other.

use nqueens_kernel::engine::{Tree, TreeStep};

/// A tree's steps. Each chunk begins with what leads to its first branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) steps: Vec<TreeStep>,
    /// The first step of each, and the end.
    pub(crate) chunks: Vec<[u32; 2]>,
}

/// The work of a branch beside its placements, in placements: its lists are filtered, its queens tabled.
const BRANCH: u64 = 100;

impl Walk {
    /// Divides a tree into about so many chunks of equal work, at least one.
    pub(crate) fn new(tree: &Tree<'_>, chunks: usize) -> Self {
        let is_branch = |step: &TreeStep| step.level as usize + 1 == tree.depth;
        let work = |step: &TreeStep| if is_branch(step) { BRANCH + u64::from(step.leaves) } else { 0 };
        let share = tree.steps.iter().map(work).sum::<u64>().div_ceil(chunks.max(1) as u64).max(1);
        let mut walk = Self::default();
        let mut path = vec![TreeStep::default(); tree.depth];
        let (mut first, mut done) = (0, 0);
        for step in tree.steps {
            path[step.level as usize] = *step;
            if walk.steps.len() == first {
                walk.steps.extend_from_slice(&path[..step.level as usize]);
            }
            walk.steps.push(*step);
            done += work(step);
            if done >= share {
                walk.end(first);
                (first, done) = (walk.steps.len(), 0);
            }
        }
        if done > 0 {
            walk.end(first);
        }
        walk
    }

    fn end(&mut self, first: usize) {
        self.chunks
            .push([first, self.steps.len()].map(|at| u32::try_from(at).expect("fewer than 2^32 steps")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_all_branches_once_and_lead_to_them() {
        let step = |queen, level, leaves| TreeStep { queen, level, leaves, ..TreeStep::default() };
        let steps =
            [step(1, 0, 0), step(2, 1, 50), step(3, 1, 400), step(4, 0, 0), step(5, 1, 7), step(6, 1, 9)];
        let tree = Tree {
            version: 1,
            depth: 2,
            rest: 1,
            height: 1,
            most: 1,
            steps: &steps,
            asked: &[],
            program: &[],
        };
        for wanted in 0..10 {
            let walk = Walk::new(&tree, wanted);
            assert!(!walk.chunks.is_empty() && walk.chunks.len() <= wanted.max(1));
            let mut branches = Vec::new();
            for &[from, end] in &walk.chunks {
                let mut above = None;
                for step in &walk.steps[from as usize..end as usize] {
                    if step.level == 0 {
                        above = Some(step.queen);
                    } else {
                        branches.push((above.expect("its first queen"), step.queen));
                    }
                }
            }
            assert_eq!(branches, [(1, 2), (1, 3), (4, 5), (4, 6)]);
        }
        assert_eq!(Walk::new(&Tree { steps: &[], ..tree }, 4), Walk::default());
    }
}
