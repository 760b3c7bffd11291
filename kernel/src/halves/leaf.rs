//! The leaf of the join: all pairs of two lists at once, 512 or 1,024 a step.
//!
//! The diagonals that both lists use are dealt out to windows of at most 8. One or two blocks of 512 elements of one
//! list are turned into bit planes, and these into a table for each window: for each choice of its diagonals the
//! elements that have none of them. An element of the other list, the query, is then compared with the blocks by an
//! AND of one row of each table.

use super::geometry::Exchange;
use super::operations::{Costs, Mask, Operations, PAIRS_MAX};
use super::progress::{Phase, Progress};
use crate::engine::Stopped;

/// Elements of a block.
pub(super) const BLOCK: usize = 512;
/// Blocks that are asked at once: what a query's indices cost is then shared by both.
pub(super) const BLOCKS_MAX: usize = 2;
/// Windows of a table.
pub(super) const WINDOWS_MAX: usize = 7;
/// Rows of a window, which has at most 8 diagonals.
pub(super) const WINDOW_ROWS: usize = 256;
/// A row for each of [`BLOCKS_MAX`] blocks, by window and index.
pub(super) type Table = [[Row; BLOCKS_MAX]; WINDOWS_MAX * WINDOW_ROWS];

/// One bit for each element of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Row(pub(super) [u64; 8]);

impl Row {
    /// What an index is shifted by to become the offset of its rows in a table, in bytes.
    #[cfg(target_arch = "x86_64")]
    pub(super) const SHIFT: u32 = size_of::<[Self; BLOCKS_MAX]>().trailing_zeros();

    /// The first `len` elements of a block, all from 512 on. Where two masks stand in a word, a square of 128 has those
    /// of the lower halves first.
    fn first<M: Mask>(len: usize) -> Self {
        let mut row = [0; 8];
        for (word, bits) in row.iter_mut().enumerate() {
            let [square, place] = [word / M::IN_WORD, word % M::IN_WORD];
            let left = len.saturating_sub(64 * M::IN_WORD * square + place).div_ceil(M::IN_WORD);
            *bits = if left < 64 { (1 << left) - 1 } else { u64::MAX };
        }
        Self(row)
    }
}

/// A list whose first `untied` elements count double against each other, and all others once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighted<'a, M = u64> {
    pub(super) masks: &'a [M],
    pub(super) untied: usize,
}

impl<M> Weighted<'_, M> {
    pub(super) fn len(&self) -> usize {
        self.masks.len()
    }

    /// The list in pieces of `size`; the last may be shorter.
    pub(super) fn parts(self, size: usize) -> impl Iterator<Item = Self> {
        self.masks.chunks(size).enumerate().map(move |(number, masks)| {
            let untied = self.untied.saturating_sub(number * size).min(masks.len());
            Self { masks, untied }
        })
    }
}

/// How the diagonals in use are dealt out to windows: in order, so many to each, the last one gets what is left.
/// A query's indices are the bits of its mask at [`live`](Self::live), moved together, from the lowest on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// The bits of the queries' masks that are in use.
    pub(super) live: u64,
    /// Bits of a window, 1..=8.
    pub(super) width: u32,
    /// For each bit in use the bit of the blocks' masks that it meets.
    partners: [u8; Windows::BITS_MAX],
    bits: usize,
}

impl Windows {
    /// Bits that can be dealt out.
    const BITS_MAX: usize = 8 * WINDOWS_MAX;

    /// Windows for the diagonals `live`, at least one, as the query side calls them; `None` if they are too many.
    ///
    /// Fewer windows make a query cheaper, narrower ones a block.
    fn new(exchange: Exchange, live: u64, queries: usize, costs: Costs) -> Option<Self> {
        let bits = live.count_ones() as usize;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let queries = queries as f64;
        let mut best = None;
        let mut least = f64::INFINITY;
        for (width, &[windows, rows]) in (1..).zip(Self::SHAPES.get(bits)?) {
            let cost = costs.row * f64::from(rows) + costs.window * f64::from(windows) * queries;
            if windows as usize <= WINDOWS_MAX && cost < least {
                best = Some(width);
                least = cost;
            }
        }
        let width = best?;
        let mut partners = [0; Self::BITS_MAX];
        let mut rest = live;
        for partner in &mut partners[..bits] {
            *partner = exchange.bit(rest.trailing_zeros()).to_le_bytes()[0];
            rest &= rest - 1;
        }
        Some(Self { live, width, partners, bits })
    }

    /// How many windows so many bits take, and how many rows in all, by the number of bits and the width, from 1.
    const SHAPES: [[[u32; 2]; 8]; Self::BITS_MAX + 1] = {
        let mut shapes = [[[0; 2]; 8]; Self::BITS_MAX + 1];
        let mut at = 8;
        while (at as usize) < 8 * (Self::BITS_MAX + 1) {
            let [bits, width] = [at / 8, at % 8 + 1];
            let whole = (bits - 1) / width;
            let rows = (whole << width) + (1 << (bits - whole * width));
            shapes[bits as usize][width as usize - 1] = [whole + 1, rows];
            at += 1;
        }
        shapes
    };

    /// Number of windows, 1..=[`WINDOWS_MAX`].
    pub(super) fn len(&self) -> usize {
        self.bits.div_ceil(self.width as usize)
    }

    /// For each window the bits of the blocks' masks that its index bits meet.
    pub(super) fn partners(&self) -> impl Iterator<Item = &[u8]> {
        self.partners[..self.bits].chunks(self.width as usize)
    }
}

/// What a join leaves behind for the next one: buffers.
#[derive(Debug)]
pub(super) struct Leaf {
    table: Box<Table>,
    planes: [Box<[Row; 64]>; BLOCKS_MAX],
}

impl Leaf {
    pub(super) fn new() -> Self {
        const NONE: Row = Row([0; 8]);
        let table = vec![[NONE; BLOCKS_MAX]; WINDOWS_MAX * WINDOW_ROWS].into_boxed_slice();
        Self {
            table: table.try_into().expect("as long as asked for"),
            planes: std::array::from_fn(|_| Box::new([NONE; 64])),
        }
    }

    /// The weighted number of pairs of `queries` and `blocks` that fit together.
    pub(super) fn join<M: Mask>(
        &mut self,
        operations: &dyn Operations,
        exchange: Exchange,
        queries: Weighted<'_, M>,
        blocks: Weighted<'_, M>,
        progress: &mut Progress<'_>,
    ) -> Result<u64, Stopped> {
        progress.enter(Phase::Tables);
        let live =
            exchange.live(M::of(operations).union(queries.masks), M::of(operations).union(blocks.masks));
        let all = (queries.len() * blocks.len() + queries.untied * blocks.untied) as u64;
        if live == 0 {
            progress.add(all)?;
            return Ok(all);
        }
        let few = queries.len() * blocks.len() <= SMALL_PAIRS || blocks.len() <= SMALL_BLOCK;
        let windows =
            if few { None } else { Windows::new(exchange, live, queries.len(), operations.costs()) };
        let Some(windows) = windows else {
            progress.enter(Phase::Queries);
            progress.add((queries.len() * blocks.len()) as u64)?;
            let parts = queries.parts((PAIRS_MAX / blocks.len()).max(1));
            return Ok(parts.map(|part| M::of(operations).small(exchange, part, blocks)).sum());
        };
        let (untied, tied) = queries.masks.split_at(queries.untied);
        let size = blocks.len().div_ceil(blocks.len().div_ceil(BLOCK)).next_multiple_of(64);
        let mut sum = 0;
        for (number, part) in blocks.masks.chunks(BLOCKS_MAX * size).enumerate() {
            progress.enter(Phase::Tables);
            for (block, planes) in part.chunks(size).zip(&mut self.planes) {
                M::of(operations).transpose(block, planes);
            }
            let first = |len: usize| -> [Row; BLOCKS_MAX] {
                std::array::from_fn(|k| Row::first::<M>(len.saturating_sub(k * size).min(size)))
            };
            let asked = part.len().div_ceil(size);
            operations.table(&windows, &self.planes, &first(part.len()), asked, &mut self.table);
            progress.enter(Phase::Queries);
            let query = |list: &[M], double: Option<&_>| {
                M::of(operations).query(&self.table, &windows, asked, list, double)
            };
            let doubles = blocks.untied.saturating_sub(number * BLOCKS_MAX * size);
            sum += match doubles {
                0 => query(untied, None),
                doubles if doubles >= part.len() => 2 * query(untied, None),
                doubles => {
                    let double = first(doubles);
                    query(untied, Some(&double))
                }
            };
            sum += query(tied, None);
            progress.add((queries.len() * part.len()) as u64)?;
        }
        Ok(sum)
    }
}

/// Up to so many pairs tables do not pay.
const SMALL_PAIRS: usize = 12_000;
/// Nor for so few elements.
const SMALL_BLOCK: usize = 16;
