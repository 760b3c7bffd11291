//! The leaf of the join: all pairs of two lists at once, 512 a step.
//!
//! The diagonals that both lists use are dealt out to windows of at most 8. A block of 512 elements of one list
//! is turned into bit planes, and these into a table for each window: for each index the elements that have none
//! of its diagonals. An element of the other list, the query, is then compared with the whole block by an AND of
//! one row of each table.

use super::geometry::Geometry;
use super::operations::{Costs, Operations};
use super::progress::{Phase, Progress};
use crate::engine::Stopped;

/// Elements of a block.
pub(super) const BLOCK: usize = 512;
/// Windows have at most 8 bits, and the at most 60 diagonals need at most 8 windows.
pub(super) const TABLE_ROWS: usize = 8 * 256;

/// One bit for each element of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Row(pub(super) [u64; 8]);

impl Row {
    /// The first `len` elements of a block; none if negative, all from 512 on.
    fn first(len: usize) -> Self {
        Self(std::array::from_fn(|word| match len.saturating_sub(64 * word) {
            0 => 0,
            left @ 1..64 => (1 << left) - 1,
            _ => u64::MAX,
        }))
    }
}

/// A list whose first `untied` elements count double against each other, and all others once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighted<'a> {
    pub(super) masks: &'a [u64],
    pub(super) untied: usize,
}

impl Weighted<'_> {
    pub(super) fn len(&self) -> usize {
        self.masks.len()
    }
}

/// How the diagonals in use are dealt out to windows, each a few neighbouring bits of the queries' masks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// Where each window begins: what a query's mask is shifted by. A byte each; those not in use are zero.
    pub(super) offsets: [u8; 8],
    /// Which of the eight bits from there on are in use: the index into a window's table. Every window in use has
    /// one.
    pub(super) fields: [u8; 8],
    /// For each window and index bit the bit of the blocks' masks that it meets.
    pub(super) partners: [[u8; 8]; 8],
    len: usize,
}

impl Windows {
    /// Windows for the diagonals `live`, at least one, as the query side calls them.
    ///
    /// Fewer windows make a query cheaper, narrower ones a block.
    fn new(geometry: &Geometry, live: u64, queries: usize, costs: Costs) -> Self {
        let bits = live.count_ones();
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let cost = |windows: u32| {
            let rows = windows << bits.div_ceil(windows);
            costs.row * f64::from(rows) + costs.window * f64::from(windows) * queries as f64
        };
        let best =
            (bits.div_ceil(8)..=8).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).expect("at most 64 bits");
        // Gaps may ask for more windows than bits do; eight of eight bits hold the at most 60 diagonals.
        let dealt = (bits.div_ceil(best)..=8).find_map(|width_max| Self::deal(live, width_max));
        let mut windows = dealt.expect("the widest windows do");
        // The same diagonal is `family` bits further on in the other half's masks, or back.
        let family = u8::try_from(geometry.family()).expect("at most 30");
        for (partners, offset) in windows.partners.iter_mut().zip(windows.offsets) {
            for (partner, bit) in partners.iter_mut().zip(offset..) {
                *partner = if bit < family { bit + family } else { bit - family };
            }
        }
        windows
    }

    /// From the lowest bit on, as few windows of at most `width_max` bits in use as possible; `None` if they are
    /// more than eight.
    fn deal(live: u64, width_max: u32) -> Option<Self> {
        let mut dealt = Self { offsets: [0; 8], fields: [0; 8], partners: [[0; 8]; 8], len: 0 };
        let mut rest = live;
        while rest != 0 {
            let offset = rest.trailing_zeros();
            let mut field = (rest >> offset).to_le_bytes()[0];
            while field.count_ones() > width_max {
                field ^= 1 << field.ilog2();
            }
            rest ^= u64::from(field) << offset;
            *dealt.offsets.get_mut(dealt.len)? = offset.to_le_bytes()[0];
            dealt.fields[dealt.len] = field;
            dealt.len += 1;
        }
        Some(dealt)
    }

    /// Number of windows, 1..=8.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// All bits in use.
    pub(super) fn live(&self) -> u64 {
        let shifted = self.fields.iter().zip(self.offsets).map(|(&field, offset)| u64::from(field) << offset);
        shifted.fold(0, |live, field| live | field)
    }
}

/// What a join leaves behind for the next one: buffers.
#[derive(Debug)]
pub(super) struct Leaf {
    tables: Box<[Row; TABLE_ROWS]>,
    planes: Box<[Row; 64]>,
    indices: Vec<u64>,
}

impl Leaf {
    pub(super) fn new() -> Self {
        let rows = |len| vec![Row([0; 8]); len].into_boxed_slice();
        Self {
            tables: rows(TABLE_ROWS).try_into().expect("as long as asked for"),
            planes: rows(64).try_into().expect("as long as asked for"),
            indices: Vec::new(),
        }
    }

    /// The weighted number of pairs of `queries` and `blocks` that fit together.
    pub(super) fn join(
        &mut self,
        operations: &dyn Operations,
        geometry: &Geometry,
        queries: Weighted<'_>,
        blocks: Weighted<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<u64, Stopped> {
        progress.enter(Phase::Tables);
        let live = geometry.exchange(operations.union(blocks.masks)) & operations.union(queries.masks);
        let all = (queries.len() * blocks.len() + queries.untied * blocks.untied) as u64;
        if live == 0 {
            progress.add(all)?;
            return Ok(all);
        }
        if queries.len() * blocks.len() <= SMALL_PAIRS || blocks.len() <= SMALL_BLOCK {
            progress.enter(Phase::Queries);
            progress.add((queries.len() * blocks.len()) as u64)?;
            return Ok(self.small(operations, geometry, queries, blocks));
        }
        let count = blocks.len().div_ceil(BLOCK);
        let windows = Windows::new(geometry, live, queries.len(), operations.costs());
        self.indices.resize(queries.len(), 0);
        operations.index(queries.masks, &windows, &mut self.indices);
        let (untied, tied) = self.indices.split_at(queries.untied);
        let size = blocks.len().div_ceil(count).next_multiple_of(64);
        let mut sum = 0;
        for (number, block) in blocks.masks.chunks(size).enumerate() {
            progress.enter(Phase::Tables);
            operations.transpose(block, &mut self.planes);
            operations.tables(&windows, &self.planes, &Row::first(block.len()), &mut self.tables);
            progress.enter(Phase::Queries);
            let query = |list: &[u64], double| operations.query(&self.tables, windows.len(), list, double);
            let doubles = blocks.untied.saturating_sub(number * size);
            let double_row = Row::first(doubles);
            sum += match doubles {
                0 => query(untied, None),
                doubles if doubles >= block.len() => 2 * query(untied, None),
                _ => query(untied, Some(&double_row)),
            };
            sum += query(tied, None);
            progress.add((queries.len() * block.len()) as u64)?;
        }
        Ok(sum)
    }

    /// The same by comparing one with one.
    fn small(
        &mut self,
        operations: &dyn Operations,
        geometry: &Geometry,
        queries: Weighted<'_>,
        blocks: Weighted<'_>,
    ) -> u64 {
        self.indices.clear();
        self.indices.extend(queries.masks.iter().map(|&mask| geometry.exchange(mask)));
        operations.small(Weighted { masks: &self.indices, ..queries }, blocks)
    }
}

/// Up to so many pairs tables do not pay.
const SMALL_PAIRS: usize = 12_000;
/// Nor for so few elements.
const SMALL_BLOCK: usize = 16;
