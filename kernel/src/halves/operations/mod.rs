//! The inner loops of the half join, in one version for each instruction set.
//!
//! Each operation works on a whole list or block, so that choosing the version at run time costs nothing. The
//! portable version is the one to read; the others are held equal to it by tests.

/// Implements [`Operations`] by the functions of these names in the module it stands in, compiled for the instructions
/// named.
macro_rules! implement {
    ($type:ty, $isa:expr, $costs:expr $(, $features:literal)?) => {
        impl $crate::halves::operations::Operations for $type {
            fn isa(&self) -> $crate::halves::operations::Isa {
                $isa
            }

            fn costs(&self) -> $crate::halves::operations::Costs {
                $costs
            }

            implement! { @each [$($features)?];
                survivors(outer: &Outer, sets: &[(u32, usize)], columns: u32, queens: [u32; 2], runs: &mut Runs);
                emit(runs: &Runs, outer: &[u64], at: &mut [usize; KEYS], list: &mut [u64]);
                planes(masks: &[u64], bits: &[u64], planes: &mut [u64]);
                standing(dead: [&[u64]; 2], tie: Option<&[u64]>, untied: &mut [u64], tied: &mut [u64]) -> [usize; 2];
                squeeze(masks: &[u64], live: u64, out: &mut [u32]);
                table(windows: &Windows, planes: &[Box<[WindowRow; 64]>; BLOCKS_MAX], valid: &[WindowRow; BLOCKS_MAX], blocks: usize, table: &mut Table);
            }
        }

        implement! { @on u64, $type, [$($features)?] }
        implement! { @on u32, $type, [$($features)?] }
    };
    (@on $mask:ty, $type:ty, $features:tt) => {
        impl $crate::halves::operations::MaskOperations<$mask> for $type {
            implement! { @each $features;
                pick(masks: &[$mask], chosen: &[u64], out: &mut [$mask]) -> usize;
                sift(masks: &[$mask], bits: u64, without: &mut [$mask]) -> usize;
                part(masks: &[$mask], bits: u64, without: &mut [$mask], with: &mut [$mask]) -> usize;
                union(masks: &[$mask]) -> u64;
                sample(masks: &[$mask], counts: &mut [u64; 64]);
                small(exchange: Exchange, a: Weighted<'_, $mask>, b: Weighted<'_, $mask>) -> u64;
                transpose(masks: &[$mask], planes: &mut [WindowRow; 64]);
                query(table: &Table, windows: &Windows, blocks: usize, queries: &[$mask], double: Option<&[WindowRow; BLOCKS_MAX]>) -> u64;
            }
        }
    };
    (@each $features:tt; $($name:ident($($arg:ident: $arg_type:ty),*) $(-> $result:ty)?;)*) => {
        $(fn $name(&self, $($arg: $arg_type),*) $(-> $result)? {
            implement! { @call $features $name($($arg: $arg_type),*) $(-> $result)? }
        })*
    };
    (@call [] $with:ident($($arg:ident: $arg_type:ty),*) $(-> $result:ty)?) => {
        self::$with($($arg),*)
    };
    (@call [$features:literal] $with:ident($($arg:ident: $arg_type:ty),*) $(-> $result:ty)?) => {{
        #[target_feature(enable = $features)]
        fn compiled($($arg: $arg_type),*) $(-> $result)? {
            self::$with($($arg),*)
        }
        // SAFETY: a value of the type exists only where the instructions do.
        unsafe { compiled($($arg),*) }
    }};
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
mod mask;
mod portable;

use super::geometry::Exchange;
use super::outer::Outer;
use super::runs::{KEYS, Runs};
use super::windows::{BLOCKS_MAX, Costs, Table, Weighted, WindowRow, Windows};
use crate::isa::Isa;
pub(super) use mask::Mask;

/// The inner loops. Masks are those of [`geometry`](super::geometry); bit `i` of word `i / 64` of a bit vector
/// stands for element `i` of a list.
pub(super) trait Operations:
    MaskOperations<u64> + MaskOperations<u32> + std::fmt::Debug + Send + Sync
{
    fn isa(&self) -> Isa;

    /// What things cost, in cycles: for the plan of a join.
    fn costs(&self) -> Costs;

    /// Finds the half boards on `columns` with the queens of row 0 and 1 on some of `queens`: for each of the `sets` of
    /// columns for the outer rows (with its rank), each placement of the inner rows on the other columns and the
    /// outer placements that stand with it; one run for each that leaves any.
    fn survivors(
        &self,
        outer: &Outer,
        sets: &[(u32, usize)],
        columns: u32,
        queens: [u32; 2],
        runs: &mut Runs,
    );

    /// Writes the placements of all runs, `outer[start + i] | mask` for each bit i, to `list` from the place
    /// `at[key]` on, which moves on.
    fn emit(&self, runs: &Runs, outer: &[u64], at: &mut [usize; KEYS], list: &mut [u64]);

    /// Bit planes of a list of whole blocks of 64: plane k, which starts at word k * blocks, says which masks have
    /// any of `bits[k]`, one or two bits. Planes beyond those are left alone.
    fn planes(&self, masks: &[u64], bits: &[u64], planes: &mut [u64]);

    /// Which elements have none of the `dead` bits: those with a `tie` bit (all, if there is no such plane) go to
    /// `tied`, the others to `untied`. Returns the numbers of both. All slices are equally long.
    fn standing(
        &self,
        dead: [&[u64]; 2],
        tie: Option<&[u64]>,
        untied: &mut [u64],
        tied: &mut [u64],
    ) -> [usize; 2];

    /// The bits of each mask at `live`, at most 32, moved together, from the lowest on.
    fn squeeze(&self, masks: &[u64], live: u64, out: &mut [u32]);

    /// For each window, each index x into it and each of the first `blocks` blocks the row of those elements that have
    /// none of the bits of x. In the first window these are among the `valid` ones.
    fn table(
        &self,
        windows: &Windows,
        planes: &[Box<[WindowRow; 64]>; BLOCKS_MAX],
        valid: &[WindowRow; BLOCKS_MAX],
        blocks: usize,
        table: &mut Table,
    );
}

/// The inner loops over masks of one length.
pub(super) trait MaskOperations<M> {
    /// Copies the masks chosen by a bit vector to the start of `out`, in order; returns their number. `out` must
    /// have [`SLACK`] elements to spare.
    fn pick(&self, masks: &[M], chosen: &[u64], out: &mut [M]) -> usize;

    /// Copies the masks with none of `bits` to the start of `without`, in order, and returns their number.
    /// `without` must have [`SLACK`] elements to spare.
    fn sift(&self, masks: &[M], bits: u64, without: &mut [M]) -> usize;

    /// [`sift`](Self::sift), and the masks left over go to `with`.
    fn part(&self, masks: &[M], bits: u64, without: &mut [M], with: &mut [M]) -> usize;

    /// OR of all masks.
    fn union(&self, masks: &[M]) -> u64;

    /// How many of 64 words of masks have each bit, added to `counts`.
    fn sample(&self, masks: &[M], counts: &mut [u64; 64]);

    /// The weighted number of pairs (a, b) that fit together, for short lists: no more than [`PAIRS_MAX`] pairs.
    fn small(&self, exchange: Exchange, a: Weighted<'_, M>, b: Weighted<'_, M>) -> u64;

    /// The bit planes of at most 512 masks: row t says which masks have bit t, in the order of [`WindowRow::first`].
    /// Bits beyond the last mask are anything.
    fn transpose(&self, masks: &[M], planes: &mut [WindowRow; 64]);

    /// Sum over the queries, and the first `blocks` blocks, of the elements left by all windows, each element counted
    /// once, or twice if it is in `double`.
    fn query(
        &self,
        table: &Table,
        windows: &Windows,
        blocks: usize,
        queries: &[M],
        double: Option<&[WindowRow; BLOCKS_MAX]>,
    ) -> u64;
}

/// Elements that operations may overwrite beyond those they deliver.
pub(super) const SLACK: usize = 16;

/// Pairs that [`MaskOperations::small`] takes at once: 32 bits hold what they count.
pub(super) const PAIRS_MAX: usize = 1 << 30;

impl Isa {
    /// The version's inner loops; `None` if this machine can't run them.
    pub(super) fn operations(self) -> Option<Box<dyn Operations>> {
        match self {
            Self::Portable => Some(Box::new(portable::Portable)),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::Avx2::new().map(|new| Box::new(new) as Box<dyn Operations>),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => avx512::Avx512::new().map(|new| Box::new(new) as Box<dyn Operations>),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => None,
        }
    }
}
