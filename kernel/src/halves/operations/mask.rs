//! Masks of diagonals, long or short: what lists of half boards are made of on their way through a join.

use std::fmt;

use super::{MaskOperations, Operations};

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

    /// The inner loops over masks like these.
    fn of(operations: &dyn Operations) -> &dyn MaskOperations<Self>;
}

impl Mask for u64 {
    const IN_WORD: usize = 1;

    fn long(masks: &[Self]) -> Option<&[u64]> {
        Some(masks)
    }

    fn buffer<'a>(long: &'a mut Vec<u64>, _: &'a mut Vec<u32>) -> &'a mut Vec<Self> {
        long
    }

    fn of(operations: &dyn Operations) -> &dyn MaskOperations<Self> {
        operations
    }
}

impl Mask for u32 {
    const IN_WORD: usize = 2;

    fn long(_: &[Self]) -> Option<&[u64]> {
        None
    }

    fn buffer<'a>(_: &'a mut Vec<u64>, short: &'a mut Vec<u32>) -> &'a mut Vec<Self> {
        short
    }

    fn of(operations: &dyn Operations) -> &dyn MaskOperations<Self> {
        operations
    }
}
