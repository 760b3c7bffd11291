//! For the benchmark `joins`: how long a GPU that is not there would take for colours. The lists are filtered for real, the
//! rest is multiplied by the clocks of its machine code.

#![expect(clippy::cast_precision_loss, reason = "estimates")]

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use nqueens_kernel::engine::{Control, Engine, ProductCounter, ProductWork, Stopped, Tally, Tree, TreeStep};
use nqueens_kernel::subproblem::Subproblem;

use crate::products::{SETS, groups, sets};

/// An H200: schedulers of all multiprocessors, clocks a second, bytes a second of its memory.
const SCHEDULERS: f64 = 132.0 * 4.0;
const HERTZ: f64 = 1.98e9;
const MEMORY: f64 = 4.8e12;

/// Bytes of its memory that matrices get.
const MATRICES_MAX: u64 = 60 << 30;

// Clocks of a scheduler, by the instructions of sm_90 for a warp and what they wait for (`docs/performance.md`).
/// For a mask of each lane that a queen filters, and for the queen.
const SIFT: [f64; 2] = [24.0, 60.0];
/// To transpose 32 masks of each lane.
const TRANSPOSE: f64 = 960.0;
/// To table them for a queen.
const TABLE: f64 = 18.0;
/// For a run of placements.
const RUN: f64 = 60.0;
/// To multiply and add a cell of each lane.
const MULTIPLY: f64 = 30.0;

/// For a word of each lane and a placement with so many queens below its branch.
fn leaf(rest: usize) -> f64 {
    let [rest, counting] = [rest as f64, 16.0];
    if rest < 5.0 { (4.0 * rest + 7.0).max(counting) } else { 10.0 * rest + counting }
}

/// What a device would have done.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// Clocks of its schedulers to filter lists, to table what is left, for placements, and for products.
    pub clocks: [f64; 4],
    /// Seconds that this took here, which are not the host's.
    pub simulated: f64,
    /// Bytes sent to it.
    pub bytes: u64,
    /// Pairs compared.
    pub pairs: u64,
    /// Pairs that there is room for in the words that are.
    pub slots: u64,
}

impl Joined {
    /// Seconds of an H200 that is always busy, by [`clocks`](Self::clocks).
    pub fn seconds(&self) -> [f64; 4] {
        self.clocks.map(|clocks| clocks / SCHEDULERS / HERTZ)
    }
}

/// An engine that multiplies in this way, and what it has done.
pub fn engine() -> (Box<dyn Engine>, Arc<Mutex<Joined>>) {
    let joined = Arc::default();
    (Box::new(Simulated(Arc::clone(&joined))), joined)
}

#[derive(Debug)]
struct Simulated(Arc<Mutex<Joined>>);

impl Engine for Simulated {
    fn count(&mut self, _: &Subproblem, _: &Control) -> Result<Tally, Stopped> {
        Err(Stopped)
    }

    fn product_counter(&mut self) -> Option<Box<dyn ProductCounter>> {
        Some(Box::new(Counter { joined: Arc::clone(&self.0), versions: [0; 2] }))
    }
}

#[derive(Debug)]
struct Counter {
    joined: Arc<Mutex<Joined>>,
    versions: [u64; 2],
}

impl ProductCounter for Counter {
    fn matrices_max(&self) -> u64 {
        MATRICES_MAX
    }

    fn threads(&self) -> usize {
        1
    }

    fn count(&mut self, work: &ProductWork<'_>, control: &Control) -> Result<(Vec<Vec<u64>>, u64), Stopped> {
        let begun = Instant::now();
        let mut joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        let sets = sets(work);
        for (colour, &sets) in sets.iter().enumerate() {
            let tree = &work.trees[colour];
            if self.versions[colour] != tree.version {
                self.versions[colour] = tree.version;
                joined.bytes +=
                    (size_of_val(tree.steps) + 4 * (tree.asked.len() + tree.program.len())) as u64;
            }
            for part in work.parts {
                let lists = part.lists[colour];
                joined.bytes += 8 * u64::from(lists.starts[sets] - lists.starts[0]);
                for group in 0..groups(sets) {
                    control.advance(0)?;
                    let lanes =
                        (group * SETS..sets.min((group + 1) * SETS)).map(|set| lists.list(set).to_vec());
                    join(tree, lanes.collect(), &mut joined);
                }
            }
        }
        let cells = work.parts.len() * work.row_sets * groups(sets[0]) * groups(sets[1]) * SETS * SETS;
        let clocks = cells as f64 / 32.0 * MULTIPLY;
        // Both matrices are cleared, added to, and read.
        let memory = 2.0 * 3.0 * 4.0 * cells as f64 / MEMORY * SCHEDULERS * HERTZ;
        joined.clocks[3] += clocks.max(memory);
        joined.simulated += begun.elapsed().as_secs_f64();
        Ok((work.parts.iter().map(|part| vec![0; part.row_sets.len()]).collect(), 0))
    }
}

/// Joins the lists of a group of lanes with a tree.
fn join(tree: &Tree<'_>, lanes: Vec<Vec<u64>>, joined: &mut Joined) {
    let longest = |lanes: &[Vec<u64>]| lanes.iter().map(Vec::len).max().unwrap_or(0);
    let mut levels = vec![lanes; tree.depth + 1];
    let runs = |step: &TreeStep| {
        let words = Tree::words(tree.rest);
        let mut program = &tree.program[step.program[0] as usize..step.program[1] as usize];
        let mut runs = 0;
        while let Some((&head, rest)) = program.split_first() {
            program = &rest[(head & 255) as usize * words..];
            runs += 1;
        }
        f64::from(runs)
    };
    for step in tree.steps {
        let (above, below) = levels.split_at_mut(step.level as usize + 1);
        let (from, to) = (&above[step.level as usize], &mut below[0]);
        for (from, to) in from.iter().zip(to.iter_mut()) {
            to.clear();
            to.extend(from.iter().filter(|mask| *mask & step.queen == 0));
        }
        // A lane has two lists.
        joined.clocks[0] += 2.0 * (SIFT[0] * longest(from) as f64 + SIFT[1]);
        if step.level as usize + 1 < tree.depth {
            continue;
        }
        let left = longest(to);
        let words = left.div_ceil(16);
        let asked = f64::from(step.asked[1] - step.asked[0]);
        joined.clocks[1] += words as f64 * (TRANSPOSE + asked * TABLE);
        joined.clocks[2] += words as f64 * (f64::from(step.leaves) * leaf(tree.rest) + runs(step) * RUN);
        joined.pairs += to.iter().map(|lane| lane.len() as u64).sum::<u64>() * u64::from(step.leaves);
        joined.slots += (words * 16 * SETS) as u64 * u64::from(step.leaves);
    }
}
