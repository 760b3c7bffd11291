//! Totals against published counts, single orbits against another way to count, and every version of the inner
//! loops against plain loops.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::geometry::Geometry;
use super::leaf::Leaf;
use super::operations::{Mask, Operations, SLACK};
use super::orbits::{ColumnSet, Kind};
use super::progress::JoinProgress;
use super::split::{Splitter, Thresholds, Tools};
use super::windows::Weighted;
use super::{Join, Layout, Orbits, Outer, Tables, oracle, recount};
use crate::board::BoardSize;
use crate::engine::{Control, Kernel, Stopped};
use crate::isa::Isa;
use crate::known::published;

fn board(n: u32) -> BoardSize {
    BoardSize::new(n).unwrap()
}

fn versions() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.is_available())
}

fn tables(n: u32) -> Tables {
    Tables::new(board(n), u64::MAX, &Control::default()).unwrap().unwrap()
}

fn total(join: &mut Join, tables: &Tables) -> u128 {
    let tally = join.count(tables, 0..tables.orbits().len(), &Control::default()).unwrap();
    tally.weighted_solutions.into()
}

/// Thresholds under which small boards use all that large ones need.
const EAGER: Thresholds = Thresholds { own_blocks: 2, own_queries: 2, by_group: 2, split: 64 };

#[test]
fn totals_are_the_published_ones() {
    for isa in versions() {
        let mut join = Join::new(isa, u64::MAX).unwrap();
        for n in 6..=15 {
            assert_eq!(total(&mut join, &tables(n)), published(board(n)).unwrap().total, "N = {n}, {isa}");
        }
    }
}

#[test]
fn fast_versions_count_16_and_17_boards() {
    for isa in versions().filter(|&isa| isa != Isa::Portable) {
        let mut join = Join::new(isa, u64::MAX).unwrap();
        for n in 16..=17 {
            assert_eq!(total(&mut join, &tables(n)), published(board(n)).unwrap().total, "N = {n}, {isa}");
        }
    }
}

/// Every way to lay out tables and lists, to plan joins and to cut off the criterion gives the same totals.
#[test]
fn layouts_plans_and_memory_do_not_change_totals() {
    for n in 10..=13 {
        let expected = published(board(n)).unwrap().total;
        for (isa, outer_rows) in versions().zip((1..=3).cycle()) {
            for lateness in [1, 2, 16] {
                let geometry = Geometry::with_lateness(board(n), lateness.min(n / 2));
                let orbits = Orbits::new(board(n)).unwrap();
                let mut tables = Tables::build(orbits, geometry, outer_rows, &Control::default()).unwrap();
                let grouped = [(1, 0), (0, 0), (3, 1 << 12)].map(|way| (true, false, way));
                let ungrouped = [false, true].map(|short| (false, short, (2, 1 << 16)));
                for (grouped, short, (passes, memory_max)) in grouped.into_iter().chain(ungrouped) {
                    tables.layout = Layout { grouped, passes, short };
                    let mut join = Join::new(isa, memory_max).unwrap();
                    join.thresholds = EAGER;
                    assert_eq!(total(&mut join, &tables), expected, "N = {n}, {isa}, {:?}", tables.layout);
                }
            }
        }
    }
}

/// Column sets, drawn by a fixed rule, against row-by-row counting with masks.
#[test]
fn orbits_equal_their_recount() {
    let control = Control::default();
    let mut engine = Kernel::best().engine().unwrap();
    for (n, orbits) in
        [(6, 7), (7, 16), (8, 23), (9, 51), (13, 40), (14, 40), (15, 12), (16, 12), (17, 3), (18, 2)]
    {
        let tables = tables(n);
        for isa in versions() {
            let mut join = Join::new(isa, u64::MAX).unwrap();
            for orbit in (0..orbits).map(|k| k * tables.orbits().len() / orbits) {
                let tally = join.count(&tables, orbit..orbit + 1, &control).unwrap();
                let expected = recount(tables.orbits(), orbit..orbit + 1, &mut |_, _| {}, |board| {
                    engine.count(&board, &control)
                })
                .unwrap();
                assert_eq!(
                    tally.weighted_solutions, expected.weighted_solutions,
                    "N = {n}, {isa}, orbit {orbit}"
                );
            }
        }
    }
}

/// The recount's own subproblems, summed over the orbits, give the total: nothing is lost to the criterion.
#[test]
fn recounts_add_up_to_the_total() {
    let control = Control::default();
    let mut engine = Kernel::best().engine().unwrap();
    for n in 6..=11 {
        let orbits = Orbits::new(board(n)).unwrap();
        let recounted =
            recount(&orbits, 0..orbits.len(), &mut |_, _| {}, |board| engine.count(&board, &control))
                .unwrap();
        assert_eq!(u128::from(recounted.weighted_solutions), published(board(n)).unwrap().total, "N = {n}");
    }
}

/// All column sets, not one of each orbit: images have equal counts, and each solution is counted as often as the
/// symmetry says.
#[test]
fn sums_over_all_column_sets_equal_sums_over_orbits() {
    for n in 8..=12 {
        let tables = tables(n);
        let mut join = Join::new(Isa::best(), u64::MAX).unwrap();
        let mut count = |columns: u32, kind| {
            let set = ColumnSet { columns, weight: 1, kind };
            join.count_set(&tables, set, &mut JoinProgress::new(&Control::default())).unwrap()
        };
        let middle = 1u32 << (n / 2);
        let mirror = |columns: u32| columns.reverse_bits() >> (32 - n);
        let mut sum = 0;
        for columns in (0..=board(n).full()).filter(|columns| columns.count_ones() == n / 2) {
            let kind = match (n % 2, columns & middle) {
                (0, _) => Kind::Even,
                (_, 0) => Kind::CentreQueen,
                _ => Kind::EmptyCentre,
            };
            let found = count(columns, kind);
            assert_eq!(found, count(mirror(columns), kind), "N = {n}, {columns:b}");
            sum += if kind == Kind::EmptyCentre { 4 * found } else { found };
        }
        assert_eq!(u128::from(sum), published(board(n)).unwrap().total, "N = {n}");
    }
}

#[test]
fn joins_stop_and_report() {
    let tables = tables(14);
    let mut join = Join::new(Isa::best(), u64::MAX).unwrap();
    let control = Control::default();
    let tally = join.count(&tables, 0..100, &control).unwrap();
    assert_eq!(control.states(), tally.states);
    assert!(tally.states > 0);
    control.stop();
    assert_eq!(join.count(&tables, 0..100, &control), Err(Stopped));
    assert!(Tables::new(board(14), u64::MAX, &control).unwrap().is_err());
}

#[test]
fn tables_keep_to_their_memory() {
    for n in [16, 17, 18] {
        let geometry = Geometry::new(board(n));
        let full = tables(n);
        let estimate: u64 =
            Outer::halves(&geometry).map(|half| Outer::bytes_estimate(&geometry, half, 6)).sum();
        assert!(estimate.abs_diff(full.bytes()) * 100 < 15 * full.bytes(), "{estimate} for {}", full.bytes());
        let half = Tables::new(board(n), full.bytes() / 2, &Control::default()).unwrap().unwrap();
        assert!(half.bytes() < full.bytes() / 2, "{} of {}", half.bytes(), full.bytes());
    }
    assert!(Tables::new(board(5), u64::MAX, &Control::default()).is_none());
}

/// The largest boards: a single small set of masks is all that can be counted there, but it must fit the bits.
#[test]
fn large_boards_fit_the_types() {
    for n in 24..=31 {
        let geometry = Geometry::new(board(n));
        let orbits = Orbits::new(board(n)).unwrap();
        for orbit in 0..20 {
            let set = orbits.get(orbit * (orbits.len() / 20));
            let columns = [set.columns, board(n).full() & !set.columns];
            let [above, below] = geometry.first_queens(columns, set.kind);
            for (q, r) in (0..n as usize).flat_map(|q| (0..n as usize).map(move |r| (q, r))) {
                if above >> q & 1 == 1 && below >> r & 1 == 1 && q.abs_diff(r) > 1 {
                    let criterion = geometry.criterion(set.kind, q, r);
                    assert!(criterion.early <= geometry.lateness());
                    assert!(criterion.tie.is_none_or(|j| j <= geometry.lateness()));
                }
            }
            assert!(!oracle::subproblems(&geometry, set).is_empty());
        }
        assert!(geometry.middle_bits().end <= 64);
    }
}

#[test]
fn short_lists_have_room_for_what_matters() {
    for n in (6..=31).filter(|&n| Layout::new(n as usize).short) {
        let kept = Geometry::new(board(n)).beyond_first_queens();
        assert_eq!(kept.count_ones(), 2 * (n - 3), "N = {n}");
        assert!(kept.count_ones() <= u32::BITS, "N = {n}");
    }
}

fn config(cases: u32) -> Config {
    Config { rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..Config::with_cases(cases) }
}

/// Masks of which each bit is set with a chance of about one in four.
fn masks(len: usize) -> impl Strategy<Value = Vec<u64>> {
    vec(any::<[u64; 2]>().prop_map(|[a, b]| a & b), len)
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![0..40_usize, 500..520_usize, 1000..1100_usize, Just(511), Just(512), Just(513), Just(1024)]
}

/// A list and the number of its untied elements.
fn weighted() -> impl Strategy<Value = (Vec<u64>, usize)> {
    let tied = prop_oneof![Just(0), Just(1000), 0..1000_usize];
    (sizes().prop_flat_map(masks), tied).prop_map(|(list, tied)| {
        let untied = list.len() * (1000 - tied) / 1000;
        (list, untied)
    })
}

fn naive(geometry: &Geometry, a: Weighted<'_>, b: Weighted<'_>) -> u64 {
    let mut sum = 0;
    for (i, &x) in a.masks.iter().enumerate() {
        for (k, &y) in b.masks.iter().enumerate() {
            if geometry.exchange().of(x) & y == 0 {
                sum += if i < a.untied && k < b.untied { 2 } else { 1 };
            }
        }
    }
    sum
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn leaves_and_splits_equal_the_pair_loop(
        n in 6_u32..=31,
        (a, untied_a) in weighted(),
        (b, untied_b) in weighted(),
        used in any::<[u64; 3]>(),
    ) {
        let geometry = Geometry::new(board(n));
        // Few diagonals in use now and then: one window, or none at all.
        let used = used[0] & if used[1] & 1 == 0 { used[1] & used[2] } else { u64::MAX };
        let [a, b] = [a, b].map(|list| list.iter().map(|mask| mask & used).collect::<Vec<_>>());
        let a = Weighted { masks: &a, untied: untied_a };
        let b = Weighted { masks: &b, untied: untied_b };
        let expected = naive(&geometry, a, b);
        let control = Control::default();
        for isa in versions() {
            let operations = &*isa.operations().unwrap();
            let found = Leaf::new().join(operations, geometry.exchange(), a, b, &mut JoinProgress::new(&control));
            prop_assert_eq!(found, Ok(expected), "{}", isa);
            let tools = Tools { operations, geometry: &geometry, costs: operations.costs(), thresholds: EAGER };
            let found = Splitter::new().join(tools, geometry.exchange(), a, b, &mut JoinProgress::new(&control));
            prop_assert_eq!(found, Ok(expected), "{} with splits", isa);
            // Lists too long for one call are given in pieces.
            let pieces = a.parts(100).map(|part| operations.small(geometry.exchange(), part, b));
            prop_assert_eq!(pieces.sum::<u64>(), expected, "{} in pieces", isa);
        }
    }

    #[test]
    fn filters_equal_plain_ones(
        list in (0..12_usize).prop_flat_map(|blocks| masks(64 * blocks)),
        odd_end in 0..64_usize,
        bits in any::<u64>(),
        planes in vec(any::<[u64; 3]>(), 12),
    ) {
        for isa in versions() {
            let operations = &*isa.operations().unwrap();
            let list_odd = &list[odd_end.min(list.len())..];
            check_filters(operations, list_odd, bits)?;
            let mut short = vec![0; list_odd.len()];
            let live = bits & u64::from(u32::MAX) | bits & bits.rotate_left(13);
            if live.count_ones() <= 32 {
                operations.squeeze(list_odd, live, &mut short);
                for (short, mask) in short.iter().zip(list_odd) {
                    let kept = (0..64).filter(|bit| live >> bit & 1 == 1).map(|bit| mask >> bit & 1);
                    let expected = kept.enumerate().fold(0, |short, (place, bit)| short | bit << place);
                    prop_assert_eq!(u64::from(*short), expected, "{}", isa);
                }
            }
            operations.squeeze(list_odd, 0xffff_ffff << 16, &mut short);
            check_filters(operations, &short, bits & u64::from(u32::MAX))?;

            let blocks = list.len() / 64;
            let chosen: Vec<u64> = planes[..blocks].iter().map(|plane| plane[0]).collect();
            check_pick(operations, &list, &chosen)?;
            let mut short = vec![0; list.len()];
            operations.squeeze(&list, 0xffff_ffff << 16, &mut short);
            check_pick(operations, &short, &chosen)?;
            check_planes(operations, &list)?;
            check_standing(operations, &planes[..blocks])?;
        }
    }
}

fn check_filters<M: Mask + PartialEq>(
    operations: &dyn Operations,
    list: &[M],
    bits: u64,
) -> Result<(), TestCaseError> {
    let (leave, keep): (Vec<M>, Vec<M>) = list.iter().partition(|&&mask| mask.into() & bits != 0);
    let [mut without, mut with] =
        [vec![M::default(); list.len() + SLACK], vec![M::default(); list.len() + SLACK]];
    let kept = M::of(operations).sift(list, bits, &mut without);
    prop_assert_eq!(&without[..kept], &keep[..], "{:?}", operations);
    without.fill(M::default());
    let kept = M::of(operations).part(list, bits, &mut without, &mut with);
    prop_assert_eq!(&without[..kept], &keep[..], "{:?}", operations);
    prop_assert_eq!(&with[..list.len() - kept], &leave[..], "{:?}", operations);
    let union = list.iter().fold(0, |union, &mask| union | mask.into());
    prop_assert_eq!(M::of(operations).union(list), union, "{:?}", operations);
    for some in list.chunks(64 * M::IN_WORD) {
        let mut counts = [0; 64];
        M::of(operations).sample(some, &mut counts);
        for (bit, &count) in counts.iter().enumerate() {
            let expected = some.iter().filter(|&&mask| mask.into() >> bit & 1 == 1).count();
            prop_assert_eq!(count, expected as u64, "{:?}, bit {}", operations, bit);
        }
    }
    Ok(())
}

fn check_pick<M: Mask + PartialEq>(
    operations: &dyn Operations,
    list: &[M],
    chosen: &[u64],
) -> Result<(), TestCaseError> {
    let mut out = vec![M::default(); list.len() + SLACK];
    let picked = M::of(operations).pick(list, chosen, &mut out);
    let is_chosen = |i: &usize| chosen[i / 64] >> (i % 64) & 1 == 1;
    let expected: Vec<M> = (0..list.len()).filter(is_chosen).map(|i| list[i]).collect();
    prop_assert_eq!(&out[..picked], &expected[..], "{:?}", operations);
    Ok(())
}

fn check_planes(operations: &dyn Operations, list: &[u64]) -> Result<(), TestCaseError> {
    let blocks = list.len() / 64;
    let bits: Vec<u64> = (0..40).map(|k| 1 << k | 1 << (k * 7 % 64)).collect();
    let mut planes = vec![0; bits.len() * blocks];
    operations.planes(list, &bits, &mut planes);
    for (i, mask) in list.iter().enumerate() {
        for (k, bits) in bits.iter().enumerate() {
            let bit = planes[k * blocks + i / 64] >> (i % 64) & 1 == 1;
            prop_assert_eq!(bit, mask & bits != 0, "{:?}, mask {}, plane {}", operations, i, k);
        }
    }
    Ok(())
}

fn check_standing(operations: &dyn Operations, planes: &[[u64; 3]]) -> Result<(), TestCaseError> {
    let [dead, early, tie] = [0, 1, 2].map(|k| planes.iter().map(|plane| plane[k]).collect::<Vec<_>>());
    for tie in [None, Some(&tie[..])] {
        let [mut untied, mut tied] = [vec![7; planes.len()], vec![7; planes.len()]];
        let counts = operations.standing([&dead, &early], tie, &mut untied, &mut tied);
        let mut expected = [0; 2];
        for word in 0..planes.len() {
            let standing = !(dead[word] | early[word]);
            let ties = tie.map_or(u64::MAX, |tie| tie[word]);
            prop_assert_eq!([untied[word], tied[word]], [standing & !ties, standing & ties]);
            expected[0] += untied[word].count_ones() as usize;
            expected[1] += tied[word].count_ones() as usize;
        }
        prop_assert_eq!(counts, expected, "{:?}", operations);
    }
    Ok(())
}
