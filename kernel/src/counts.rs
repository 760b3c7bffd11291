//! Counts of solution orbits, and the totals that they add up to.
//!
//! Widths: Q(29) no longer fits 64 bits, and a silent 32-bit overflow has spoiled published counts before. One
//! job's counts are 64-bit, sums over jobs 128-bit, and every addition and multiplication is checked.

use crate::board::BoardSize;

/// A sum left the width of its type; nothing was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a count overflowed its integer width")
    }
}

impl std::error::Error for Overflow {}

/// Orbits of solutions found in one job, by the number of their members (see [`Totals`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Orbits of 2: solutions equal to their quarter turn.
    pub count2: u64,
    /// Orbits of 4: equal to their half turn, not to their quarter turn.
    pub count4: u64,
    /// Orbits of 8: solutions with no symmetry.
    pub count8: u64,
}

impl Counts {
    /// No orbits.
    pub const ZERO: Self = Self { count2: 0, count4: 0, count8: 0 };

    /// Only orbits of 8.
    pub const fn only8(count8: u64) -> Self {
        Self { count2: 0, count4: 0, count8 }
    }

    /// The sum of both, or [`Overflow`].
    pub fn checked_add(self, other: Self) -> Result<Self, Overflow> {
        let add = |a: u64, b: u64| a.checked_add(b).ok_or(Overflow);
        Ok(Self {
            count2: add(self.count2, other.count2)?,
            count4: add(self.count4, other.count4)?,
            count8: add(self.count8, other.count8)?,
        })
    }

    /// Whether none of the three exceeds its like in `max`.
    pub fn within(self, max: Self) -> bool {
        self.count2 <= max.count2 && self.count4 <= max.count4 && self.count8 <= max.count8
    }
}

/// Orbits of solutions of a whole board, with what they add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// Orbits of 2 members.
    pub count2: u128,
    /// Orbits of 4 members.
    pub count4: u128,
    /// Orbits of 8 members.
    pub count8: u128,
}

impl Totals {
    /// Adds one job's counts, or leaves `self` as it is and says [`Overflow`].
    pub fn checked_add(self, counts: Counts) -> Result<Self, Overflow> {
        let add = |a: u128, b: u64| a.checked_add(u128::from(b)).ok_or(Overflow);
        Ok(Self {
            count2: add(self.count2, counts.count2)?,
            count4: add(self.count4, counts.count4)?,
            count8: add(self.count8, counts.count8)?,
        })
    }

    /// UNIQUE = COUNT2 + COUNT4 + COUNT8: solutions up to rotation and reflection.
    ///
    /// The one solution of N = 1 is its own orbit and stands in none of the three counts.
    pub fn unique(self, n: BoardSize) -> Result<u128, Overflow> {
        let sum = self.count2.checked_add(self.count4).and_then(|s| s.checked_add(self.count8));
        Ok(sum.ok_or(Overflow)? + lone_orbit(n))
    }

    /// TOTAL = 2 COUNT2 + 4 COUNT4 + 8 COUNT8: all solutions.
    pub fn total(self, n: BoardSize) -> Result<u128, Overflow> {
        let times = |count: u128, members: u128| count.checked_mul(members).ok_or(Overflow);
        let (two, four, eight) = (times(self.count2, 2)?, times(self.count4, 4)?, times(self.count8, 8)?);
        let sum = two.checked_add(four).and_then(|s| s.checked_add(eight));
        Ok(sum.ok_or(Overflow)? + lone_orbit(n))
    }
}

/// The single queen of N = 1 equals all its images: an orbit of one member.
fn lone_orbit(n: BoardSize) -> u128 {
    u128::from(n == BoardSize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_checked() {
        let almost = Counts { count2: 0, count4: u64::MAX, count8: 1 };
        assert_eq!(almost.checked_add(Counts { count4: 1, ..Counts::ZERO }), Err(Overflow));
        assert_eq!(almost.checked_add(Counts::only8(1)).unwrap().count8, 2);
        let eight = BoardSize::new(8).unwrap();
        let totals = Totals { count8: u128::MAX / 8 + 1, ..Totals::default() };
        assert_eq!(totals.total(eight), Err(Overflow));
        assert_eq!(Totals { count8: u128::MAX, ..totals }.checked_add(Counts::only8(1)), Err(Overflow));
    }
}
