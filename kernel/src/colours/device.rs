//! Products for somebody else to count: trees written down for devices.

use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::depth::Costs;
use super::lists::{self, CellClass, Factor, PlacementLists};
use super::product::{Planted, Product, Products};
use super::trie::Trie;
use crate::engine::{MaskLists, ProductCounter, ProductPart, ProductWork, Stopped, Tree, TreeStep};

/// Column sets that a device joins at once.
const LANES: usize = 64;

/// Products of a call at most: as many as there are in a tile.
const PARTS_MAX: usize = 16;

/// Hands products on.
#[derive(Debug)]
pub(super) struct DeviceProducts {
    shared: Arc<Mutex<Shared>>,
    matrices_max: usize,
    trees: [DeviceTree; 2],
    states: u64,
}

/// What several threads have in common.
#[derive(Debug)]
struct Shared {
    counter: Box<dyn ProductCounter>,
    /// The latest tree.
    version: u64,
}

impl DeviceProducts {
    /// One for each of the counters' threads, which take turns at these; there is at least one, and all are alike.
    pub(super) fn of(counters: Vec<Box<dyn ProductCounter>>) -> Vec<Self> {
        let threads = counters[0].threads().max(1);
        let matrices_max = usize::try_from(counters[0].matrices_max()).unwrap_or(usize::MAX);
        let shared = counters.into_iter().map(|counter| Arc::new(Mutex::new(Shared { counter, version: 0 })));
        let shared: Vec<_> = shared.collect();
        let products = |shared: &Arc<_>| Self {
            shared: Arc::clone(shared),
            matrices_max,
            trees: Default::default(),
            states: 0,
        };
        shared.iter().cycle().take(threads).map(products).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Products for DeviceProducts {
    fn lanes(&self) -> usize {
        LANES
    }

    fn costs(&self) -> &'static Costs {
        &Costs::DEVICE
    }

    fn cell_bytes(&self) -> usize {
        // Those of both colours, for every part.
        2 * size_of::<u32>() * PARTS_MAX
    }

    fn matrices_max(&self, _: usize) -> usize {
        self.matrices_max
    }

    /// It keeps its matrices itself.
    fn at_once(&self, memory_max: usize, matrix: usize, trees: usize) -> usize {
        (self.matrices_max / matrix).min(memory_max / 4 / trees)
    }

    fn parts_max(&self) -> usize {
        PARTS_MAX
    }

    fn count(&mut self, planted: &Planted<'_>, products: &[Product<'_>]) -> Result<Vec<Vec<u64>>, Stopped> {
        if products.is_empty() {
            return Ok(Vec::new());
        }
        let Planted { sides, ref window, lines, minor, row_sets, control, .. } = *planted;
        let colours = sides.each_ref().map(|side| side.colour as usize);
        for (tree, colour) in self.trees.iter_mut().zip(colours) {
            tree.set(&planted.tries[colour], colour, row_sets.len());
        }
        let parts: Vec<_> = products
            .iter()
            .map(|product| ProductPart {
                lists: [
                    masks(&product.lists[colours[0]], 0..sides[0].lanes.len()),
                    masks(&product.lists[colours[1]], window.clone()),
                ],
                factors: [pairs(product.factors[0]), pairs(&product.factors[1][window.clone()])],
                row_sets: product.row_sets.clone(),
            })
            .collect();
        let firsts = [window.start, 0];
        let placements = |number: usize, row: usize| {
            let (side, height) = (&sides[number], planted.tries[colours[number]].height());
            let class = CellClass::new(lines, side.colour, minor, side.diagonals);
            let rows = lines.in_order(minor, side.colour.of(lines, minor, row_sets[row / height].0));
            lists::placements(&class, &rows, side.leaves.used(side.colour, firsts[number] + row % height))
        };
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        for tree in self.trees.iter_mut().filter(|tree| tree.version == 0) {
            shared.version += 1;
            tree.version = shared.version;
        }
        let trees = [0, 1].map(|number| self.trees[number].of(&planted.tries[colours[number]]));
        let work = ProductWork { trees, row_sets: row_sets.len(), parts: &parts, placements: &placements };
        let (sums, states) = shared.counter.count(&work, control)?;
        self.states += states;
        Ok(sums)
    }

    fn take_states(&mut self) -> u64 {
        mem::take(&mut self.states)
    }

    fn fault(&self) -> Option<String> {
        self.shared().counter.fault().map(str::to_owned)
    }
}

fn masks(lists: &PlacementLists, places: Range<usize>) -> MaskLists<'_> {
    MaskLists { starts: &lists.starts[places.start..=places.end], masks: &lists.masks }
}

fn pairs(factors: &[Factor]) -> Vec<[u32; 2]> {
    factors.iter().map(|factor| [factor.any, factor.below]).collect()
}

/// What devices need of a tree beside it.
#[derive(Debug, Default)]
struct DeviceTree {
    /// The colour and the version of the tree.
    source: (usize, u64),
    /// 0 for a new one.
    version: u64,
    /// Placements of a matrix row, at most.
    most: u32,
    steps: Vec<TreeStep>,
}

impl DeviceTree {
    /// Makes it of a tree of so many row sets.
    fn set(&mut self, trie: &Trie, colour: usize, row_sets: usize) {
        if self.source == (colour, trie.version) {
            return;
        }
        *self = Self { source: (colour, trie.version), steps: mem::take(&mut self.steps), ..Self::default() };
        self.steps.clear();
        let rows = row_sets * trie.height();
        if trie.rest == 0 {
            // One placement, of no queen, for each row of the matrix.
            self.most = 1;
            self.steps.push(TreeStep { leaves: index(rows), ..TreeStep::default() });
            return;
        }
        let mut counts = vec![0; rows];
        for step in &trie.steps {
            let ends = |range: &Range<usize>| [range.start, range.end].map(index);
            self.steps.push(TreeStep {
                queen: step.queen,
                level: index(step.level),
                leaves: u32::try_from(step.leaves).expect("trees are kept below 2^32 words"),
                asked: ends(&step.asked),
                program: ends(&step.program),
            });
            for leaf in trie.nodes(step).flat_map(|(_, leaves)| leaves) {
                counts[(leaf & 0xff_ffff) as usize] += 1;
            }
        }
        self.most = counts.into_iter().max().unwrap_or(0);
    }

    fn of<'a>(&'a self, trie: &'a Trie) -> Tree<'a> {
        Tree {
            version: self.version,
            depth: trie.depth,
            rest: trie.rest,
            height: trie.height(),
            most: self.most,
            steps: &self.steps,
            asked: &trie.asked,
            program: &trie.program,
        }
    }
}

fn index(number: usize) -> u32 {
    u32::try_from(number).expect("trees are kept below 2^32 words")
}

#[cfg(test)]
mod tests {
    use super::super::trie::nodes;
    use super::super::{Multiplier, RowSets};
    use super::*;
    use crate::board::BoardSize;
    use crate::engine::{Control, Kernel};

    /// The obvious way.
    #[derive(Debug)]
    struct Plain {
        matrices_max: u64,
        threads: usize,
    }

    /// The placements of a matrix row by a walk through the tree, in order.
    fn walked(tree: &Tree<'_>, row: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut path = vec![0; tree.depth];
        for step in tree.steps {
            path[step.level as usize] = step.queen;
            if step.level as usize + 1 < tree.depth {
                continue;
            }
            let branch = path.iter().fold(0, |all, queen| all | queen);
            let program = &tree.program[step.program[0] as usize..step.program[1] as usize];
            if tree.rest == 0 {
                found.push(branch);
                continue;
            }
            let queen = |number: u32| {
                let [one, other] = tree.asked[(step.asked[0] + number) as usize];
                1_u64.unbounded_shl(one.into()) | 1_u64.unbounded_shl(other.into())
            };
            for (queens, leaves) in nodes(program, tree.rest - 1) {
                let numbers = queens.iter().flat_map(|word| word.to_le_bytes()).take(tree.rest - 1);
                let node = numbers.fold(branch, |all, number| all | queen(number.into()));
                let leaves = leaves.iter().filter(|leaf| (**leaf & 0xff_ffff) as usize == row);
                found.extend(leaves.map(|leaf| node | queen(leaf >> 24)));
            }
        }
        found.sort_unstable();
        found
    }

    fn fits(one: &[u64], other: &[u64]) -> u64 {
        one.iter().map(|mask| other.iter().filter(|other| **other & mask == 0).count() as u64).sum()
    }

    impl ProductCounter for Plain {
        fn matrices_max(&self) -> u64 {
            self.matrices_max
        }

        fn threads(&self) -> usize {
            self.threads
        }

        fn count(&mut self, work: &ProductWork<'_>, _: &Control) -> Result<(Vec<Vec<u64>>, u64), Stopped> {
            let leaves = [0, 1].map(|colour| {
                let tree = &work.trees[colour];
                let rows = 0..work.row_sets * tree.height;
                let of = |row| {
                    let walked = walked(tree, row);
                    let mut searched = (work.placements)(colour, row);
                    searched.sort_unstable();
                    assert_eq!(walked, searched);
                    assert!(walked.len() <= tree.most as usize);
                    walked
                };
                rows.map(of).collect::<Vec<_>>()
            });
            let of = |part: &ProductPart<'_>, row_set: usize| {
                let [ps, ls] = part.factors.each_ref().map(Vec::len);
                let mut sum = 0;
                for p in 0..ps {
                    for l in 0..ls {
                        let [one, other] = [&leaves[0][row_set * ls + l], &leaves[1][row_set * ps + p]];
                        let [p_factor, l_factor] = [part.factors[0][p], part.factors[1][l]];
                        let factor = p_factor[0] * l_factor[0] + p_factor[1] * l_factor[1];
                        sum += fits(one, part.lists[0].list(p))
                            * fits(other, part.lists[1].list(l))
                            * u64::from(factor);
                    }
                }
                sum
            };
            let sums =
                |part: &ProductPart<'_>| part.row_sets.clone().map(|row_set| of(part, row_set)).collect();
            Ok((work.parts.iter().map(sums).collect(), 1))
        }
    }

    fn counters(matrices_max: u64, threads: usize) -> Vec<Box<dyn ProductCounter>> {
        (0..2).map(|_| Box::new(Plain { matrices_max, threads }) as _).collect()
    }

    #[test]
    fn trees_for_devices_give_what_those_for_threads_give_orbit_by_orbit() {
        for n in 4..=12 {
            let sets = RowSets::new(BoardSize::new(n).unwrap()).unwrap();
            let of = |mut multiplier: Multiplier| {
                let mut all = vec![0; usize::try_from(sets.len()).unwrap()];
                let mut found = |number, solutions| all[usize::try_from(number).unwrap()] += solutions;
                // In two ranges, which share tiles.
                let middle = sets.len() / 2;
                for range in [0..middle, middle..sets.len()] {
                    multiplier.count_each(&sets, range, &mut found, &Control::default()).unwrap();
                }
                all
            };
            let threads = of(Multiplier::new(Kernel::Portable, 1 << 20).unwrap());
            for (matrices_max, makers) in [(0, 1), (300_000, 3), (1 << 30, 2)] {
                let device = of(Multiplier::by(counters(matrices_max, makers)));
                assert_eq!(device, threads, "N = {n}, {matrices_max} bytes");
            }
        }
    }
}
