//! Joining the placements of both halves that have given row-0 queens.

use super::generate::RowList;
use super::geometry::{Criterion, Exchange};
use super::grouped::{Chosen, GROUPS, Grouped, grow};
use super::operations::Mask;
use super::progress::JoinProgress;
use super::split::{Splitter, Tools, short_live, squeeze};
use super::windows::{BLOCK, Costs, Weighted};
use crate::engine::Stopped;

/// How a pair of lists is joined.
#[derive(Clone, Copy, Debug)]
struct PairPlan {
    cost: f64,
    /// The side that asks; the other one is put into blocks.
    asking: usize,
    /// Whether the asking side is taken group by group, the other filtered by each group's row-1 queen.
    by_group: bool,
    /// Whether large groups of the blocks get queries filtered by their row-1 queen.
    own_blocks: bool,
}

/// Joins pairs of row lists; keeps its buffers.
#[derive(Debug)]
pub(super) struct Pairs {
    chosen: [Chosen; 2],
    sides: [Grouped; 2],
    short_sides: [Grouped<u32>; 2],
    filtered: Grouped,
    queries: Vec<u64>,
    asker: Asker,
}

impl Pairs {
    pub(super) fn new() -> Self {
        Self {
            chosen: [Chosen::new(), Chosen::new()],
            sides: [Grouped::new(), Grouped::new()],
            short_sides: [Grouped::new(), Grouped::new()],
            filtered: Grouped::new(),
            queries: Vec::new(),
            asker: Asker::new(),
        }
    }

    /// The weighted number of pairs of an upper and a lower half that fit together. The lists' row-0 queens do
    /// not attack each other.
    pub(super) fn join(
        &mut self,
        tools: Tools<'_>,
        lists: [RowList<'_>; 2],
        criterion: Criterion,
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
        for side in 0..2 {
            self.chosen[side].choose(tools, lists[side], lists[1 - side].first(), criterion);
        }
        if self.chosen.iter().any(|chosen| chosen.bounds.len() == 0) {
            return Ok(0);
        }
        if let [Some(upper), Some(lower)] = lists.map(RowList::short_masks) {
            for ((side, chosen), masks) in self.short_sides.iter_mut().zip(&self.chosen).zip([upper, lower]) {
                side.pick(tools, masks, chosen);
            }
            let exchange = tools.geometry.exchange().squeezed(tools.geometry.beyond_first_queens());
            let [upper, lower] = &self.short_sides;
            return self.asker.splitter.join(tools, exchange, upper.all(), lower.all(), progress);
        }
        for ((side, chosen), list) in self.sides.iter_mut().zip(&self.chosen).zip(lists) {
            side.pick(tools, list.masks(), chosen);
        }
        let plan = plan(tools, &self.sides, lists[0].is_grouped());
        let [asking, blocks] = [&self.sides[plan.asking], &self.sides[1 - plan.asking]];
        if !plan.by_group {
            return self.asker.ask(tools, asking.all(), blocks, plan.own_blocks, progress);
        }
        let mut sum = 0;
        for group in (0..GROUPS).filter(|&group| asking.bounds.size(group) > 0) {
            let struck = tools.geometry.struck(1, group);
            self.filtered.sift(tools, blocks, struck, plan.own_blocks);
            let [untied, tied] = asking.parts(group);
            self.queries.clear();
            self.queries.extend_from_slice(untied);
            self.queries.extend_from_slice(tied);
            let queries = Weighted { masks: &self.queries, untied: untied.len() };
            sum += self.asker.ask(tools, queries, &self.filtered, plan.own_blocks, progress)?;
        }
        Ok(sum)
    }
}

/// Joins queries with blocks.
#[derive(Debug)]
struct Asker {
    queries: Vec<u32>,
    blocks: Grouped<u32>,
    long: Parts<u64>,
    short: Parts<u32>,
    splitter: Splitter,
}

/// The parts of two lists that are joined.
#[derive(Debug, Default)]
struct Parts<M> {
    sifted: Vec<M>,
    block: Vec<M>,
}

impl Asker {
    fn new() -> Self {
        Self {
            queries: Vec::new(),
            blocks: Grouped::new(),
            long: Parts::default(),
            short: Parts::default(),
            splitter: Splitter::new(),
        }
    }

    /// All queries against all blocks; with `own_blocks`, a large group gets blocks of its own and queries filtered
    /// by its row-1 queen, and only the rest is pooled.
    fn ask(
        &mut self,
        tools: Tools<'_>,
        queries: Weighted<'_>,
        blocks: &Grouped,
        own_blocks: bool,
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
        let exchange = tools.geometry.exchange();
        if !own_blocks {
            return self.splitter.join(tools, exchange, queries, blocks.all(), progress);
        }
        let struck = |group| tools.geometry.struck(1, group);
        // Each query and each element of the blocks is looked at many times: short masks pay.
        let Some(live) = short_live(tools, exchange, queries.masks, blocks.all().masks) else {
            return self.long.join(tools, &mut self.splitter, exchange, queries, blocks, struck, progress);
        };
        squeeze(tools, queries.masks, live, &mut self.queries);
        blocks.squeeze(tools, exchange.of(live), &mut self.blocks);
        let queries = Weighted { masks: &self.queries[..queries.len()], untied: queries.untied };
        let struck = |group| {
            let mut short = [0];
            tools.operations.squeeze(&[struck(group)], live, &mut short);
            short[0].into()
        };
        let exchange = exchange.squeezed(live);
        self.short.join(tools, &mut self.splitter, exchange, queries, &self.blocks, struck, progress)
    }
}

impl<M: Mask> Parts<M> {
    /// Group by group; `struck` are the queries' diagonals that a group's row-1 queen forbids.
    #[expect(clippy::too_many_arguments, reason = "two lists and how to join them")]
    fn join(
        &mut self,
        tools: Tools<'_>,
        splitter: &mut Splitter,
        exchange: Exchange,
        queries: Weighted<'_, M>,
        blocks: &Grouped<M>,
        struck: impl Fn(usize) -> u64,
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
        let own = |group| tools.deserves_own_blocks(blocks.bounds.size(group), queries.len());
        let mut sum = 0;
        for group in (0..GROUPS).filter(|&group| own(group)) {
            grow(&mut self.sifted, queries.len());
            let struck = struck(group);
            let (untied, tied) = queries.masks.split_at(queries.untied);
            let untied = M::of(tools.operations).sift(untied, struck, &mut self.sifted);
            let tied = M::of(tools.operations).sift(tied, struck, &mut self.sifted[untied..]);
            let sifted = Weighted { masks: &self.sifted[..untied + tied], untied };
            let block = gather(&mut self.block, blocks, std::iter::once(group));
            sum += splitter.join(tools, exchange, sifted, block, progress)?;
        }
        let pool = gather(&mut self.block, blocks, (0..GROUPS).filter(|&group| !own(group)));
        Ok(sum + splitter.join(tools, exchange, queries, pool, progress)?)
    }
}

/// Copies some groups to a list of their own.
fn gather<'a, M: Mask>(
    buffer: &'a mut Vec<M>,
    from: &Grouped<M>,
    groups: impl Iterator<Item = usize> + Clone,
) -> Weighted<'a, M> {
    buffer.clear();
    for group in groups.clone() {
        buffer.extend_from_slice(from.parts(group)[0]);
    }
    let untied = buffer.len();
    for group in groups {
        buffer.extend_from_slice(from.parts(group)[1]);
    }
    Weighted { masks: buffer, untied }
}

/// The cheapest way to join two sides, by estimate.
fn plan(tools: Tools<'_>, sides: &[Grouped; 2], grouped: bool) -> PairPlan {
    let mut best = PairPlan { cost: f64::INFINITY, asking: 0, by_group: false, own_blocks: false };
    let mut consider = |plan: PairPlan| {
        if plan.cost < best.cost {
            best = plan;
        }
    };
    for asking in 0..2 {
        let blocks = &sides[1 - asking];
        let queries = count(sides[asking].bounds.len());
        let (cost, own_blocks) = ask_cost(tools, queries, blocks, 1.0, grouped);
        consider(PairPlan { cost, asking, by_group: false, own_blocks });
        if grouped && sides[asking].bounds.len() >= tools.thresholds.by_group {
            let groups = count((0..GROUPS).filter(|&group| sides[asking].bounds.size(group) > 0).count());
            let (cost, own_blocks) = ask_cost(tools, queries / groups, blocks, LEFT_BY_ROW, grouped);
            let cost = groups * (cost + count(blocks.bounds.len()) * tools.costs.sift);
            consider(PairPlan { cost, asking, by_group: true, own_blocks });
        }
    }
    best
}

/// What it costs to ask `queries` of a share of each group; and whether any group gets blocks of its own.
fn ask_cost(tools: Tools<'_>, queries: f64, blocks: &Grouped, share: f64, grouped: bool) -> (f64, bool) {
    let costs = tools.costs;
    if !grouped {
        return (blocks_cost(costs, count(blocks.bounds.len()) * share, queries), false);
    }
    let [mut cost, mut pool] = [0.0; 2];
    let mut own_blocks = false;
    for size in (0..GROUPS).map(|group| count(blocks.bounds.size(group)) * share) {
        if tools.deserves_own_blocks(whole(size), whole(queries)) {
            own_blocks = true;
            cost += blocks_cost(costs, size, queries * LEFT_BY_ROW) + costs.sift * queries;
        } else {
            pool += size;
        }
    }
    (cost + blocks_cost(costs, pool, queries), own_blocks)
}

/// What it costs to ask `queries` of a list of `size` elements.
fn blocks_cost(costs: Costs, size: f64, queries: f64) -> f64 {
    count(whole(size).div_ceil(BLOCK)) * (costs.block + costs.query * queries)
}

/// The share of a list that stands beside one more queen.
const LEFT_BY_ROW: f64 = 0.42;

#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn count(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lengths")]
fn whole(count: f64) -> usize {
    count as usize
}
