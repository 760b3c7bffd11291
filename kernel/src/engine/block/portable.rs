//! Any CPU: one lane.
//!
//! What makes this faster than a recursive search is that nothing depends on a branch that can't be foreseen:
//! children are stored whether they pass or not, and overwritten by the next if they don't. On arrays of lanes
//! compilers did worse: they take lanes apart to pack them.

#![expect(clippy::needless_bitwise_bool, reason = "lazy operators are branches")]

use std::hint::select_unpredictable;

use super::lanes::Lanes;
use super::schedule::Level;
use super::stacks::{Parents, Stack};
use super::step;

/// Nodes worked on in turn.
const STREAMS: usize = 3;

/// One lane of `u32`.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Lanes for Portable {
    type Word = u32;
    type Vector = u32;
    type Mask = bool;
    type Shift = u32;
    type Packing = ();
    type Spreading = bool;
    const LANES: usize = 1;

    #[inline(always)]
    fn splat(self, bitmap: u32) -> u32 {
        bitmap
    }
    #[inline(always)]
    fn shift(self, rows: u32) -> u32 {
        rows
    }
    #[inline(always)]
    fn and(self, a: u32, b: u32) -> u32 {
        a & b
    }
    #[inline(always)]
    fn or(self, a: u32, b: u32) -> u32 {
        a | b
    }
    #[inline(always)]
    fn xor(self, a: u32, b: u32) -> u32 {
        a ^ b
    }
    #[inline(always)]
    fn unattacked(self, free: u32, left: u32, right: u32) -> u32 {
        free & !(left | right)
    }
    #[inline(always)]
    fn split_lowest(self, columns: u32) -> (u32, u32) {
        let lowest = columns & columns.wrapping_neg();
        (lowest, columns ^ lowest)
    }
    #[inline(always)]
    fn raise<const ADJACENT: bool, const K: u32>(self, x: u32, by: u32) -> u32 {
        x << if ADJACENT { K } else { by }
    }
    #[inline(always)]
    fn lower<const ADJACENT: bool, const K: u32>(self, x: u32, by: u32) -> u32 {
        x >> if ADJACENT { K } else { by }
    }
    #[inline(always)]
    fn every(self) -> bool {
        true
    }
    #[inline(always)]
    fn empty(self, x: u32) -> bool {
        x == 0
    }
    #[inline(always)]
    fn occupied(self, x: u32) -> bool {
        x != 0
    }
    #[inline(always)]
    fn keep_meeting(self, mask: bool, a: u32, b: u32) -> bool {
        mask & (a & b != 0)
    }
    #[inline(always)]
    fn keep_disjoint(self, mask: bool, a: u32, b: u32) -> bool {
        mask & (a & b == 0)
    }
    #[inline(always)]
    fn keep_equal(self, mask: bool, a: u32, b: u32) -> bool {
        mask & (a == b)
    }
    #[inline(always)]
    fn first(self, mask: bool, count: usize) -> bool {
        mask & (count > 0)
    }
    #[inline(always)]
    fn count(self, mask: bool) -> usize {
        mask.into()
    }
    #[inline(always)]
    fn choose(self, mask: bool, old: u32, new: u32) -> u32 {
        select_unpredictable(mask, new, old)
    }
    #[inline(always)]
    fn packing(self, mask: bool) -> ((), usize) {
        ((), mask.into())
    }
    #[inline(always)]
    unsafe fn pack_to(self, to: *mut u32, (): (), x: u32) {
        // SAFETY: one word is writable, says the caller.
        unsafe { *to = x }
    }
    #[inline(always)]
    fn spreading(self, mask: bool) -> (bool, usize) {
        (mask, mask.into())
    }
    #[inline(always)]
    unsafe fn spread_from(self, onto: u32, spreading: bool, from: *const u32) -> u32 {
        // SAFETY: one word is readable, says the caller.
        self.choose(spreading, onto, unsafe { *from })
    }
    fn expand<const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(
        self,
        level: &Level,
        parents: &Parents<'_, u32>,
        children: &mut Stack<'_, u32>,
    ) {
        step::expand::<Self, STREAMS, ADJACENT, AHEAD, COVER>(self, level, parents, children);
    }
    fn leaf<const ADJACENT: bool>(self, level: &Level, parents: &Parents<'_, u32>) -> u64 {
        step::leaf::<Self, STREAMS, ADJACENT>(self, level, parents)
    }
}
