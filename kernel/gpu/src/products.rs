//! Colours on a device: lists and trees joined, and the counts multiplied.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use nqueens_kernel::engine::{Control, ProductCounter, ProductPart, ProductWork, Stopped};

use crate::runner::{Fault, Interruption, wait};
use crate::walk::Walk;

/// Column sets in a group.
pub(crate) const SETS: usize = 64;

/// What a device writes for an item that it has counted, and the host before.
pub(crate) const LEFT_OUT: u64 = u64::MAX;

/// Items in the first launch; the next ones follow the time that it takes.
const ITEMS_FIRST: usize = 64;

/// Groups of `SETS` of so many column sets.
pub(crate) fn groups(sets: usize) -> usize {
    sets.div_ceil(SETS)
}

/// Runs launches, one after the other.
pub(crate) trait ProductRunner: Send {
    /// Bytes for matrices.
    fn matrices_max(&self) -> u64;

    /// Items that keep the device busy.
    fn items_wanted(&self) -> usize;

    /// Items of a colour that there is memory for in a launch, at least 1.
    fn items_max(&self, colour: usize) -> usize;

    /// Longest time of a launch in seconds.
    fn launch_s(&self) -> f64;

    /// Makes lists and trees known, and clears the matrices. A walk is that of the tree's version.
    fn set(&mut self, work: &ProductWork<'_>, walks: &[Walk; 2]) -> Result<(), Fault>;

    /// Begins to join these items of a colour: of the first chunk of its walk first all groups of all parts.
    fn start_fits(&mut self, colour: usize, items: Range<usize>) -> Result<(), Fault>;

    /// Begins to multiply.
    fn start_products(&mut self) -> Result<(), Fault>;

    /// Whether what was begun has ended.
    fn is_done(&mut self) -> Result<bool, Fault>;

    /// The pairs that each item compared.
    fn compared(&mut self) -> Result<Vec<u64>, Fault>;

    /// What the products came to: by part, row set, group of column sets p, and of l; each as its low and high 64 bits.
    fn sums(&mut self) -> Result<Vec<[u64; 2]>, Fault>;

    /// Some rows of the matrix of a colour, and of a group of its lists of a part.
    fn cells(
        &mut self,
        colour: usize,
        part: usize,
        group: usize,
        rows: Range<usize>,
    ) -> Result<Vec<[u32; SETS]>, Fault>;
}

/// Multiplies colours on a device.
pub(crate) struct DeviceProducts<R> {
    runner: R,
    threads: usize,
    walks: [Walk; 2],
    /// The versions of the trees that they are of, and chunks wanted.
    walks_of: [(u64, usize); 2],
    /// Items in a launch.
    load: usize,
    /// Parts that are counted together.
    parts_max: usize,
    calls: usize,
    fault: Option<String>,
}

impl<R> fmt::Debug for DeviceProducts<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceProducts").field("load", &self.load).finish_non_exhaustive()
    }
}

impl<R: ProductRunner> DeviceProducts<R> {
    pub(crate) fn new(runner: R, threads: usize) -> Self {
        Self {
            runner,
            threads,
            walks: Default::default(),
            walks_of: [(0, 0); 2],
            load: ITEMS_FIRST,
            parts_max: usize::MAX,
            calls: 0,
            fault: None,
        }
    }

    fn count_all(
        &mut self,
        work: &ProductWork<'_>,
        control: &Control,
    ) -> Result<(Vec<Vec<u64>>, u64), Interruption> {
        let (mut sums, mut pairs) = (Vec::with_capacity(work.parts.len()), 0);
        while sums.len() < work.parts.len() {
            let end = work.parts.len().min(sums.len().saturating_add(self.parts_max));
            let work = ProductWork { parts: &work.parts[sums.len()..end], ..*work };
            match self.count_parts(&work, control) {
                Ok((more, compared)) => {
                    sums.extend(more);
                    pairs += compared;
                }
                Err(Interruption::Fault(Fault::OutOfMemory)) if work.parts.len() > 1 => {
                    self.parts_max = work.parts.len() / 2;
                }
                Err(interruption) => return Err(interruption),
            }
        }
        Ok((sums, pairs))
    }

    fn count_parts(
        &mut self,
        work: &ProductWork<'_>,
        control: &Control,
    ) -> Result<(Vec<Vec<u64>>, u64), Interruption> {
        let mut pairs = 0;
        let sets = sets(work);
        let items = [0, 1].map(|colour| groups(sets[colour]) * work.parts.len());
        for (colour, items) in items.into_iter().enumerate() {
            let tree = &work.trees[colour];
            let longest = work.parts.iter().map(|part| longest(part, colour)).max().unwrap_or(0);
            let most = u64::from(tree.most) * longest as u64;
            assert!(u32::try_from(most).is_ok(), "no two column sets have 2^32 fits");
            let wanted = (tree.version, self.runner.items_wanted().div_ceil(items));
            if self.walks_of[colour] != wanted {
                self.walks[colour] = Walk::new(tree, wanted.1);
                self.walks_of[colour] = wanted;
            }
        }
        self.runner.set(work, &self.walks)?;
        for (colour, items) in items.into_iter().enumerate() {
            let all = items * self.walks[colour].chunks.len();
            let mut next = 0;
            while next < all {
                let end = all.min(next + self.load.min(self.runner.items_max(colour)));
                let begun = Instant::now();
                match self.runner.start_fits(colour, next..end) {
                    Err(Fault::OutOfMemory) if end - next > 1 => {
                        self.load = (end - next) / 2;
                        continue;
                    }
                    begun => begun?,
                }
                self.wait(control)?;
                let compared = self.runner.compared()?;
                if compared.len() != end - next || compared.contains(&LEFT_OUT) {
                    return Err(Fault::Wrong("items were left out".to_owned()).into());
                }
                let compared = compared.iter().fold(0, |sum: u64, more| sum.saturating_add(*more));
                control.advance(compared)?;
                pairs += compared;
                self.pace(end - next, begun.elapsed());
                next = end;
            }
        }
        self.runner.start_products()?;
        self.wait(control)?;
        let sums = self.runner.sums()?;
        let tiles = groups(sets[0]) * groups(sets[1]);
        if sums.len() != work.parts.len() * work.row_sets * tiles {
            return Err(Fault::Wrong(format!("{} sums of {} products", sums.len(), work.parts.len())).into());
        }
        self.check(work, &sums)?;
        let row_sets: Vec<u128> = sums
            .chunks(tiles)
            .map(|sums| sums.iter().map(|&[low, high]| u128::from(high) << 64 | u128::from(low)).sum())
            .collect();
        let mut all = Vec::with_capacity(work.parts.len());
        for (part, sums) in work.parts.iter().zip(row_sets.chunks(work.row_sets)) {
            let sums = sums[part.row_sets.clone()].iter().map(|&sum| u64::try_from(sum));
            let sums: Result<Vec<_>, _> = sums.collect();
            all.push(sums.map_err(|_| Fault::Wrong("2^64 solutions or more of a row set".to_owned()))?);
        }
        Ok((all, pairs))
    }

    /// Waits for what was begun, also when it is stopped: it uses what the next call replaces.
    fn wait(&mut self, control: &Control) -> Result<(), Interruption> {
        let mut stopped = Ok(());
        let mut look = || {
            stopped = stopped.and(control.advance(0));
            Ok(())
        };
        wait(|| self.runner.is_done(), &mut look)?;
        Ok(stopped?)
    }

    /// Learns how many items make a launch of the right length.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a guess"
    )]
    fn pace(&mut self, items: usize, elapsed: Duration) {
        let load = (items as f64 * self.runner.launch_s() / elapsed.as_secs_f64().max(1e-6)) as usize;
        self.load = load.clamp(self.load / 4, self.load.saturating_mul(4)).max(1);
    }

    /// Counts a matrix row of each colour again by plain loops, and multiplies what lies around them: each time others.
    fn check(&mut self, work: &ProductWork<'_>, sums: &[[u64; 2]]) -> Result<(), Fault> {
        let [ps, ls] = sets(work);
        let [p_groups, l_groups] = [ps, ls].map(groups);
        // A prime: all are met.
        self.calls = self.calls.wrapping_add(1_000_003);
        let at = self.calls % sums.len();
        let (l_group, p_group) = (at % l_groups, at / l_groups % p_groups);
        let (part, row_set) =
            (at / l_groups / p_groups / work.row_sets, at / l_groups / p_groups % work.row_sets);
        let [p_first, l_first] = [p_group, l_group].map(|group| group * SETS);
        let [p_here, l_here] = [(ps, p_first), (ls, l_first)].map(|(sets, first)| SETS.min(sets - first));
        let l_row = row_set * ls + l_first;
        let one = self.runner.cells(0, part, p_group, l_row..l_row + l_here)?;
        let p_row = row_set * ps + p_first;
        let other = self.runner.cells(1, part, l_group, p_row..p_row + p_here)?;
        let [p, l] = [self.calls % p_here, self.calls % l_here];
        let lists = &work.parts[part].lists;
        same(&one[l], &(work.placements)(0, l_row + l), |lane| lists[0].list(p_first + lane), p_here)?;
        same(&other[p], &(work.placements)(1, p_row + p), |lane| lists[1].list(l_first + lane), l_here)?;
        let factors = &work.parts[part].factors;
        let mut expected: u128 = 0;
        for p in 0..p_here {
            for l in 0..l_here {
                let [p_factor, l_factor] =
                    [factors[0][p_first + p], factors[1][l_first + l]].map(|pair| pair.map(u128::from));
                let factor = p_factor[0] * l_factor[0] + p_factor[1] * l_factor[1];
                expected += u128::from(one[l][p]) * u128::from(other[p][l]) * factor;
            }
        }
        let [low, high] = sums[at];
        if u128::from(high) << 64 | u128::from(low) == expected {
            Ok(())
        } else {
            Err(Fault::Wrong(format!("{low} and {high} * 2^64 for a sum of {expected}")))
        }
    }
}

impl<R: ProductRunner> ProductCounter for DeviceProducts<R> {
    fn matrices_max(&self) -> u64 {
        self.runner.matrices_max()
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn count(&mut self, work: &ProductWork<'_>, control: &Control) -> Result<(Vec<Vec<u64>>, u64), Stopped> {
        if self.fault.is_some() {
            return Err(Stopped);
        }
        self.count_all(work, control).map_err(|interruption| {
            if let Interruption::Fault(fault) = interruption {
                self.fault = Some(fault.to_string());
            }
            Stopped
        })
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}

/// Numbers of the column sets p and l.
pub(crate) fn sets(work: &ProductWork<'_>) -> [usize; 2] {
    work.parts[0].factors.each_ref().map(Vec::len)
}

/// The length of the longest list of a colour.
pub(crate) fn longest(part: &ProductPart<'_>, colour: usize) -> usize {
    part.lists[colour].starts.windows(2).map(|list| (list[1] - list[0]) as usize).max().unwrap_or(0)
}

/// Holds a row of fits against those of placements and lists.
fn same<'a>(
    counted: &[u32; SETS],
    placements: &[u64],
    list: impl Fn(usize) -> &'a [u64],
    lanes: usize,
) -> Result<(), Fault> {
    for (lane, &counted) in counted.iter().enumerate() {
        let list = if lane < lanes { list(lane) } else { &[] };
        let expected = fits(placements, list);
        if u64::from(counted) != expected {
            return Err(Fault::Wrong(format!("{counted} for {expected} fits")));
        }
    }
    Ok(())
}

/// Pairs without a common bit.
fn fits(one: &[u64], other: &[u64]) -> u64 {
    one.iter().map(|mask| other.iter().filter(|other| **other & mask == 0).count() as u64).sum()
}

#[cfg(test)]
mod tests;
