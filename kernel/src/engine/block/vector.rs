//! What the search asks of a vector, and the vector of plain code, which has one lane.

use std::fmt::Debug;
use std::ops::{BitAnd, BitOr, BitXor, Not};

/// A node in each lane of `V` vectors: diagonals that move to higher columns (`left`) and to lower ones (`right`), and
/// free columns.
#[derive(Clone, Copy)]
pub(super) struct Nodes<V, const VECTORS: usize> {
    pub(super) left: [V; VECTORS],
    pub(super) right: [V; VECTORS],
    pub(super) free: [V; VECTORS],
}

/// A vector of bitmaps, one a lane, and what can be done to all its lanes at once.
///
/// A vector exists only where the machine has the instructions. All methods are inlined into the search, which alone
/// is compiled for them.
pub(super) trait Vector:
    Copy + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    /// A lane.
    type Word: Word;
    /// A choice of lanes.
    type Mask: Copy + BitAnd<Output = Self::Mask> + Not<Output = Self::Mask>;
    /// Lanes in a vector.
    const LANES: usize;
    /// Candidates taken from each lane between two refills. More leave more lanes idle, fewer refill more often.
    const POPS: usize = 1;

    /// The same bitmap in every lane.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn splat(bitmap: Self::Word) -> Self;
    /// A bitmap for each lane, from the front of `words`.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn load(words: &[Self::Word]) -> Self;
    /// The sum of all lanes.
    fn sum(self) -> u64;

    /// The lowest column; none if there is none.
    fn lowest(self) -> Self;
    /// Every column `rows` up.
    fn raise(self, rows: u32) -> Self;
    /// Every column `rows` down.
    fn lower(self, rows: u32) -> Self;
    /// Lanes that are the same.
    fn equals(self, other: Self) -> Self::Mask;
    /// Lanes without a column.
    fn is_empty(self) -> Self::Mask;
    /// `new` in the lanes of `mask`.
    fn replace(self, mask: Self::Mask, new: Self) -> Self;
    /// One more in the lanes of `mask`.
    fn increment(self, mask: Self::Mask) -> Self;

    /// Moves words from the front of `from` to the lanes of `idle`, and returns how many. `from` has at least as many
    /// as there are lanes.
    fn spread<const VECTORS: usize>(
        idle: &[Self::Mask; VECTORS],
        nodes: &mut Nodes<Self, VECTORS>,
        from: [&[Self::Word]; 3],
    ) -> usize;
    /// Moves the lanes of `keep` to the front of `to`, and returns how many. `to` has room for all lanes; what is
    /// left in that behind the ones moved is arbitrary.
    fn pack<const VECTORS: usize>(
        keep: &[Self::Mask; VECTORS],
        nodes: &Nodes<Self, VECTORS>,
        to: [&mut [Self::Word]; 3],
    ) -> usize;
}

/// A bitmap of columns: `u16` where the free columns span at most 16 and `u32` otherwise.
pub(super) trait Word:
    Copy
    + Default
    + PartialEq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + From<bool>
    + TryFrom<u32, Error: Debug>
    + Into<u32>
    + 'static
{
    /// Width in bits.
    const BITS: u32;

    fn wrapping_add(self, other: Self) -> Self;
    fn wrapping_neg(self) -> Self;
    fn unbounded_shl(self, rows: u32) -> Self;
    fn unbounded_shr(self, rows: u32) -> Self;
}

macro_rules! words {
    ($($word:ty),*) => { $(
        impl Word for $word {
            const BITS: u32 = Self::BITS;

            #[inline(always)]
            fn wrapping_add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn wrapping_neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn unbounded_shl(self, rows: u32) -> Self {
                self.unbounded_shl(rows)
            }
            #[inline(always)]
            fn unbounded_shr(self, rows: u32) -> Self {
                self.unbounded_shr(rows)
            }
        }
    )* };
}

words!(u16, u32);

/// Plain code. The compiler makes vectors of loops over many vectors of one lane, except where lanes move: the places
/// of those that do are listed first, eight at a time, and then they are moved one by one. No branch depends on a
/// board.
impl<W: Word> Vector for W {
    type Word = W;
    type Mask = bool;
    const LANES: usize = 1;
    const POPS: usize = 2;

    #[inline(always)]
    unsafe fn splat(bitmap: W) -> W {
        bitmap
    }
    #[inline(always)]
    unsafe fn load(words: &[W]) -> W {
        words[0]
    }
    #[inline(always)]
    fn sum(self) -> u64 {
        u64::from(self.into())
    }
    #[inline(always)]
    fn lowest(self) -> W {
        self & self.wrapping_neg()
    }
    #[inline(always)]
    fn raise(self, rows: u32) -> W {
        self.unbounded_shl(rows)
    }
    #[inline(always)]
    fn lower(self, rows: u32) -> W {
        self.unbounded_shr(rows)
    }
    #[inline(always)]
    fn equals(self, other: W) -> bool {
        self == other
    }
    #[inline(always)]
    fn is_empty(self) -> bool {
        self == W::default()
    }
    #[inline(always)]
    fn replace(self, mask: bool, new: W) -> W {
        if mask { new } else { self }
    }
    #[inline(always)]
    fn increment(self, mask: bool) -> W {
        self.wrapping_add(mask.into())
    }

    #[inline(always)]
    fn spread<const VECTORS: usize>(
        idle: &[bool; VECTORS],
        nodes: &mut Nodes<W, VECTORS>,
        from: [&[W]; 3],
    ) -> usize {
        let mut list = [0; LIST];
        let places = places_of(idle, &mut list);
        let [left, right, free] = from;
        for (((&place, &left), &right), &free) in places.iter().zip(left).zip(right).zip(free) {
            let place = usize::from(place);
            (nodes.left[place], nodes.right[place], nodes.free[place]) = (left, right, free);
        }
        places.len()
    }

    #[inline(always)]
    fn pack<const VECTORS: usize>(
        keep: &[bool; VECTORS],
        nodes: &Nodes<W, VECTORS>,
        to: [&mut [W]; 3],
    ) -> usize {
        let mut list = [0; LIST];
        let places = places_of(keep, &mut list);
        let [left, right, free] = to;
        for (((&place, left), right), free) in places.iter().zip(left).zip(right).zip(free) {
            let place = usize::from(place);
            (*left, *right, *free) = (nodes.left[place], nodes.right[place], nodes.free[place]);
        }
        places.len()
    }
}

/// Vectors of plain code at most that are searched at a time.
pub(super) const PLACES: usize = 64;
/// Room for a list of places, and for the zeros behind it.
const LIST: usize = PLACES + 8;

/// The places chosen, ascending.
#[inline(always)]
fn places_of<'a>(chosen: &[bool], list: &'a mut [u8; LIST]) -> &'a [u8] {
    let (mut len, mut first) = (0, 0_u64);
    for eight in chosen.as_chunks::<8>().0 {
        let flags = u64::from_le_bytes(eight.map(u8::from));
        // Byte k moves to bit k of the highest byte; then the sum of all bytes does.
        let [.., choice] = flags.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
        let [.., count] = flags.wrapping_mul(0x0101_0101_0101_0101).to_le_bytes();
        let places = u64::from_le_bytes(CHOSEN[usize::from(choice)]) | first;
        list[len..len + 8].copy_from_slice(&places.to_le_bytes());
        len += usize::from(count);
        first = first.wrapping_add(0x0808_0808_0808_0808);
    }
    &list[..len]
}

/// For each choice of eight places, their numbers in ascending order, and zeros behind.
pub(super) static CHOSEN: [[u8; 8]; 256] = {
    let mut lists = [[0; 8]; 256];
    let mut choice = 0;
    while choice < 256 {
        let (mut place, mut listed) = (0, 0);
        while place < 8 {
            if choice >> place & 1 == 1 {
                lists[choice][listed] = place;
                listed += 1;
            }
            place += 1;
        }
        choice += 1;
    }
    lists
};

/// The operators of a vector, by intrinsics.
#[cfg(target_arch = "x86_64")]
macro_rules! operators {
    ($vector:ident, $ones:expr; $($operator:ident $method:ident $intrinsic:ident),*) => {
        $(impl $operator for $vector {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: a vector exists only where the machine has the instructions.
                Self(unsafe { $intrinsic(self.0, other.0) })
            }
        })*
        impl Not for $vector {
            type Output = Self;

            #[inline(always)]
            fn not(self) -> Self {
                // SAFETY: as above.
                self ^ Self(unsafe { $ones(-1) })
            }
        }
    };
}
/// Intrinsics on the values of vectors.
#[cfg(target_arch = "x86_64")]
macro_rules! on_values {
    ($intrinsics:expr) => {{
        // SAFETY: a vector exists only where the machine has the instructions.
        unsafe { $intrinsics }
    }};
}
#[cfg(target_arch = "x86_64")]
pub(super) use {on_values, operators};
