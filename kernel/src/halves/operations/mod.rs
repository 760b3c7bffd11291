//! The inner loops of the half join, in one version for each instruction set.
//!
//! Each operation works on a whole list or block, so that choosing the version at run time costs nothing. The
//! portable version is the one to read; the others are held equal to it by tests.

/// Implements [`Operations`] by the functions named in the module it stands in, compiled for the instructions named.
macro_rules! implement {
    ($type:ty, $isa:expr, $costs:expr $(, $features:literal)?) => {
        implement! { @each $type, $isa, $costs, [$($features)?];
            survivors = survivors(outer: &Outer, sets: &[(u32, usize)], columns: u32, queens: [u32; 2], runs: &mut Runs);
            emit = emit(runs: &Runs, outer: &[u64], at: &mut [usize; KEYS], list: &mut [u64]);
            planes = planes(masks: &[u64], bits: &[u64], planes: &mut [u64]);
            standing = standing(dead: [&[u64]; 2], tie: Option<&[u64]>, untied: &mut [u64], tied: &mut [u64]) -> [usize; 2];
            pick = pick(masks: &[u64], chosen: &[u64], out: &mut [u64]) -> usize;
            pick_short = pick(masks: &[u32], chosen: &[u64], out: &mut [u32]) -> usize;
            squeeze = squeeze(masks: &[u64], live: u64, out: &mut [u32]);
            table = table(windows: &Windows, planes: &[Box<[Row; 64]>; BLOCKS_MAX], valid: &[Row; BLOCKS_MAX], blocks: usize, table: &mut Table);
            sift = sift(masks: &[u64], bits: u64, without: &mut [u64]) -> usize;
            sift_short = sift(masks: &[u32], bits: u64, without: &mut [u32]) -> usize;
            part = part(masks: &[u64], bits: u64, without: &mut [u64], with: &mut [u64]) -> usize;
            part_short = part(masks: &[u32], bits: u64, without: &mut [u32], with: &mut [u32]) -> usize;
            union = union(masks: &[u64]) -> u64;
            union_short = union(masks: &[u32]) -> u64;
            sample = sample(masks: &[u64], counts: &mut [u64; 64]);
            sample_short = sample(masks: &[u32], counts: &mut [u64; 64]);
            small = small(exchange: Exchange, a: Weighted<'_, u64>, b: Weighted<'_, u64>) -> u64;
            small_short = small(exchange: Exchange, a: Weighted<'_, u32>, b: Weighted<'_, u32>) -> u64;
            transpose = transpose(masks: &[u64], planes: &mut [Row; 64]);
            transpose_short = transpose(masks: &[u32], planes: &mut [Row; 64]);
            query = query(table: &Table, windows: &Windows, blocks: usize, queries: &[u64], double: Option<&[Row; BLOCKS_MAX]>) -> u64;
            query_short = query(table: &Table, windows: &Windows, blocks: usize, queries: &[u32], double: Option<&[Row; BLOCKS_MAX]>) -> u64;
        }
    };
    (@each $type:ty, $isa:expr, $costs:expr, $features:tt; $($name:ident = $with:ident($($arg:ident: $arg_type:ty),*) $(-> $result:ty)?;)*) => {
        impl $crate::halves::operations::Operations for $type {
            fn isa(&self) -> $crate::halves::operations::Isa {
                $isa
            }

            fn costs(&self) -> $crate::halves::operations::Costs {
                $costs
            }

            $(fn $name(&self, $($arg: $arg_type),*) $(-> $result)? {
                implement! { @call $features $with($($arg: $arg_type),*) $(-> $result)? }
            })*
        }
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
use super::windows::{BLOCKS_MAX, Costs, Row, Table, Weighted, Windows};
use crate::isa::Isa;
pub(super) use mask::Mask;

/// The inner loops. Masks are those of [`geometry`](super::geometry); bit `i` of word `i / 64` of a bit vector
/// stands for element `i` of a list.
pub(super) trait Operations: std::fmt::Debug + Send + Sync {
    /// Which version this is.
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

    /// [`Mask::pick`].
    fn pick(&self, masks: &[u64], chosen: &[u64], out: &mut [u64]) -> usize;
    /// [`Mask::pick`].
    fn pick_short(&self, masks: &[u32], chosen: &[u64], out: &mut [u32]) -> usize;

    /// The bits of each mask at `live`, at most 32, moved together, from the lowest on.
    fn squeeze(&self, masks: &[u64], live: u64, out: &mut [u32]);

    /// For each window, each index x into it and each of the first `blocks` blocks the row of those elements that have
    /// none of the bits of x. In the first window these are among the `valid` ones.
    fn table(
        &self,
        windows: &Windows,
        planes: &[Box<[Row; 64]>; BLOCKS_MAX],
        valid: &[Row; BLOCKS_MAX],
        blocks: usize,
        table: &mut Table,
    );

    /// [`Mask::sift`].
    fn sift(&self, masks: &[u64], bits: u64, without: &mut [u64]) -> usize;
    /// [`Mask::sift`].
    fn sift_short(&self, masks: &[u32], bits: u64, without: &mut [u32]) -> usize;
    /// [`Mask::part`].
    fn part(&self, masks: &[u64], bits: u64, without: &mut [u64], with: &mut [u64]) -> usize;
    /// [`Mask::part`].
    fn part_short(&self, masks: &[u32], bits: u64, without: &mut [u32], with: &mut [u32]) -> usize;
    /// [`Mask::union`].
    fn union(&self, masks: &[u64]) -> u64;
    /// [`Mask::union`].
    fn union_short(&self, masks: &[u32]) -> u64;
    /// [`Mask::sample`].
    fn sample(&self, masks: &[u64], counts: &mut [u64; 64]);
    /// [`Mask::sample`].
    fn sample_short(&self, masks: &[u32], counts: &mut [u64; 64]);
    /// [`Mask::small`].
    fn small(&self, exchange: Exchange, a: Weighted<'_, u64>, b: Weighted<'_, u64>) -> u64;
    /// [`Mask::small`].
    fn small_short(&self, exchange: Exchange, a: Weighted<'_, u32>, b: Weighted<'_, u32>) -> u64;
    /// [`Mask::transpose`].
    fn transpose(&self, masks: &[u64], planes: &mut [Row; 64]);
    /// [`Mask::transpose`].
    fn transpose_short(&self, masks: &[u32], planes: &mut [Row; 64]);
    /// [`Mask::query`].
    fn query(
        &self,
        table: &Table,
        windows: &Windows,
        blocks: usize,
        queries: &[u64],
        double: Option<&[Row; BLOCKS_MAX]>,
    ) -> u64;
    /// [`Mask::query`].
    fn query_short(
        &self,
        table: &Table,
        windows: &Windows,
        blocks: usize,
        queries: &[u32],
        double: Option<&[Row; BLOCKS_MAX]>,
    ) -> u64;
}

/// Elements that operations may overwrite beyond those they deliver.
pub(super) const SLACK: usize = 16;

/// Pairs that [`Mask::small`] takes at once: 32 bits hold what they count.
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
