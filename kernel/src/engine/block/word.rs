//! A node's bitmaps.

use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A bitmap of columns, one lane of a vector: `u16` where the free columns span at most 16 and `u32` otherwise.
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
