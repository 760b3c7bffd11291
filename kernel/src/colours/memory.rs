//! Memory that a multiplication takes however few it is given: lists of one set of major rows, trees of one row set.

use super::lines::Lines;

/// Bytes for the row sets with so many white queens in even rows: the peak of a process that counts one orbit with a byte for
/// tables, by the allocator of `nqueens`, two to four orbits each, and a fifth more. N = 30 by the system's allocator, and
/// half more; N = 31 is twice that, but for 15 and 16 queens a quarter more than was measured.
/// `cargo run --release -p nqueens-kernel --example colours -- N --samples 1 --piece 1 --memory 1 --white QUEENS`.
pub(super) fn least(lines: Lines, white: u32) -> u64 {
    /// In MiB, up to N = 20, 22, 24, 26, 28, 30 and 31; first as many queens of both colours, then one more each.
    const MIB: [[u64; 8]; 7] = [
        [20; 8],
        [36; 8],
        [36, 44, 52, 64, 60, 44, 36, 36],
        [64, 88, 108, 164, 160, 120, 84, 84],
        [80, 120, 250, 400, 600, 900, 500, 320],
        [250, 550, 1_000, 1_900, 2_900, 3_500, 4_200, 2_500],
        [500, 1_100, 2_000, 3_800, 5_800, 7_000, 8_400, 11_000],
    ];
    let half = lines.n().get().div_ceil(2);
    let lopsided = white.max(half - white) - half.div_ceil(2);
    MIB[half.saturating_sub(10) as usize][lopsided.min(7) as usize] << 20
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::BoardSize;

    #[test]
    fn every_stratum_has_its_place_in_the_table() {
        let mib = |n, white| least(Lines::new(BoardSize::new(n).unwrap()), white) >> 20;
        for n in 4..=31 {
            let strata = Lines::new(BoardSize::new(n).unwrap()).strata();
            assert!(strata.map(|white| mib(n, white)).min() >= Some(20), "N = {n}");
        }
        assert_eq!(
            (7..=14).map(|white| mib(28, white)).collect::<Vec<_>>(),
            [80, 120, 250, 400, 600, 900, 500, 320]
        );
        assert_eq!([1, 7, 13, 14].map(|white| mib(27, white)), [500, 80, 500, 320]);
    }
}
