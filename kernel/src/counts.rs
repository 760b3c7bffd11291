//! Counts of solution orbits, and the totals that they add up to.
//!
//! Widths: Q(29) no longer fits 64 bits, and a silent 32-bit overflow has spoiled published counts before. One
//! job's counts are 64-bit, sums over jobs 128-bit, and every addition and multiplication is checked.

use std::fmt;

use crate::board::BoardSize;

/// The nearest floating-point number, for estimates and for people.
#[expect(clippy::cast_precision_loss, reason = "nothing exact is made of it")]
pub fn to_f64(number: impl Into<u128>) -> f64 {
    number.into() as f64
}

/// A sum left the width of its type; nothing was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a count overflowed its integer width")]
pub struct Overflow;

/// Plain solutions that can't be sorted into orbits: some were missed, or counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsortable {
    /// Jobs of one run found both orbits and plain solutions.
    #[error("some jobs found orbits and others plain solutions")]
    Mixed,
    /// Without the symmetric ones they are no multiple of 8.
    #[error(
        "{solutions} solutions less the symmetric ones, COUNT2 = {count2} and COUNT4 = {count4}, are no multiple of 8"
    )]
    Indivisible {
        /// Plain solutions.
        solutions: u128,
        /// Orbits of 2.
        count2: u128,
        /// Orbits of 4.
        count4: u128,
    },
}

/// What was found in one job: orbits of solutions, by the number of their members (see [`Totals`]), or plain solutions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts<T = u64> {
    /// Orbits of 2: solutions equal to their quarter turn.
    pub count2: T,
    /// Orbits of 4: equal to their half turn, not to their quarter turn.
    pub count4: T,
    /// Orbits of 8: solutions with no symmetry.
    pub count8: T,
    /// Solutions counted as such, whatever orbits they belong to: plan `colours` finds these and no orbits, until they are
    /// [sorted](Totals::sorted).
    pub solutions: T,
}

/// What was found on a whole board, with what it adds up to.
pub type Totals = Counts<u128>;

impl<T: TryFrom<u128>> Counts<T>
where
    u128: From<T>,
{
    /// The sum with others, or [`Overflow`]. Totals take one job's counts, too.
    pub fn checked_add(self, more: impl Into<Self>) -> Result<Self, Overflow> {
        let (more, to) = (more.into(), |sum: u128| T::try_from(sum).ok());
        let add = |a: T, b: T| u128::from(a).checked_add(b.into()).and_then(to).ok_or(Overflow);
        Ok(Self {
            count2: add(self.count2, more.count2)?,
            count4: add(self.count4, more.count4)?,
            count8: add(self.count8, more.count8)?,
            solutions: add(self.solutions, more.solutions)?,
        })
    }
}

impl Counts {
    /// Nothing.
    pub const ZERO: Self = Self { count2: 0, count4: 0, count8: 0, solutions: 0 };

    /// Only orbits of 8.
    pub const fn only8(count8: u64) -> Self {
        Self { count8, ..Self::ZERO }
    }

    /// Only plain solutions.
    pub const fn plain(solutions: u64) -> Self {
        Self { solutions, ..Self::ZERO }
    }

    /// All solutions that these stand for.
    pub fn total(self) -> u128 {
        let orbits = [(2, self.count2), (4, self.count4), (8, self.count8)];
        orbits.iter().map(|&(members, count)| members * u128::from(count)).sum::<u128>()
            + u128::from(self.solutions)
    }

    /// Whether none of the four exceeds its like in `max`.
    pub fn within(self, max: Self) -> bool {
        <[u64; 4]>::from(self).iter().zip(<[u64; 4]>::from(max)).all(|(count, max)| *count <= max)
    }
}

/// COUNT2, COUNT4, COUNT8 and plain solutions.
impl<T> From<[T; 4]> for Counts<T> {
    fn from([count2, count4, count8, solutions]: [T; 4]) -> Self {
        Self { count2, count4, count8, solutions }
    }
}

impl<T> From<Counts<T>> for [T; 4] {
    fn from(Counts { count2, count4, count8, solutions }: Counts<T>) -> Self {
        [count2, count4, count8, solutions]
    }
}

impl<T: Copy + Into<u128>> fmt::Display for Counts<T> {
    /// Those that are not 0, for people: `COUNT4 = 1, COUNT8 = 11`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = <[T; 4]>::from(*self).map(T::into);
        let named = ["COUNT2", "COUNT4", "COUNT8", "solutions"].into_iter().zip(counts);
        let found = named.filter(|(_, count)| *count > 0);
        let found: Vec<_> = found.map(|(name, count)| format!("{name} = {count}")).collect();
        f.write_str(if found.is_empty() { "nothing" } else { "" })?;
        f.write_str(&found.join(", "))
    }
}

/// How many solutions are symmetric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymmetricCounts {
    /// Solutions equal to their half turn (OEIS A032522).
    pub half_turn: u64,
    /// Solutions equal to their quarter turn (OEIS A033148).
    pub quarter_turn: u64,
}

impl SymmetricCounts {
    /// COUNT2 of the whole board: two of these solutions an orbit. Zero for N = 1, whose orbit has one member.
    pub fn count2(self) -> u64 {
        self.quarter_turn / 2
    }

    /// COUNT4 of the whole board: four of these solutions an orbit.
    pub fn count4(self) -> u64 {
        (self.half_turn - self.quarter_turn) / 4
    }
}

impl Totals {
    /// Takes one job's counts out again that were added before.
    #[must_use]
    pub fn less(self, counts: Counts) -> Self {
        let less = |sum: u128, count: u64| sum.checked_sub(count.into()).expect("it was added before");
        Self {
            count2: less(self.count2, counts.count2),
            count4: less(self.count4, counts.count4),
            count8: less(self.count8, counts.count8),
            solutions: less(self.solutions, counts.solutions),
        }
    }

    /// Sorts plain solutions into orbits, given the orbits of symmetric solutions: all others have 8 members.
    ///
    /// Without plain solutions there is nothing to sort, and `self` is returned as it is.
    pub fn sorted(self, symmetric: SymmetricCounts) -> Result<Self, Unsortable> {
        if self.solutions == 0 {
            return Ok(self);
        }
        let Self { count2: 0, count4: 0, count8: 0, solutions } = self else { return Err(Unsortable::Mixed) };
        let (count2, count4) = (u128::from(symmetric.count2()), u128::from(symmetric.count4()));
        let others = solutions.checked_sub(2 * count2 + 4 * count4).filter(|others| others.is_multiple_of(8));
        let count8 = others.ok_or(Unsortable::Indivisible { solutions, count2, count4 })? / 8;
        Ok(Self { count2, count4, count8, solutions: 0 })
    }

    /// UNIQUE = COUNT2 + COUNT4 + COUNT8: solutions up to rotation and reflection. Plain solutions must have been
    /// [sorted](Self::sorted).
    ///
    /// The one solution of N = 1 is its own orbit and stands in none of the three counts.
    pub fn unique(self, n: BoardSize) -> Result<u128, Overflow> {
        assert_eq!(self.solutions, 0, "plain solutions are sorted into orbits first");
        let sum = self.count2.checked_add(self.count4).and_then(|s| s.checked_add(self.count8));
        Ok(sum.ok_or(Overflow)? + lone_orbit(n))
    }

    /// TOTAL = 2 COUNT2 + 4 COUNT4 + 8 COUNT8 + plain solutions: all there are.
    pub fn total(self, n: BoardSize) -> Result<u128, Overflow> {
        let times = |count: u128, members: u128| count.checked_mul(members).ok_or(Overflow);
        let (two, four, eight) = (times(self.count2, 2)?, times(self.count4, 4)?, times(self.count8, 8)?);
        let sum = two.checked_add(four).and_then(|s| s.checked_add(eight));
        let sum = sum.and_then(|s| s.checked_add(self.solutions));
        Ok(sum.ok_or(Overflow)? + lone_orbit(n))
    }
}

impl From<Counts> for Totals {
    fn from(counts: Counts) -> Self {
        <[u64; 4]>::from(counts).map(u128::from).into()
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
        let almost = Counts { count4: u64::MAX, count8: 1, ..Counts::ZERO };
        assert_eq!(almost.checked_add(Counts { count4: 1, ..Counts::ZERO }), Err(Overflow));
        assert_eq!(almost.checked_add(Counts::only8(1)).unwrap().count8, 2);
        let eight = BoardSize::new(8).unwrap();
        let totals = Totals { count8: u128::MAX / 8 + 1, ..Totals::default() };
        assert_eq!(totals.total(eight), Err(Overflow));
        assert_eq!(Totals { count8: u128::MAX, ..totals }.checked_add(Counts::only8(1)), Err(Overflow));
    }

    #[test]
    fn plain_solutions_are_sorted_or_refused() {
        let five = BoardSize::new(5).unwrap();
        let symmetric = SymmetricCounts { half_turn: 2, quarter_turn: 2 };
        let plain = |solutions| Totals { solutions, ..Totals::default() };
        let orbits = Totals { count2: 1, count8: 1, ..Totals::default() };
        assert_eq!(plain(10).sorted(symmetric), Ok(orbits));
        assert_eq!(plain(10).total(five), orbits.total(five));
        assert_eq!(orbits.sorted(symmetric), Ok(orbits));
        assert_eq!(Totals { count8: 1, ..plain(2) }.sorted(symmetric), Err(Unsortable::Mixed));
        for wrong in [1, 9, 11] {
            let refused = Unsortable::Indivisible { solutions: wrong, count2: 1, count4: 0 };
            assert_eq!(plain(wrong).sorted(symmetric), Err(refused));
        }
    }
}
