//! Joining two long lists: split on the diagonals that are common on both sides, as long as that pays.

use super::geometry::{Exchange, Geometry};
use super::leaf::Leaf;
use super::operations::{Mask, Operations, SLACK};
use super::progress::JoinProgress;
use super::windows::{BLOCK, Costs, Weighted};
use crate::engine::Stopped;

/// A splitter with its buffers.
#[derive(Debug)]
pub(super) struct Splitter {
    buffer: Vec<u64>,
    below: NextSplit,
}

/// What a split goes on with.
#[derive(Debug)]
struct NextSplit {
    leaf: Leaf,
    squeezed: [Vec<u32>; 2],
    buffer: Vec<u32>,
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
        let below = NextSplit { leaf: Leaf::new(), squeezed: [Vec::new(), Vec::new()], buffer: Vec::new() };
        Self { buffer: Vec::new(), below }
    }

    /// The weighted number of pairs that fit together.
    pub(super) fn join<M: Mask>(
        &mut self,
        tools: Tools<'_>,
        exchange: Exchange,
        a: Weighted<'_, M>,
        b: Weighted<'_, M>,
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
        // Taken while it is in use, as the rest is needed below.
        let mut buffer = std::mem::take(M::buffer(&mut self.buffer, &mut self.below.buffer));
        make_room(tools, &mut buffer, a.len(), b.len());
        let sum = split(tools, exchange, &mut self.below, a, b, &mut buffer, progress);
        *M::buffer(&mut self.buffer, &mut self.below.buffer) = buffer;
        sum
    }
}

/// Makes room for splits of lists so long, if they may be split.
fn make_room<M: Mask>(tools: Tools<'_>, buffer: &mut Vec<M>, a: usize, b: usize) {
    // Each level takes at most the lists' lengths, and what is left gets shorter: a few levels in all.
    let room = LEVELS * (a + b + 3 * SLACK);
    if buffer.len() < room && worth_sampling(tools, a, b) {
        buffer.resize(room, M::default());
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

fn split<M: Mask>(
    tools: Tools<'_>,
    exchange: Exchange,
    below: &mut NextSplit,
    a: Weighted<'_, M>,
    b: Weighted<'_, M>,
    buffer: &mut [M],
    progress: &mut JoinProgress<'_>,
) -> Result<u64, Stopped> {
    if a.len() == 0 || b.len() == 0 {
        return Ok(0);
    }
    let Tools { operations, costs, .. } = tools;
    let swapped = block_cost(costs, b.len(), a.len()) < block_cost(costs, a.len(), b.len());
    let (queries, blocks, exchange) = if swapped { (b, a, exchange.back()) } else { (a, b, exchange) };
    let room = queries.len() + 2 * blocks.len() + 3 * SLACK;
    if worth_sampling(tools, queries.len(), blocks.len()) && buffer.len() >= room {
        if let Some(sum) = split_short(tools, exchange, below, queries, blocks, progress) {
            return sum;
        }
        if let Some(hot) = hottest(tools, exchange, queries.masks, blocks.masks) {
            // Blocks on the diagonal meet queries off it; blocks off it meet all.
            let (off_buffer, rest) = buffer.split_at_mut(queries.len() + SLACK);
            let (untied_masks, tied_masks) = queries.masks.split_at(queries.untied);
            let untied = M::of(operations).sift(untied_masks, hot, off_buffer);
            let tied = M::of(operations).sift(tied_masks, hot, &mut off_buffer[untied..]);
            let queries_off = Weighted { masks: &off_buffer[..untied + tied], untied };
            let bit = exchange.of(hot);
            let (off_buffer, rest) = rest.split_at_mut(blocks.len() + SLACK);
            let (on_buffer, rest) = rest.split_at_mut(blocks.len() + SLACK);
            let (untied_masks, tied_masks) = blocks.masks.split_at(blocks.untied);
            let untied = M::of(operations).part(untied_masks, bit, off_buffer, on_buffer);
            let untied_on = untied_masks.len() - untied;
            let tied = M::of(operations).part(
                tied_masks,
                bit,
                &mut off_buffer[untied..],
                &mut on_buffer[untied_on..],
            );
            let tied_on = tied_masks.len() - tied;
            let blocks_off = Weighted { masks: &off_buffer[..untied + tied], untied };
            let blocks_on = Weighted { masks: &on_buffer[..untied_on + tied_on], untied: untied_on };
            let apart = split(tools, exchange, below, queries_off, blocks_on, rest, progress)?;
            return Ok(apart + split(tools, exchange, below, queries, blocks_off, rest, progress)?);
        }
    }
    below.leaf.join(operations, exchange, queries, blocks, progress)
}

/// The same with short masks, half as long, if the masks are long ones and the diagonals that both lists use fit them.
fn split_short<M: Mask>(
    tools: Tools<'_>,
    exchange: Exchange,
    below: &mut NextSplit,
    queries: Weighted<'_, M>,
    blocks: Weighted<'_, M>,
    progress: &mut JoinProgress<'_>,
) -> Option<Result<u64, Stopped>> {
    let [asking, asked] = [M::long(queries.masks)?, M::long(blocks.masks)?];
    let live = short_live(tools, exchange, asking, asked)?;
    let mut lists = std::mem::take(&mut below.squeezed);
    let mut buffer = std::mem::take(&mut below.buffer);
    squeeze(tools, asking, live, &mut lists[0]);
    squeeze(tools, asked, exchange.of(live), &mut lists[1]);
    make_room(tools, &mut buffer, asking.len(), asked.len());
    let [queries, blocks] = [
        Weighted { masks: &lists[0][..asking.len()], untied: queries.untied },
        Weighted { masks: &lists[1][..asked.len()], untied: blocks.untied },
    ];
    let sum = split(tools, exchange.squeezed(live), below, queries, blocks, &mut buffer, progress);
    below.squeezed = lists;
    below.buffer = buffer;
    Some(sum)
}

/// The diagonals that two lists both use, as the first one calls them, if short masks have room for them.
pub(super) fn short_live(tools: Tools<'_>, exchange: Exchange, a: &[u64], b: &[u64]) -> Option<u64> {
    let live = exchange.live(tools.operations.union(a), tools.operations.union(b));
    (live.count_ones() <= u32::BITS).then_some(live)
}

/// Makes short masks of the bits `live`; `to` may be longer.
pub(super) fn squeeze(tools: Tools<'_>, masks: &[u64], live: u64, to: &mut Vec<u32>) {
    if to.len() < masks.len() {
        to.resize(masks.len(), 0);
    }
    tools.operations.squeeze(masks, live, to);
}

/// The diagonal, as the queries call it, that most pairs have in common, if a split on it pays.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn hottest<M: Mask>(tools: Tools<'_>, exchange: Exchange, queries: &[M], blocks: &[M]) -> Option<u64> {
    let Tools { operations, costs, .. } = tools;
    let sample = |masks: &[M]| {
        let mut counts = [0; 64];
        let size = masks.len().min(64 * M::IN_WORD);
        // Parts of the list, evenly spread.
        for k in 0..SAMPLES {
            let from = k * (masks.len() - size) / SAMPLES;
            M::of(operations).sample(&masks[from..from + size], &mut counts);
        }
        (counts, (size * SAMPLES) as f64)
    };
    let [(asked, queries_seen), (held, blocks_seen)] = [sample(queries), sample(blocks)];
    let (common, bit) = (0..exchange.diagonals())
        .map(|bit| (asked[bit as usize] * held[exchange.bit(bit) as usize], bit))
        .max()?;
    let share = common as f64 / (queries_seen * blocks_seen);
    let saved = share * queries_cost(costs, queries.len(), blocks.len());
    (saved > GAIN * split_cost(queries.len(), blocks.len())).then_some(1 << bit)
}

/// Parts of a list looked at on each side, of 64 words.
const SAMPLES: usize = 4;
