//! The leaf of the join: all pairs of two lists at once, 512 or 1,024 a step.
//!
//! The diagonals that both lists use are dealt out to windows of at most 8. One or two blocks of 512 elements of one
//! list are turned into bit planes, and these into a table for each window: for each choice of its diagonals the
//! elements that have none of them. An element of the other list, the query, is then compared with the blocks by an
//! AND of one row of each table.

use super::geometry::Exchange;
use super::operations::{Mask, Operations, PAIRS_MAX};
use super::progress::JoinProgress;
use super::windows::{BLOCK, BLOCKS_MAX, Table, WINDOW_ROWS, WINDOWS_MAX, Weighted, WindowRow, Windows};
use crate::engine::Stopped;

impl WindowRow {
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

/// What a join leaves behind for the next one: buffers.
#[derive(Debug)]
pub(super) struct Leaf {
    table: Box<Table>,
    planes: [Box<[WindowRow; 64]>; BLOCKS_MAX],
}

impl Leaf {
    pub(super) fn new() -> Self {
        const NONE: WindowRow = WindowRow([0; 8]);
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
        progress: &mut JoinProgress<'_>,
    ) -> Result<u64, Stopped> {
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
            progress.add((queries.len() * blocks.len()) as u64)?;
            let parts = queries.parts((PAIRS_MAX / blocks.len()).max(1));
            return Ok(parts.map(|part| M::of(operations).small(exchange, part, blocks)).sum());
        };
        let (untied, tied) = queries.masks.split_at(queries.untied);
        let size = blocks.len().div_ceil(blocks.len().div_ceil(BLOCK)).next_multiple_of(64);
        let mut sum = 0;
        for (number, part) in blocks.masks.chunks(BLOCKS_MAX * size).enumerate() {
            for (block, planes) in part.chunks(size).zip(&mut self.planes) {
                M::of(operations).transpose(block, planes);
            }
            let first = |len: usize| -> [WindowRow; BLOCKS_MAX] {
                std::array::from_fn(|k| WindowRow::first::<M>(len.saturating_sub(k * size).min(size)))
            };
            let asked = part.len().div_ceil(size);
            operations.table(&windows, &self.planes, &first(part.len()), asked, &mut self.table);
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
