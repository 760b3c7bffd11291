//! Masks of diagonals, long or short: what lists of half boards are made of on their way through a join.

use std::fmt;

use super::super::geometry::Exchange;
use super::super::windows::{BLOCKS_MAX, Row, Table, Weighted, Windows};
use super::Operations;

/// A mask: `u64` has a bit for every diagonal, `u32` only for those that matter, when they are few.
pub(in crate::halves) trait Mask:
    Copy + Default + Into<u64> + fmt::Debug + 'static
{
    /// Masks in a word of 64 bits.
    const IN_WORD: usize;

    /// The masks, if they are long.
    fn long(masks: &[Self]) -> Option<&[u64]>;

    /// The buffer for masks like these.
    fn buffer<'a>(long: &'a mut Vec<u64>, short: &'a mut Vec<u32>) -> &'a mut Vec<Self>;

    /// Copies the masks chosen by a bit vector to the start of `out`, in order; returns their number. `out` must
    /// have [`SLACK`](super::SLACK) elements to spare.
    fn pick(operations: &dyn Operations, masks: &[Self], chosen: &[u64], out: &mut [Self]) -> usize;

    /// Copies the masks with none of `bits` to the start of `without`, in order, and returns their number.
    /// `without` must have [`SLACK`](super::SLACK) elements to spare.
    fn sift(operations: &dyn Operations, masks: &[Self], bits: u64, without: &mut [Self]) -> usize;

    /// [`sift`](Self::sift), and the masks left over go to `with`.
    fn part(
        operations: &dyn Operations,
        masks: &[Self],
        bits: u64,
        without: &mut [Self],
        with: &mut [Self],
    ) -> usize;

    /// OR of all masks.
    fn union(operations: &dyn Operations, masks: &[Self]) -> u64;

    /// How many of 64 words of masks have each bit, added to `counts`.
    fn sample(operations: &dyn Operations, masks: &[Self], counts: &mut [u64; 64]);

    /// The weighted number of pairs (a, b) that fit together, for short lists: no more than [`PAIRS_MAX`](super::PAIRS_MAX)
    /// pairs.
    fn small(
        operations: &dyn Operations,
        exchange: Exchange,
        a: Weighted<'_, Self>,
        b: Weighted<'_, Self>,
    ) -> u64;

    /// The bit planes of at most 512 masks: row t says which masks have bit t, in the order of [`Row::first`]. Bits
    /// beyond the last mask are anything.
    fn transpose(operations: &dyn Operations, masks: &[Self], planes: &mut [Row; 64]);

    /// Sum over the queries, and the first `blocks` blocks, of the elements left by all windows, each element counted
    /// once, or twice if it is in `double`.
    fn query(
        operations: &dyn Operations,
        table: &Table,
        windows: &Windows,
        blocks: usize,
        queries: &[Self],
        double: Option<&[Row; BLOCKS_MAX]>,
    ) -> u64;
}

macro_rules! mask {
    ($type:ty, $in_word:literal, $long:expr, $buffer:expr, $pick:ident, $sift:ident, $part:ident, $union:ident, $sample:ident, $small:ident, $transpose:ident, $query:ident) => {
        impl Mask for $type {
            const IN_WORD: usize = $in_word;

            fn long(masks: &[Self]) -> Option<&[u64]> {
                $long(masks)
            }

            fn buffer<'a>(long: &'a mut Vec<u64>, short: &'a mut Vec<u32>) -> &'a mut Vec<Self> {
                $buffer(long, short)
            }

            fn pick(operations: &dyn Operations, masks: &[Self], chosen: &[u64], out: &mut [Self]) -> usize {
                operations.$pick(masks, chosen, out)
            }

            fn sift(operations: &dyn Operations, masks: &[Self], bits: u64, without: &mut [Self]) -> usize {
                operations.$sift(masks, bits, without)
            }

            fn part(
                operations: &dyn Operations,
                masks: &[Self],
                bits: u64,
                without: &mut [Self],
                with: &mut [Self],
            ) -> usize {
                operations.$part(masks, bits, without, with)
            }

            fn union(operations: &dyn Operations, masks: &[Self]) -> u64 {
                operations.$union(masks)
            }

            fn sample(operations: &dyn Operations, masks: &[Self], counts: &mut [u64; 64]) {
                operations.$sample(masks, counts);
            }

            fn small(
                operations: &dyn Operations,
                exchange: Exchange,
                a: Weighted<'_, Self>,
                b: Weighted<'_, Self>,
            ) -> u64 {
                operations.$small(exchange, a, b)
            }

            fn transpose(operations: &dyn Operations, masks: &[Self], planes: &mut [Row; 64]) {
                operations.$transpose(masks, planes);
            }

            fn query(
                operations: &dyn Operations,
                table: &Table,
                windows: &Windows,
                blocks: usize,
                queries: &[Self],
                double: Option<&[Row; BLOCKS_MAX]>,
            ) -> u64 {
                operations.$query(table, windows, blocks, queries, double)
            }
        }
    };
}

mask!(u64, 1, Some, |long, _| long, pick, sift, part, union, sample, small, transpose, query);
mask!(
    u32,
    2,
    |_| None,
    |_, short| short,
    pick_short,
    sift_short,
    part_short,
    union_short,
    sample_short,
    small_short,
    transpose_short,
    query_short
);
