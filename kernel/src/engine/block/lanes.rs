//! What the block search asks of an instruction set.

use std::ops::{BitAnd, BitOr, BitXor, Not};

use super::schedule::Level;
use super::stacks::{Parents, Stack};

/// A lane's type: a bitmap of columns, `u16` where the free columns span at most 16 and `u32` otherwise.
pub(super) trait Word:
    Copy
    + Default
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + 'static
{
    /// Width in bits.
    const BITS: u32;

    /// The low bits of `bitmap`; what is cut off must be zero.
    fn narrow(bitmap: u32) -> Self;

    /// The same bitmap.
    #[cfg(test)]
    fn widen(self) -> u32;

    /// The lowest column; none if there is none.
    fn lowest(self) -> Self;

    /// Every column `rows` up.
    fn raise(self, rows: u32) -> Self;

    /// Every column `rows` down.
    fn lower(self, rows: u32) -> Self;
}

macro_rules! word {
    ($word:ty, $narrow:expr) => {
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;

            fn narrow(bitmap: u32) -> Self {
                $narrow(bitmap)
            }

            #[cfg(test)]
            fn widen(self) -> u32 {
                self.into()
            }

            #[inline(always)]
            fn lowest(self) -> Self {
                self & self.wrapping_neg()
            }

            #[inline(always)]
            fn raise(self, rows: u32) -> Self {
                self.unbounded_shl(rows)
            }

            #[inline(always)]
            fn lower(self, rows: u32) -> Self {
                self.unbounded_shr(rows)
            }
        }
    };
}

word!(u32, std::convert::identity);
word!(u16, |bitmap: u32| bitmap.try_into().expect("a board that spans at most 16 columns"));

/// The two steps of the search, compiled for one instruction set.
///
/// A value of the type is the proof that this machine has the instructions: whoever makes one has looked.
pub(super) trait Steps: Copy + Send + 'static {
    /// A lane.
    type Word: Word;

    /// Puts the surviving children of `parents` on the stack of the level below.
    fn expand<const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(
        self,
        level: &Level,
        parents: &Parents<'_, Self::Word>,
        children: &mut Stack<'_, Self::Word>,
    );
    /// Counts the completions of `parents`, which have three rows left.
    fn leaf<const ADJACENT: bool>(self, level: &Level, parents: &Parents<'_, Self::Word>) -> u64;
}

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
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
pub(super) use compiled_for;
