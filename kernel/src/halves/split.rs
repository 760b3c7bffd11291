//! Joining two long lists: split on the diagonals that are common on both sides, as long as that pays.

use super::geometry::Geometry;
use super::leaf::{BLOCK, Leaf, Weighted};
use super::operations::{Costs, Operations, SLACK};
use super::progress::{Phase, Progress};
use crate::engine::Stopped;

/// A splitter with its buffers.
#[derive(Debug)]
pub(super) struct Splitter {
    leaf: Leaf,
    buffer: Vec<u64>,
}

/// All that a join is done with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tools<'a> {
    pub(super) operations: &'a dyn Operations,
    pub(super) geometry: &'a Geometry,
    pub(super) costs: Costs,
    pub(super) thresholds: Thresholds,
}

impl Tools<'_> {
    /// Whether so large a group gets blocks of its own from so many queries.
    pub(super) fn deserves_own_blocks(self, size: usize, queries: usize) -> bool {
        size >= self.thresholds.own_blocks && queries >= self.thresholds.own_queries
    }
}

/// From which lengths on a list is worth a closer look; found by experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds {
    /// Elements of a group that may get blocks of its own.
    pub(super) own_blocks: usize,
    /// Queries that make it so.
    pub(super) own_queries: usize,
    /// Queries that may be taken group by group.
    pub(super) by_group: usize,
    /// Elements on either side of a join that may be split on a diagonal.
    pub(super) split: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { own_blocks: 256, own_queries: 400, by_group: 1500, split: 600 }
    }
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self { leaf: Leaf::new(), buffer: Vec::new() }
    }

    /// The weighted number of pairs that fit together.
    pub(super) fn join(
        &mut self,
        tools: Tools<'_>,
        a: Weighted<'_>,
        b: Weighted<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<u64, Stopped> {
        // Each level takes at most the lists' lengths, and what is left gets shorter: a few levels in all.
        let room = LEVELS * (a.len() + b.len() + 3 * SLACK);
        if self.buffer.len() < room && worth_sampling(tools, a.len(), b.len()) {
            self.buffer.resize(room, 0);
        }
        split(tools, &mut self.leaf, a, b, &mut self.buffer, progress)
    }
}

/// Room is kept for so many levels of splits of the full lists; deeper ones are done while there is room.
const LEVELS: usize = 3;

/// A split must save this many times what it costs.
const GAIN: f64 = 0.8;

/// Cycles of a split that do not depend on the lists.
const SPLIT_BASE: f64 = 1000.0;

#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn split_cost(a: usize, b: usize) -> f64 {
    (a + b) as f64 + SPLIT_BASE
}

/// What joining costs without a split, tables aside.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn queries_cost(costs: Costs, a: usize, b: usize) -> f64 {
    a as f64 * b as f64 / BLOCK as f64 * costs.query
}

fn worth_sampling(tools: Tools<'_>, a: usize, b: usize) -> bool {
    a.min(b) >= tools.thresholds.split && 0.25 * queries_cost(tools.costs, a, b) > GAIN * split_cost(a, b)
}

#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn block_cost(costs: Costs, queries: usize, blocks: usize) -> f64 {
    blocks.div_ceil(BLOCK) as f64 * (costs.block + costs.query * queries as f64)
}

fn split(
    tools: Tools<'_>,
    leaf: &mut Leaf,
    a: Weighted<'_>,
    b: Weighted<'_>,
    buffer: &mut [u64],
    progress: &mut Progress<'_>,
) -> Result<u64, Stopped> {
    if a.len() == 0 || b.len() == 0 {
        return Ok(0);
    }
    progress.enter(Phase::Splits);
    let Tools { operations, geometry, costs, .. } = tools;
    let swapped = block_cost(costs, b.len(), a.len()) < block_cost(costs, a.len(), b.len());
    let (queries, blocks) = if swapped { (b, a) } else { (a, b) };
    let room = queries.len() + 2 * blocks.len() + 3 * SLACK;
    if worth_sampling(tools, queries.len(), blocks.len())
        && buffer.len() >= room
        && let Some(hot) = hottest(tools, queries.masks, blocks.masks)
    {
        // Blocks on the diagonal meet queries off it; blocks off it meet all.
        let (off_buffer, rest) = buffer.split_at_mut(queries.len() + SLACK);
        let untied = operations.sift(&queries.masks[..queries.untied], hot, off_buffer);
        let tied = operations.sift(&queries.masks[queries.untied..], hot, &mut off_buffer[untied..]);
        let queries_off = Weighted { masks: &off_buffer[..untied + tied], untied };
        let bit = geometry.exchange(hot);
        let (off_buffer, rest) = rest.split_at_mut(blocks.len() + SLACK);
        let (on_buffer, rest) = rest.split_at_mut(blocks.len() + SLACK);
        let (untied_masks, tied_masks) = blocks.masks.split_at(blocks.untied);
        let untied = operations.part(untied_masks, bit, off_buffer, on_buffer);
        let untied_on = untied_masks.len() - untied;
        let tied = operations.part(tied_masks, bit, &mut off_buffer[untied..], &mut on_buffer[untied_on..]);
        let tied_on = tied_masks.len() - tied;
        let blocks_off = Weighted { masks: &off_buffer[..untied + tied], untied };
        let blocks_on = Weighted { masks: &on_buffer[..untied_on + tied_on], untied: untied_on };
        let apart = split(tools, leaf, queries_off, blocks_on, rest, progress)?;
        return Ok(apart + split(tools, leaf, queries, blocks_off, rest, progress)?);
    }
    leaf.join(operations, geometry, queries, blocks, progress)
}

/// The diagonal, as the queries call it, that most pairs have in common, if a split on it pays.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn hottest(tools: Tools<'_>, queries: &[u64], blocks: &[u64]) -> Option<u64> {
    let Tools { operations, geometry, costs, .. } = tools;
    let sample = |masks: &[u64]| {
        let mut counts = [0; 64];
        let squares = masks.as_chunks::<64>().0;
        for k in 0..SAMPLES {
            operations.sample(&squares[k * squares.len() / SAMPLES], &mut counts);
        }
        counts
    };
    let [asked, held] = [sample(queries), sample(blocks)];
    let (common, bit) = (0..2 * geometry.family())
        .map(|bit| {
            let other = geometry.exchange(1 << bit).trailing_zeros();
            (asked[bit as usize] * held[other as usize], bit)
        })
        .max()?;
    let share = common as f64 / ((64 * SAMPLES) as f64).powi(2);
    let saved = share * queries_cost(costs, queries.len(), blocks.len());
    (saved > GAIN * split_cost(queries.len(), blocks.len())).then_some(1 << bit)
}

/// Blocks of 64 looked at on each side.
const SAMPLES: usize = 4;
