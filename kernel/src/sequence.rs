//! The sequences of the OEIS whose terms the three orbit counts give.

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::board::BoardSize;
use crate::counts::{Overflow, Totals};

/// A sequence of the On-Line Encyclopedia of Integer Sequences; its name is its number there.
///
/// ```
/// use nqueens_kernel::{board::BoardSize, known::published, sequence::Sequence};
///
/// let twelve = BoardSize::new(12).unwrap();
/// let orbits = published(twelve).unwrap().orbits;
/// assert_eq!(Sequence::Solutions.name(), "A000170");
/// assert_eq!(Sequence::Solutions.term(twelve, orbits), Ok(14_200));
/// assert_eq!(Sequence::QuarterTurn.term(twelve, orbits), Ok(8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
pub enum Sequence {
    /// TOTAL: all solutions.
    #[strum(serialize = "A000170")]
    Solutions,
    /// UNIQUE: solutions up to rotation and reflection.
    #[strum(serialize = "A002562")]
    Unique,
    /// COUNT2: orbits of solutions equal to their quarter turn.
    #[strum(serialize = "A260318")]
    Count2,
    /// COUNT4: orbits of solutions equal to their half turn and not to their quarter turn.
    #[strum(serialize = "A260319")]
    Count4,
    /// COUNT8: orbits of solutions without symmetry.
    #[strum(serialize = "A260320")]
    Count8,
    /// Solutions equal to their half turn.
    #[strum(serialize = "A032522")]
    HalfTurn,
    /// Solutions equal to their quarter turn.
    #[strum(serialize = "A033148")]
    QuarterTurn,
}

impl Sequence {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Its number in the OEIS.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What its terms count, in the terms of this program.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Solutions => "TOTAL: all solutions",
            Self::Unique => "UNIQUE: solutions up to rotation and reflection",
            Self::Count2 => "COUNT2: orbits of 2, solutions equal to their quarter turn",
            Self::Count4 => "COUNT4: orbits of 4, solutions equal to their half turn only",
            Self::Count8 => "COUNT8: orbits of 8, solutions without symmetry",
            Self::HalfTurn => "all solutions equal to their half turn: 2 COUNT2 + 4 COUNT4",
            Self::QuarterTurn => "all solutions equal to their quarter turn: 2 COUNT2",
        }
    }

    /// The term for N = `n`, whose board has these orbits.
    ///
    /// The single queen of N = 1 equals its quarter turn. The OEIS counts it accordingly, this program in none of the
    /// three orbit counts.
    pub fn term(self, n: BoardSize, orbits: Totals) -> Result<u128, Overflow> {
        let Totals { count2, count4, count8, .. } = orbits;
        match self {
            Self::Solutions => orbits.total(n),
            Self::Unique => orbits.unique(n),
            Self::Count2 => Totals { count2, ..Totals::default() }.unique(n),
            Self::Count4 => Ok(count4),
            Self::Count8 => Ok(count8),
            Self::HalfTurn => Totals { count2, count4, ..Totals::default() }.total(n),
            Self::QuarterTurn => Totals { count2, ..Totals::default() }.total(n),
        }
    }
}
