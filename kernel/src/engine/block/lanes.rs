//! What the SIMD versions of the block search ask of an instruction set.

use super::Steps;

/// A vector of bitmaps and what can be done to all its lanes at once.
///
/// All methods are to be inlined into [`expand`](Steps::expand) and [`leaf`](Steps::leaf), which alone are compiled
/// for the instruction set.
pub(super) trait Lanes: Steps {
    /// All lanes.
    type Vector: Copy;
    /// A choice of lanes.
    type Mask: Copy;
    /// A distance between rows, as shifts want it.
    type Shift: Copy;
    /// How chosen lanes move to the front.
    type Packing: Copy;
    /// How leading lanes move to the chosen ones.
    type Spreading: Copy;
    /// Lanes in a vector.
    const LANES: usize;

    /// The same bitmap in every lane.
    fn splat(self, bitmap: Self::Word) -> Self::Vector;
    /// The distance for [`raise`](Self::raise) and [`lower`](Self::lower), `0..=30` rows.
    fn shift(self, rows: u32) -> Self::Shift;

    /// `a & b`.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a | b`.
    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a ^ b`.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `free & !left & !right`.
    fn unattacked(self, free: Self::Vector, left: Self::Vector, right: Self::Vector) -> Self::Vector;
    /// The lowest column of each lane (none in an empty one), and the others.
    fn split_lowest(self, columns: Self::Vector) -> (Self::Vector, Self::Vector);
    /// Every column `K` up if `ADJACENT`, else up by `by`.
    fn raise<const ADJACENT: bool, const K: u32>(self, x: Self::Vector, by: Self::Shift) -> Self::Vector;
    /// Every column `K` down if `ADJACENT`, else down by `by`.
    fn lower<const ADJACENT: bool, const K: u32>(self, x: Self::Vector, by: Self::Shift) -> Self::Vector;

    /// Every lane.
    fn every(self) -> Self::Mask;
    /// Lanes that are zero.
    fn empty(self, x: Self::Vector) -> Self::Mask;
    /// Lanes that are not.
    fn occupied(self, x: Self::Vector) -> Self::Mask;
    /// Those of `mask` where `a` and `b` have a column in common.
    fn keep_meeting(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Those of `mask` where `a` and `b` have none.
    fn keep_disjoint(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// Those of `mask` where `a` and `b` are the same.
    fn keep_equal(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Mask;
    /// The lowest `count` lanes of `mask`, or all if there are fewer.
    fn first(self, mask: Self::Mask, count: usize) -> Self::Mask;
    /// Number of lanes in `mask`.
    fn count(self, mask: Self::Mask) -> usize;
    /// Number of lanes in `a` and `b` together.
    #[inline(always)]
    fn count_both(self, a: Self::Mask, b: Self::Mask) -> usize {
        self.count(a) + self.count(b)
    }
    /// `new` where the mask is set and `old` elsewhere.
    fn choose(self, mask: Self::Mask, old: Self::Vector, new: Self::Vector) -> Self::Vector;

    /// The move of the lanes of `mask` to the front, and their number.
    fn packing(self, mask: Self::Mask) -> (Self::Packing, usize);
    /// Writes the chosen lanes of `x` to `to`, one after the other.
    ///
    /// # Safety
    /// `LANES` words must be writable; what is left in those behind the chosen ones is arbitrary.
    unsafe fn pack_to(self, to: *mut Self::Word, packing: Self::Packing, x: Self::Vector);
    /// The move of leading lanes to those of `mask`, and their number.
    fn spreading(self, mask: Self::Mask) -> (Self::Spreading, usize);
    /// `onto` with its chosen lanes replaced by the words at `from`, one after the other.
    ///
    /// # Safety
    /// `LANES` words must be readable.
    unsafe fn spread_from(
        self,
        onto: Self::Vector,
        spreading: Self::Spreading,
        from: *const Self::Word,
    ) -> Self::Vector;
}

/// Methods compiled for an instruction set.
///
/// Their bodies are safe code, in which intrinsics on values are safe too. `isa`, `self` to the outside, is the
/// lanes' value: the proof that the machine has the features named.
macro_rules! compiled_for {
    (
        $features:literal, $isa:ident: $lanes:ty;
        $(fn $name:ident$(<$(const $P:ident: $kind:ty),+>)?($($arg:ident: $in:ty),*) $(-> $out:ty)? $body:block)*
    ) => { $(
        #[inline(always)]
        fn $name$(<$(const $P: $kind),+>)?(self, $($arg: $in),*) $(-> $out)? {
            #[inline]
            #[target_feature(enable = $features)]
            fn compiled$(<$(const $P: $kind),+>)?($isa: $lanes, $($arg: $in),*) $(-> $out)? {
                let _ = $isa;
                $body
            }
            // SAFETY: `self` is only made where the machine has these features.
            unsafe { compiled$(::<$($P),+>)?(self, $($arg),*) }
        }
    )* };
}
pub(super) use compiled_for;
