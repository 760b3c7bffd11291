//! Matrices of counts: rows of a count for each lane, which are widened, turned and multiplied. Plain code that compilers make
//! vectors of.

#![expect(clippy::inline_always, reason = "compiled anew for each instruction set")]
#![expect(clippy::needless_range_loop, reason = "loops over lanes read as what compilers make of them")]

use super::lists::Factor;
use super::vectors::Bytes;

/// A row of a matrix of counts: for one column set of the tree's class a count for each lane.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct MatrixRow<C, const L: usize>(pub(super) [C; L]);

/// What fits are counted in.
pub(super) trait FitCount: Copy {
    /// None.
    const ZERO: Self;
    /// The highest, which stands for more, too.
    const FULL: Self;

    /// The sum, or [`FULL`](Self::FULL) if that is more than fits.
    fn add(self, more: u8) -> Self;
}

macro_rules! implement_count {
    ($($type:ty)*) => {$(
        impl FitCount for $type {
            const ZERO: Self = 0;
            const FULL: Self = Self::MAX;

            #[inline(always)]
            fn add(self, more: u8) -> Self {
                self.saturating_add(more.into())
            }
        }
    )*};
}

implement_count! { u8 u16 u32 }

/// Rows of bytes, of which none lies in more cache lines than it has to.
#[derive(Debug, Default)]
pub(super) struct ByteRows(Vec<Bytes<64>>);

impl ByteRows {
    /// So many rows of zeros.
    pub(super) fn zeros<const L: usize>(&mut self, rows: usize) -> &mut [MatrixRow<u8, L>] {
        self.0.clear();
        self.0.resize((rows * L).div_ceil(64), Bytes([0; 64]));
        // SAFETY: both are bytes, of any value, without gaps.
        let (before, all, _) = unsafe { self.0.align_to_mut::<MatrixRow<u8, L>>() };
        assert!(before.is_empty() && size_of::<MatrixRow<u8, L>>() == L, "rows of 32 or 64 bytes");
        &mut all[..rows]
    }
}

/// Adds counts to wider ones, which may become [`u16::MAX`] and then stand for more, too, and clears them: of every
/// `height` rows those at these `places`. Adds nothing if a count is [`u8::MAX`]. Returns the largest of both.
#[inline(always)]
pub(super) fn widen<const L: usize>(
    narrow: &mut [MatrixRow<u8, L>],
    wide: &mut [MatrixRow<u16, L>],
    height: usize,
    places: &[usize],
) -> (u8, u16) {
    let mut most = [0; L];
    for narrow in narrow.chunks_exact(height) {
        for &place in places {
            for l in 0..L {
                most[l] = narrow[place].0[l].max(most[l]);
            }
        }
    }
    let narrowest = most.into_iter().max().unwrap_or(0);
    let mut most = [0; L];
    for (narrow, wide) in narrow.chunks_exact_mut(height).zip(wide.chunks_exact_mut(height)) {
        for &place in places {
            let (narrow, wide) = (&mut narrow[place], &mut wide[place]);
            if narrowest < u8::MAX {
                for l in 0..L {
                    wide.0[l] = wide.0[l].saturating_add(narrow.0[l].into());
                    most[l] = wide.0[l].max(most[l]);
                }
            }
            *narrow = MatrixRow([0; L]);
        }
    }
    (narrowest, most.into_iter().max().unwrap_or(0))
}

/// Two rows of a matrix that is turned.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Pair<C, const L: usize>(pub(super) [[C; L]; 2]);

/// Exchanges rows and lanes: lane p of row l is lane l of the p-th of `from`, for at most `L`; lanes of no row have no
/// meaning. `room` is for `L` pairs.
#[inline(always)]
pub(super) fn turn<C: FitCount, const L: usize>(
    from: &[MatrixRow<C, L>],
    to: &mut [MatrixRow<C, L>],
    room: &mut [Pair<C, L>],
) {
    let mut rows = [&from[0]; L];
    for (l, row) in from.iter().enumerate() {
        rows[l] = row;
    }
    let (mut one, mut other) = room.split_at_mut(L / 2);
    shuffle(|row| &rows[row].0, one);
    for _ in 1..L.ilog2() {
        shuffle(|row| &one[row / 2].0[row % 2], other);
        std::mem::swap(&mut one, &mut other);
    }
    for (l, to) in to.iter_mut().enumerate() {
        to.0 = one[l / 2].0[l % 2];
    }
}

/// Shuffles the first half of `L` rows and the second one: the upper bit of a row's number becomes the lowest of a lane's, and
/// the upper bit of a lane's number the lowest of a row's.
#[inline(always)]
fn shuffle<'a, C: FitCount + 'a, const L: usize>(row: impl Fn(usize) -> &'a [C; L], to: &mut [Pair<C, L>]) {
    for (number, to) in to.iter_mut().enumerate() {
        // In copies: the compiler can't know that the rows do not overlap.
        let (one, other, to) = (*row(number), *row(number + L / 2), to.0.as_flattened_mut());
        for l in 0..L {
            to[2 * l] = one[l];
            to[2 * l + 1] = other[l];
        }
    }
}

/// The sum of the products of two groups of rows, each weighed by its lane and its row: by both first weights, and again
/// by both second ones.
#[inline(always)]
pub(super) fn products<const L: usize>(
    one: &[MatrixRow<u16, L>],
    other: &[MatrixRow<u16, L>],
    lanes: [&[u32; L]; 2],
    rows: &[Factor],
) -> u64 {
    let uniform = lanes.iter().flat_map(|lanes| *lanes).all(|weight| *weight == lanes[0][0]);
    let mut sum = 0;
    for ((one, other), row) in one.iter().zip(other).zip(rows) {
        let product = |l: usize| u64::from(u32::from(one.0[l]) * u32::from(other.0[l]));
        let (mut any, mut below) = (0, 0);
        if uniform {
            for l in 0..L {
                any += product(l);
            }
            any *= u64::from(lanes[0][0]);
            below = any;
        } else {
            for l in 0..L {
                any += product(l) * u64::from(lanes[0][l]);
                below += product(l) * u64::from(lanes[1][l]);
            }
        }
        sum += any * u64::from(row.any) + below * u64::from(row.below);
    }
    sum
}
