//! The jobs: column sets of the upper half board up to symmetry, numbered so that any one of them can be had at
//! once on every machine.

use crate::board::BoardSize;

/// Which part of the solutions a column set stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Even N.
    Even,
    /// Odd N and no queen in the centre: the upper half has the queen of the middle column.
    EmptyCentre,
    /// Odd N with a queen in the centre, which belongs to the lower half; the set leaves the middle column out.
    CentreQueen,
}

/// One orbit of column sets, by a representative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ColumnSet {
    /// The columns used by the N/2 (rounded down) upper rows; bit `c` is column `c`.
    pub columns: u32,
    /// How many times the solutions counted for this set go into the total: 1, 2, 4 or 8.
    pub weight: u32,
    /// Which solutions are counted.
    pub kind: Kind,
}

/// All orbits of an N, numbered `0..len`.
///
/// Columns `c` and `N-1-c` are a pair; a set takes none, one or both of a pair. The mirror image swaps the
/// members of every pair; the complement (the board upside down) swaps none with both, and one with the other
/// one. Mirror and complement together leave the single columns alone. So an orbit under both is: which pairs
/// are single, which of the other pairs are full (up to swapping none and full), and which member each single
/// pair has (up to swapping all). With an empty centre only the mirror image counts.
///
/// Similar sets stand together in small clusters, which share what is in the processor's caches; the clusters are
/// spread by a fixed stride, so that every range that is not too short is a fair sample of the work and of the
/// solutions.
#[derive(Clone, Debug)]
pub struct Orbits {
    n: BoardSize,
    families: Vec<OrbitFamily>,
    len: u64,
    cluster: u64,
    /// From one cluster to the next, in clusters.
    stride: u64,
}

/// The orbits of one kind with the same number of full pairs.
#[derive(Clone, Copy, Debug)]
struct OrbitFamily {
    kind: Kind,
    full: u32,
    single: u32,
    /// Choices of the single pairs, of the full ones among the others, and of the single members.
    choices: [u64; 3],
}

impl OrbitFamily {
    fn new(pairs: u32, kind: Kind, full: u32, empty: u32) -> Self {
        let single = pairs - full - empty;
        // Of two sets that differ by an exchange of none and full, the one whose lowest such pair is full is kept.
        let fills = match kind {
            Kind::EmptyCentre => binomial(full + empty, full),
            _ if full + empty == 0 => 1,
            _ => binomial(full + empty - 1, full - 1),
        };
        Self { kind, full, single, choices: [binomial(pairs, single), fills, 1 << single.saturating_sub(1)] }
    }

    fn len(&self) -> u64 {
        self.choices.iter().product()
    }

    fn weight(&self) -> u32 {
        let mirrored = if self.single == 0 { 1 } else { 2 };
        match self.kind {
            Kind::EmptyCentre => 4 * mirrored,
            _ if self.full == 0 => mirrored,
            _ => 2 * mirrored,
        }
    }

    /// The columns of orbit `index` of the family.
    fn columns(&self, n: u32, index: u64) -> u32 {
        let [_, fills, members] = self.choices;
        let single_pairs = subset(index / (fills * members), self.single);
        let filled = match self.kind {
            Kind::EmptyCentre => subset(index / members % fills, self.full),
            _ if self.full == 0 => 0,
            _ => 1 | subset(index / members % fills, self.full - 1) << 1,
        };
        // The highest single pair always has its lower member.
        let mut member = u32::try_from(index % members).expect("at most 2^15 choices");
        let mut columns = if self.kind == Kind::EmptyCentre { 1 << (n / 2) } else { 0 };
        let mut double = 0;
        for pair in 0..n / 2 {
            let [low, high] = [1 << pair, 1 << (n - 1 - pair)];
            if single_pairs >> pair & 1 == 1 {
                columns |= if member & 1 == 1 { high } else { low };
                member >>= 1;
            } else {
                columns |= if filled >> double & 1 == 1 { low | high } else { 0 };
                double += 1;
            }
        }
        columns
    }
}

impl Orbits {
    /// The smallest N whose halves can be joined: three rows each. Smaller boards have another plan.
    pub const N_MIN: u32 = 6;

    /// The orbits of `n`; `None` below [`N_MIN`](Self::N_MIN).
    pub fn new(n: BoardSize) -> Option<Self> {
        let pairs = n.get() / 2;
        let mut families = Vec::new();
        for full in 0..=pairs / 2 {
            let kind = if n.get().is_multiple_of(2) { Kind::Even } else { Kind::CentreQueen };
            families.push(OrbitFamily::new(pairs, kind, full, full));
            // The middle column is in the set, so one column fewer comes from the pairs.
            if kind == Kind::CentreQueen && 2 * full < pairs {
                families.push(OrbitFamily::new(pairs, Kind::EmptyCentre, full, full + 1));
            }
        }
        let len: u64 = families.iter().map(OrbitFamily::len).sum();
        // Once an orbit takes longer than filling the caches there is nothing to share.
        let cluster = if n.get() <= 20 {
            256
        } else if n.get() <= 22 {
            32
        } else {
            1
        };
        // About the golden section, and prime to the number of whole clusters: each comes once, neighbours lie far
        // apart.
        let clusters = len / cluster;
        let golden = (clusters * 618 / 1000).max(1);
        let stride = (golden..=golden + clusters)
            .find(|&stride| greatest_common_divisor(stride, clusters) <= 1)
            .expect("one is prime");
        (n.get() >= Self::N_MIN).then_some(Self { n, families, len, cluster, stride })
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// Orbits that stand together; ranges that share none of these clusters are counted fastest.
    pub fn cluster(&self) -> u64 {
        self.cluster
    }

    /// Number of orbits; 10 million for N = 28.
    #[expect(clippy::len_without_is_empty, reason = "there is always an orbit")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Orbit `index`, below [`len`](Self::len).
    pub fn get(&self, index: u64) -> ColumnSet {
        assert!(index < self.len, "there are {} orbits, not {index}", self.len);
        let (number, within) = (index / self.cluster, index % self.cluster);
        let clusters = self.len / self.cluster;
        // What the last whole cluster leaves stays at the end.
        let spread = if number < clusters { number * self.stride % clusters } else { number };
        let mut at = spread * self.cluster + within;
        for family in &self.families {
            if at < family.len() {
                let columns = family.columns(self.n.get(), at);
                return ColumnSet { columns, weight: family.weight(), kind: family.kind };
            }
            at -= family.len();
        }
        unreachable!("the families' lengths add up to the number of orbits")
    }
}

/// `n` over `k`.
pub(super) fn binomial(n: u32, k: u32) -> u64 {
    if k > n { 0 } else { (0..u64::from(k)).fold(1, |value, i| value * (u64::from(n) - i) / (i + 1)) }
}

/// The subset of `size` natural numbers with this rank in colexicographic order, as a bitmap.
pub(super) fn subset(mut rank: u64, size: u32) -> u32 {
    let mut bitmap = 0;
    for k in (1..=size).rev() {
        let element = (k - 1..32).take_while(|&c| binomial(c, k) <= rank).last().expect("k - 1 over k is 0");
        rank -= binomial(element, k);
        bitmap |= 1 << element;
    }
    bitmap
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn orbits_weigh_as_much_as_all_column_sets() {
        let expected = [(18, 12_283), (20, 46_508), (22, 176_870), (24, 677_294), (17, 9_019), (19, 34_225)];
        for (n, len) in expected {
            assert_eq!(Orbits::new(BoardSize::new(n).unwrap()).unwrap().len(), len, "N = {n}");
        }
        for n in 6..=17 {
            let orbits = Orbits::new(BoardSize::new(n).unwrap()).unwrap();
            let mut seen = HashSet::new();
            for set in (0..orbits.len()).map(|index| orbits.get(index)) {
                let mirror = |columns: u32| columns.reverse_bits() >> (32 - n);
                let middle = if n % 2 == 1 { 1 << (n / 2) } else { 0 };
                let turned = orbits.n().full() & !set.columns & !middle;
                let mut orbit = HashSet::from([set.columns, mirror(set.columns)]);
                if set.kind != Kind::EmptyCentre {
                    orbit.extend([turned, mirror(turned)]);
                }
                let scale = if set.kind == Kind::EmptyCentre { 4 } else { 1 };
                assert_eq!(set.weight as usize, scale * orbit.len(), "N = {n}, {set:?}");
                assert_eq!(set.columns & middle != 0, set.kind == Kind::EmptyCentre);
                for columns in orbit {
                    assert_eq!(columns.count_ones(), n / 2);
                    assert!(seen.insert(columns), "N = {n}: {columns:b} comes twice");
                }
            }
            assert_eq!(seen.len() as u64, binomial(n, n / 2), "N = {n}");
        }
    }

    #[test]
    fn small_boards_have_no_half_join() {
        assert!((1..6).all(|n| Orbits::new(BoardSize::new(n).unwrap()).is_none()));
        let last = Orbits::new(BoardSize::MAX).unwrap();
        assert!((0..100).all(|index| last.get(last.len() - 1 - index).columns.count_ones() == 15));
    }
}
