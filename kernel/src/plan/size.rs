//! How many jobs a plan has, before any is made.

use super::{Plan, PlanKind};

/// The number of a plan's jobs, as far as it can be told within a second; counting a million prefixes takes minutes.
///
/// | jobs of | `about` | `at_least` |
/// |---|---|---|
/// | row sets | exact below 1,000; else from the lengths of 1,000 ranges, evenly spread | all work, in the largest ranges that there can be |
/// | prefixes | all work, as guessed from the shortest prefixes, in jobs of the wanted size | a quarter of that; of tiny jobs, a 32nd |
///
/// All work of `border` is put at 5/9 of that of `rows`, which has a hundredth of its shortest prefixes: for N = 10 to 31
/// it is 0.49 to 0.59 of it. The guess at prefixes has no proof: jobs get somewhat larger than wanted, and a search of tiny
/// jobs visits fewer states than guessed. Plans that were made had 0.5 to 1.4 times as many jobs, besides a few for each
/// BOUND1; plans of jobs of one state, of N = 15, a ninth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanSize {
    /// There are not fewer.
    pub at_least: u128,
    /// The best guess; not less than `at_least`.
    pub about: u128,
}

/// Ranges of row sets that are looked at.
const SAMPLES: usize = 1_000;

/// Jobs of prefixes may be this many times fewer than guessed; of jobs of less than [`TINY`] states, the second.
const DOUBTS: [u128; 2] = [4, 32];

/// Jobs of so few states are some leaves of the search.
const TINY: u64 = 1_000;

impl Plan {
    /// How many jobs it has.
    pub fn size(&self) -> PlanSize {
        let states = u128::from(self.states_per_job);
        let Some(sets) = self.row_sets() else {
            let all = if matches!(self.kind, PlanKind::Rows | PlanKind::Cells) {
                self.work()
            } else {
                Self::with_states_per_job(self.n, PlanKind::Rows, 1).work() * 5 / 9
            };
            let doubt = DOUBTS[usize::from(self.states_per_job < TINY)];
            return PlanSize { at_least: all / states / doubt, about: all / states };
        };
        let few = sets.ranges(self.states_per_job).take(SAMPLES).count();
        if few < SAMPLES {
            return PlanSize { at_least: few as u128, about: few as u128 };
        }
        let at_least = sets.work_of_all().div_ceil(states.max(sets.work_of_heaviest().into()));
        let (all, samples) = (sets.len(), SAMPLES as u64);
        let starts = (0..samples).map(|sample| all / samples * sample);
        // In billionths: of a range, each orbit is a small part.
        let share = |from| 1_000_000_000 / u128::from(sets.cut(from, self.states_per_job) - from);
        let about = u128::from(all) * starts.map(share).sum::<u128>() / SAMPLES as u128 / 1_000_000_000;
        PlanSize { at_least, about: about.max(at_least) }
    }
}
