//! Joining the placements of both halves that have given row-0 queens.

use super::generate::RowList;
use super::geometry::{Criterion, Exchange};
use super::leaf::{BLOCK, Weighted};
use super::operations::{Costs, Mask, SLACK};
use super::progress::{Phase, Progress};
use super::split::{Splitter, Tools, short_live, squeeze};
use crate::engine::Stopped;

/// Groups of a list: one for each column of the row-1 queen.
const GROUPS: usize = 32;

/// What is left of a list by filters: first the untied elements, then the tied ones, each by group.
#[derive(Debug)]
struct Grouped<M = u64> {
    masks: Vec<M>,
    /// Where each group's untied elements begin, and the end.
    untied: [usize; GROUPS + 1],
    /// Where each group's tied elements begin, and the end.
    tied: [usize; GROUPS + 1],
}

impl<M: Mask> Grouped<M> {
    fn new() -> Self {
        Self { masks: Vec::new(), untied: [0; GROUPS + 1], tied: [0; GROUPS + 1] }
    }

    fn len(&self) -> usize {
        self.tied[GROUPS]
    }

    fn size(&self, group: usize) -> usize {
        self.untied[group + 1] - self.untied[group] + self.tied[group + 1] - self.tied[group]
    }

    fn all(&self) -> Weighted<'_, M> {
        Weighted { masks: &self.masks[..self.len()], untied: self.untied[GROUPS] }
    }

    fn parts(&self, group: usize) -> [&[M]; 2] {
        [
            &self.masks[self.untied[group]..self.untied[group + 1]],
            &self.masks[self.tied[group]..self.tied[group + 1]],
        ]
    }
}

impl Grouped {
    /// Becomes what is left of `from` without the elements that have any of `bits`. Unless `grouped`, all are in
    /// the last group.
    fn sift(&mut self, tools: Tools<'_>, from: &Self, bits: u64, grouped: bool) {
        grow(&mut self.masks, from.len());
        let mut end = 0;
        for (starts, from_starts) in [(&mut self.untied, &from.untied), (&mut self.tied, &from.tied)] {
            if grouped {
                for group in 0..GROUPS {
                    starts[group] = end;
                    let part = &from.masks[from_starts[group]..from_starts[group + 1]];
                    if !part.is_empty() {
                        end += tools.operations.sift(part, bits, &mut self.masks[end..]);
                    }
                }
            } else {
                starts.fill(end);
                let all = &from.masks[from_starts[0]..from_starts[GROUPS]];
                end += tools.operations.sift(all, bits, &mut self.masks[end..]);
            }
            starts[GROUPS] = end;
        }
    }

    /// The same with short masks.
    fn squeeze(&self, tools: Tools<'_>, live: u64, to: &mut Grouped<u32>) {
        [to.untied, to.tied] = [self.untied, self.tied];
        squeeze(tools, self.all().masks, live, &mut to.masks);
    }
}

/// The bit vectors that choose a [`Grouped`] from a list.
#[derive(Debug, Default)]
struct Chosen {
    untied: Vec<u64>,
    tied: Vec<u64>,
}

/// How a pair of lists is joined.
#[derive(Clone, Copy, Debug)]
struct Plan {
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
    filtered: Grouped,
    queries: Vec<u64>,
    asker: Asker,
}

impl Pairs {
    pub(super) fn new() -> Self {
        Self {
            chosen: [Chosen::default(), Chosen::default()],
            sides: [Grouped::new(), Grouped::new()],
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
        progress: &mut Progress<'_>,
    ) -> Result<u64, Stopped> {
        progress.enter(Phase::Filters);
        for side in 0..2 {
            self.choose(tools, side, lists[side], lists[1 - side].first(), criterion);
        }
        if self.sides.iter().any(|side| side.len() == 0) {
            return Ok(0);
        }
        let plan = plan(tools, &self.sides, lists[0].is_grouped());
        for ((side, chosen), list) in self.sides.iter_mut().zip(&self.chosen).zip(lists) {
            grow(&mut side.masks, side.untied[GROUPS] + list.masks().len());
            let untied = side.untied[GROUPS];
            if untied > 0 {
                tools.operations.pick(list.masks(), &chosen.untied, &mut side.masks);
            }
            tools.operations.pick(list.masks(), &chosen.tied, &mut side.masks[untied..]);
        }
        let [asking, blocks] = [&self.sides[plan.asking], &self.sides[1 - plan.asking]];
        if !plan.by_group {
            return self.asker.ask(tools, asking.all(), blocks, plan.own_blocks, progress);
        }
        let mut sum = 0;
        for group in (0..GROUPS).filter(|&group| asking.size(group) > 0) {
            progress.enter(Phase::Filters);
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

    /// Finds which elements of a list stand beside the other half's row-0 queen on `other`.
    fn choose(
        &mut self,
        tools: Tools<'_>,
        side: usize,
        list: RowList<'_>,
        other: usize,
        criterion: Criterion,
    ) {
        let conflict = list.conflict(other);
        let early = list.early(criterion.early).unwrap_or(conflict);
        let tie = criterion.tie.and_then(|j| list.early(j));
        let Chosen { untied, tied } = &mut self.chosen[side];
        for bits in [&mut *untied, &mut *tied] {
            bits.resize(list.blocks(), 0);
        }
        let sizes = &mut self.sides[side];
        let mut ends = [0; 2];
        // Without groups all is in the last.
        let groups = if list.is_grouped() { 0..GROUPS } else { GROUPS - 1..GROUPS };
        for starts in [&mut sizes.untied, &mut sizes.tied] {
            starts[..groups.start].fill(0);
        }
        for group in groups {
            [sizes.untied[group], sizes.tied[group]] = ends;
            let blocks = list.group(group);
            if blocks.is_empty() {
                continue;
            }
            let found = tools.operations.standing(
                [&conflict[blocks.clone()], &early[blocks.clone()]],
                tie.map(|tie| &tie[blocks.clone()]),
                &mut untied[blocks.clone()],
                &mut tied[blocks],
            );
            ends = [ends[0] + found[0], ends[1] + found[1]];
        }
        [sizes.untied[GROUPS], sizes.tied[GROUPS]] = ends;
        sizes.tied.iter_mut().for_each(|start| *start += ends[0]);
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
        progress: &mut Progress<'_>,
    ) -> Result<u64, Stopped> {
        let exchange = tools.geometry.exchange();
        if !own_blocks {
            return self.splitter.join(tools, exchange, queries, blocks.all(), progress);
        }
        progress.enter(Phase::Filters);
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
        progress: &mut Progress<'_>,
    ) -> Result<u64, Stopped> {
        let own = |group| tools.deserves_own_blocks(blocks.size(group), queries.len());
        let mut sum = 0;
        for group in (0..GROUPS).filter(|&group| own(group)) {
            progress.enter(Phase::Filters);
            grow(&mut self.sifted, queries.len());
            let (untied, tied) = queries.masks.split_at(queries.untied);
            let untied = M::sift(tools.operations, untied, struck(group), &mut self.sifted);
            let tied = M::sift(tools.operations, tied, struck(group), &mut self.sifted[untied..]);
            let sifted = Weighted { masks: &self.sifted[..untied + tied], untied };
            let block = gather(&mut self.block, blocks, std::iter::once(group));
            sum += splitter.join(tools, exchange, sifted, block, progress)?;
        }
        progress.enter(Phase::Filters);
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
fn plan(tools: Tools<'_>, sides: &[Grouped; 2], grouped: bool) -> Plan {
    let sizes = |side: usize| std::array::from_fn(|group| sides[side].size(group));
    let mut best = Plan { cost: f64::INFINITY, asking: 0, by_group: false, own_blocks: false };
    let mut consider = |plan: Plan| {
        if plan.cost < best.cost {
            best = plan;
        }
    };
    for asking in 0..2 {
        let blocks = sizes(1 - asking);
        let queries = count(sides[asking].len());
        let (cost, own_blocks) = ask_cost(tools, queries, &blocks, 1.0, grouped);
        consider(Plan { cost, asking, by_group: false, own_blocks });
        if grouped && sides[asking].len() >= tools.thresholds.by_group {
            let groups = count(sizes(asking).iter().filter(|&&size: &&usize| size > 0).count());
            let (cost, own_blocks) = ask_cost(tools, queries / groups, &blocks, LEFT_BY_ROW, grouped);
            let cost = groups * (cost + count(sides[1 - asking].len()) * tools.costs.sift);
            consider(Plan { cost, asking, by_group: true, own_blocks });
        }
    }
    best
}

/// What it costs to ask `queries` of groups of these sizes, cut to a share; and whether any group gets blocks of
/// its own.
fn ask_cost(
    tools: Tools<'_>,
    queries: f64,
    groups: &[usize; GROUPS],
    share: f64,
    grouped: bool,
) -> (f64, bool) {
    let costs = tools.costs;
    if !grouped {
        return (blocks_cost(costs, count(groups[GROUPS - 1]) * share, queries), false);
    }
    let [mut cost, mut pool] = [0.0; 2];
    let mut own_blocks = false;
    for size in groups.iter().map(|&size| count(size) * share) {
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

/// Makes room for `len` elements and what operations overwrite beyond.
fn grow<M: Mask>(buffer: &mut Vec<M>, len: usize) {
    if buffer.len() < len + 2 * SLACK {
        buffer.resize(len + 2 * SLACK, M::default());
    }
}

#[expect(clippy::cast_precision_loss, reason = "estimates")]
fn count(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "lengths")]
fn whole(count: f64) -> usize {
    count as usize
}
