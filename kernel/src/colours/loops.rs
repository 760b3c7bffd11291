//! The inner loops, compiled for each instruction set.

use std::fmt::Debug;
use std::ops::Range;

use super::dense::{self, LaneGroup, Scratch};
use super::depth::Costs;
use super::lists::Factor;
use super::matrix::{self, FitCount, MatrixRow, Pair};
use super::vectors;
#[cfg(target_arch = "x86_64")]
use crate::engine::Kernel;
use crate::engine::{Control, Stopped};

/// The inner loops with `L` lanes.
pub(super) trait Loops<const L: usize>: Copy + Debug + Send + 'static {
    /// What they take.
    const COSTS: &Costs;

    /// [`dense::join`].
    fn join<C: FitCount>(
        self,
        group: LaneGroup<'_>,
        steps: Range<usize>,
        scratch: &mut Scratch<L>,
        matrix: &mut [MatrixRow<C, L>],
        control: &Control,
    ) -> Result<(), Stopped>;

    /// [`matrix::widen`].
    fn widen(
        self,
        narrow: &mut [MatrixRow<u8, L>],
        wide: &mut [MatrixRow<u16, L>],
        height: usize,
        places: &[usize],
    ) -> (u8, u16);

    /// [`matrix::turn`].
    fn turn<C: FitCount>(self, from: &[MatrixRow<C, L>], to: &mut [MatrixRow<C, L>], room: &mut [Pair<C, L>]);

    /// [`matrix::products`].
    fn products(
        self,
        one: &[MatrixRow<u16, L>],
        other: &[MatrixRow<u16, L>],
        lanes: [&[u32; L]; 2],
        rows: &[Factor],
    ) -> u64;
}

macro_rules! implement {
    ($type:ty, $lanes:literal, $filter:ty, $costs:expr $(, $features:literal)?) => {
        impl Loops<$lanes> for $type {
            const COSTS: &Costs = &$costs;

            implement! { @method [$($features)?] join<C>(
                group: LaneGroup<'_>,
                steps: Range<usize>,
                scratch: &mut Scratch<$lanes>,
                matrix: &mut [MatrixRow<C, $lanes>],
                control: &Control
            ) -> Result<(), Stopped> {
                dense::join::<C, $filter, $lanes>(group, steps, scratch, matrix, control)
            } }

            implement! { @method [$($features)?] widen(
                narrow: &mut [MatrixRow<u8, $lanes>],
                wide: &mut [MatrixRow<u16, $lanes>],
                height: usize,
                places: &[usize]
            ) -> (u8, u16) {
                matrix::widen(narrow, wide, height, places)
            } }

            implement! { @method [$($features)?] turn<C>(
                from: &[MatrixRow<C, $lanes>],
                to: &mut [MatrixRow<C, $lanes>],
                room: &mut [Pair<C, $lanes>]
            ) -> () {
                matrix::turn(from, to, room);
            } }

            implement! { @method [$($features)?] products(
                one: &[MatrixRow<u16, $lanes>],
                other: &[MatrixRow<u16, $lanes>],
                lanes: [&[u32; $lanes]; 2],
                rows: &[Factor]
            ) -> u64 {
                matrix::products(one, other, lanes, rows)
            } }
        }
    };
    // A method whose body is compiled for the instructions.
    (
        @method [$($features:literal)?]
        $name:ident $(<$count:ident>)? ($($arg:ident: $type:ty),*) -> $result:ty $body:block
    ) => {
        fn $name $(<$count: FitCount>)? (self, $($arg: $type),*) -> $result {
            $(#[target_feature(enable = $features)])?
            fn compiled $(<$count: FitCount>)? ($($arg: $type),*) -> $result $body
            implement! { @call [$($features)?] compiled($($arg),*) }
        }
    };
    (@call [] $compiled:ident($($arg:ident),*)) => {
        $compiled($($arg),*)
    };
    (@call [$features:literal] $compiled:ident($($arg:ident),*)) => {
        // SAFETY: a value of the type exists only where the instructions do.
        unsafe { $compiled($($arg),*) }
    };
}

/// For any machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Portable;

implement!(Portable, 32, vectors::Plain, Costs::PORTABLE);

/// For machines with AVX2; one exists only where the instructions do.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    pub(super) fn new() -> Option<Self> {
        Kernel::Avx2.is_available().then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
implement!(Avx2, 32, vectors::Avx2, Costs::AVX2, "avx2,bmi1,bmi2,lzcnt,popcnt");

// With twice as many lanes, as AVX-512 has: for tests of that where there is none.
#[cfg(all(test, target_arch = "x86_64"))]
implement!(Avx2, 64, vectors::Plain, Costs::AVX2, "avx2,bmi1,bmi2,lzcnt,popcnt");

/// For machines with AVX-512 that count the bits of bytes; one exists only where the instructions do.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

#[cfg(target_arch = "x86_64")]
impl Avx512 {
    pub(super) fn new() -> Option<Self> {
        Kernel::Avx512.is_available().then_some(Self(()))
    }
}

#[cfg(target_arch = "x86_64")]
implement!(
    Avx512,
    64,
    vectors::Avx512,
    Costs::AVX512,
    "avx2,avx512f,avx512bw,avx512vl,avx512bitalg,avx512vbmi,gfni,bmi1,bmi2,lzcnt,popcnt"
);
