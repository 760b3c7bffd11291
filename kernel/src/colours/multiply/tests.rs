use std::fmt::Debug;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use super::super::dense::LaneGroup;
use super::super::depth::Costs;
use super::super::loops::Loops;
use super::super::matrix::{FitCount, MatrixRow, Pair};
use super::super::product::{Buffers, Cell};
use super::*;
use crate::board::BoardSize;
use crate::random::Random;

fn row_sets(n: u32) -> RowSets {
    RowSets::new(BoardSize::new(n).unwrap()).unwrap()
}

fn total<M: Loops<L>, const L: usize>(products: CpuProducts<M, L>, memory_max: usize, sets: &RowSets) -> u64 {
    let mut multiplier = Multiplier::with(Box::new(products), memory_max);
    multiplier
        .count_each(sets, 0..sets.len(), &mut |_, _| {}, &Control::default())
        .unwrap()
        .weighted_solutions
}

#[test]
fn cells_of_both_widths_and_any_memory_give_the_same() {
    for (n, expected) in [(9, 352), (12, 14_200), (15, 2_279_184)] {
        let sets = row_sets(n);
        for memory in [0, 10_000, 100_000, 1 << 30] {
            for wide_only in [false, true] {
                let mut products = CpuProducts::<_, 32>::new(loops::Portable);
                products.wide_only = wide_only;
                assert_eq!(total(products, memory, &sets), expected, "N = {n}, {memory} bytes");
            }
        }
    }
}

/// As many lanes as AVX-512 has, on machines that have none.
#[test]
#[cfg(target_arch = "x86_64")]
fn any_number_of_lanes_gives_the_same() {
    let Some(avx2) = loops::Avx2::new() else { return };
    for (n, expected) in [(11, 2_680), (14, 365_596), (16, 14_772_512)] {
        let sets = row_sets(n);
        assert_eq!(total(CpuProducts::<_, 64>::new(avx2), 1 << 30, &sets), expected, "N = {n}");
    }
}

fn check_turned<M: Loops<L>, C: FitCount + PartialEq + Debug, const L: usize>(loops: M) {
    let mut random = Random::new(3);
    let mut room = vec![Pair([[C::ZERO; L]; 2]); L];
    for rows in [1, 2, L / 2 + 1, L] {
        for lanes in [1, L - 1, L] {
            let mut some = || C::ZERO.add(u8::try_from(random.below(256)).unwrap());
            let from: Vec<_> = (0..rows).map(|_| MatrixRow(std::array::from_fn(|_| some()))).collect();
            let mut to = vec![MatrixRow([C::FULL; L]); lanes];
            loops.turn(&from, &mut to, &mut room);
            for (l, to) in to.iter().enumerate() {
                for (p, from) in from.iter().enumerate() {
                    assert_eq!(to.0[p], from.0[l], "lane {l} of row {p}");
                }
            }
        }
    }
}

#[test]
fn turned_rows_are_lanes() {
    check_turned::<_, u16, 32>(loops::Portable);
    check_turned::<_, u32, 32>(loops::Portable);
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = loops::Avx2::new() {
        check_turned::<_, u16, 32>(avx2);
        check_turned::<_, u32, 64>(avx2);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = loops::Avx512::new() {
        check_turned::<_, u16, 64>(avx512);
        check_turned::<_, u32, 64>(avx512);
    }
}

/// A tree of two row sets, and its column sets.
fn tree(n: u32, sets: &[Set; 2], depth: usize) -> (Trie, ColumnSets, Diagonals) {
    let lines = row_sets(n).lines();
    let queens = u32::try_from(sets[0].0.len()).unwrap();
    let columns = ColumnSets::new(lines, Parity::Even, queens, 0..=u32::MAX, Only::default());
    let diagonals = Diagonals::new(lines, Colour::White);
    let mut trie = Trie::default();
    let wanted = TrieSpec {
        class: CellClass::new(lines, Colour::White, Parity::Even, &diagonals),
        sets,
        depth,
        columns: &columns,
        places: 0..columns.len(),
        control: &Control::default(),
    };
    trie.fill(&wanted).unwrap();
    (trie, columns, diagonals)
}

fn small_tree() -> (Trie, ColumnSets, Diagonals) {
    tree(12, &[(vec![2, 3, 0], 0), (vec![2, 3, 5], 1)], 1)
}

fn two_lanes<'a>(trie: &'a Trie, lists: &'a PlacementLists, diagonals: &Diagonals) -> LaneGroup<'a> {
    let (colour, bits) = (Colour::White, diagonals.bits());
    LaneGroup { colour, trie, lists, bits, first: 0, count: 2 }
}

#[test]
fn stretches_of_any_length_give_the_same() {
    for depth in 1..=3 {
        let (trie, columns, diagonals) = tree(16, &[(vec![3, 4, 2, 0], 0), (vec![3, 4, 2, 7], 1)], depth);
        let mut random = Random::new(1);
        let mut mask = || random.bits() & random.bits() & random.bits() & ((1 << diagonals.bits()) - 1);
        // What the first queens attack fits only behind them: counts are too large in the middle of the tree.
        let first = trie.steps.iter().filter(|step| step.level == 0).take(2);
        let first = first.fold(0, |attacked, step| attacked | step.queen);
        for (length, attacked) in [(10, 0), (LENGTHS[depth - 1], 0), (3 * LENGTHS[depth - 1] / 2, first)] {
            let lists = PlacementLists {
                masks: (0..2 * length).map(|_| mask() | attacked).collect(),
                starts: vec![0, length, 2 * length],
            };
            let (group, control) = (two_lanes(&trie, &lists, &diagonals), Control::default());
            let mut wide = vec![MatrixRow([0_u32; 32]); 2 * columns.len()];
            let mut buffers = Buffers::<32>::new();
            assert!(Cell::join(loops::Portable, group, &mut buffers, &mut wide, &control).unwrap());
            for leaves_max in (1..700).step_by(17) {
                buffers.leaves_max = [leaves_max; 2];
                let mut narrow = vec![MatrixRow([0_u16; 32]); 2 * columns.len()];
                assert!(Cell::join(loops::Portable, group, &mut buffers, &mut narrow, &control).unwrap());
                let same = narrow.iter().zip(&wide).all(|(narrow, wide)| narrow.0.map(u32::from) == wide.0);
                assert!(same, "depth {depth}, lists of {length}, {leaves_max} leaves at once");
            }
            let most = wide.iter().flat_map(|row| row.0).max();
            assert!((most > Some(255)) == (length > 10) || attacked > 0, "{most:?}");
        }
    }
}

/// For each depth so many placements that the counts of a branch fit a byte, and those of all do not: they are counted again.
const LENGTHS: [u32; 3] = [100, 200, 400];

/// Leaves are added to rows whose bounds nobody checks again.
#[test]
#[should_panic(expected = "a row for each set and place")]
fn a_matrix_without_a_row_for_each_leaf_is_refused() {
    let (trie, columns, diagonals) = small_tree();
    let lists = PlacementLists { masks: vec![0; 2], starts: vec![0, 1, 2] };
    let mut matrix = vec![MatrixRow([0_u32; 32]); 2 * columns.len() - 1];
    let (group, control) = (two_lanes(&trie, &lists, &diagonals), Control::default());
    let _ = Cell::join(loops::Portable, group, &mut Buffers::<32>::new(), &mut matrix, &control);
}

/// The fits of some placements by row of the matrix, each compared by itself.
fn fits(trie: &Trie, masks: &[u64], rows: usize) -> Vec<u32> {
    let mut counts = vec![0; rows];
    for step in &trie.steps {
        let bit = |diagonal: u8| 1_u64.checked_shl(diagonal.into()).unwrap_or(0);
        let asked: Vec<u64> = trie.asked(step).map(|[one, other]| bit(one) | bit(other)).collect();
        for (queens, leaves) in trie.nodes(step) {
            let node = step.queen | asked[(queens[0] & 255) as usize];
            for leaf in leaves {
                let queens = node | asked[(leaf >> 24) as usize];
                let fits = masks.iter().filter(|mask| **mask & queens == 0).count();
                counts[(leaf & 0xff_ffff) as usize] += u32::try_from(fits).unwrap();
            }
        }
    }
    counts
}

/// Lists of one octet to ten, in one lane.
fn check_octets<M: Loops<L>, const L: usize>(loops: M) {
    let (trie, columns, diagonals) = small_tree();
    let mut random = Random::new(3);
    for length in 1..=80 {
        let mut mask = || random.bits() & random.bits() & random.bits() & ((1 << diagonals.bits()) - 1);
        let masks: Vec<u64> = (0..length).map(|_| mask()).collect();
        let lists = PlacementLists { masks: masks.clone(), starts: vec![0, 0, length] };
        let (group, control) = (two_lanes(&trie, &lists, &diagonals), Control::default());
        let mut found = vec![MatrixRow([0_u32; L]); 2 * columns.len()];
        assert!(Cell::join(loops, group, &mut Buffers::<L>::new(), &mut found, &control).unwrap());
        let found: Vec<_> = found.iter().map(|row| row.0[1]).collect();
        assert_eq!(found, fits(&trie, &masks, found.len()), "{length} placements");
    }
}

/// Lists of many lengths, empty ones too, in all lanes, with as many diagonals as N = 31 has.
fn check_lanes<M: Loops<L>, const L: usize>(loops: M) {
    let (trie, columns, diagonals) = small_tree();
    let mut random = Random::new(4);
    let mut lists = PlacementLists { masks: Vec::new(), starts: vec![0] };
    for _ in 0..L {
        for _ in 0..random.below(20) {
            lists.masks.push((random.bits() & random.bits() & random.bits()) >> 4);
        }
        lists.starts.push(u32::try_from(lists.masks.len()).unwrap());
    }
    for bits in [diagonals.bits(), 60, 64] {
        let group = LaneGroup { colour: Colour::White, trie: &trie, lists: &lists, bits, first: 0, count: L };
        let mut found = vec![MatrixRow([0_u32; L]); 2 * columns.len()];
        assert!(Cell::join(loops, group, &mut Buffers::<L>::new(), &mut found, &Control::default()).unwrap());
        for lane in 0..L {
            let masks = &lists.masks[lists.starts[lane] as usize..lists.starts[lane + 1] as usize];
            let of_lane: Vec<_> = found.iter().map(|row| row.0[lane]).collect();
            assert_eq!(of_lane, fits(&trie, masks, found.len()), "lane {lane}, {bits} bits");
        }
    }
}

#[test]
fn each_octet_of_each_lane_is_compared() {
    fn check<M: Loops<L>, const L: usize>(loops: M) {
        check_octets(loops);
        check_lanes(loops);
    }
    check::<_, 32>(loops::Portable);
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = loops::Avx2::new() {
        check::<_, 32>(avx2);
        check::<_, 64>(avx2);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = loops::Avx512::new() {
        check::<_, 64>(avx512);
    }
}

/// Lists of placements that fit everything: the counts are so large that bytes and words overflow.
#[test]
fn counts_that_are_too_large_are_found() {
    let (trie, columns, diagonals) = small_tree();
    let mut buffers = Buffers::<32>::new();
    let mut count = |lengths: [u32; 2]| {
        let all = lengths[0] + lengths[1];
        let lists = PlacementLists { masks: vec![0; all as usize], starts: vec![0, lengths[0], all] };
        let group = two_lanes(&trie, &lists, &diagonals);
        let mut narrow = vec![MatrixRow([0_u16; 32]); 2 * columns.len()];
        let mut wide = vec![MatrixRow([0_u32; 32]); 2 * columns.len()];
        let control = Control::default();
        let fits = Cell::join(loops::Portable, group, &mut buffers, &mut narrow, &control).unwrap();
        assert!(Cell::join(loops::Portable, group, &mut buffers, &mut wide, &control).unwrap());
        let leaves: u64 = trie.steps.iter().map(|step| step.leaves).sum();
        let sum: u64 = wide.iter().flat_map(|row| row.0).map(u64::from).sum();
        assert_eq!(sum, leaves * u64::from(all));
        let same = narrow.iter().zip(&wide).all(|(narrow, wide)| narrow.0.map(u32::from) == wide.0);
        assert_eq!(fits, same, "{lengths:?}");
        fits
    };
    assert!(count([1, 7]));
    // More than a byte holds, but not in one branch: that is counted in parts.
    assert!(count([3, 100]));
    // More than a byte holds in one branch.
    assert!(!count([5, 3_000]));
    assert!(count([2, 9]));
}

#[test]
fn counts_are_widened_at_some_places() {
    let all = [[7_u8; 32]; 6].map(MatrixRow);
    let (mut counts, mut words) = (all, [[9_u16; 32]; 6].map(MatrixRow));
    assert_eq!(loops::Portable.widen(&mut counts, &mut words, 3, &[0, 2]), (7, 16));
    let of = |at: usize, here: u16, elsewhere: u16| if at % 3 == 1 { elsewhere } else { here };
    for at in 0..6 {
        assert_eq!(words[at].0, [of(at, 16, 9); 32]);
        assert_eq!(counts[at].0.map(u16::from), [of(at, 0, 7); 32]);
    }
    // Nothing is added if one of them may be too large.
    counts[5].0[31] = u8::MAX;
    assert_eq!(loops::Portable.widen(&mut counts, &mut words, 3, &[0, 1, 2]).0, u8::MAX);
    assert_eq!(words[1].0, [9; 32]);
    assert!(counts.iter().all(|row| row.0 == [0; 32]));
}

#[test]
fn words_that_are_too_small_are_found() {
    let (mut counts, mut words) = (vec![MatrixRow([0; 32])], vec![MatrixRow([0; 32])]);
    for turn in 1..=300 {
        counts[0].0[7] = 250;
        let most = loops::Portable.widen(&mut counts, &mut words, 1, &[0]);
        let (narrow, wide): (u8, u16) = most;
        assert_eq!((narrow, wide), (250, u16::try_from(250 * turn).unwrap_or(u16::MAX)));
        assert_eq!(words[0].0[7], wide);
    }
    assert_eq!(words[0].0.iter().filter(|count| **count != 0).count(), 1);
}

#[test]
fn whoever_is_stopped_counts_nothing() {
    let (sets, control) = (row_sets(16), Control::default());
    let mut multiplier = Multiplier::new(Kernel::Portable, 1 << 30).unwrap();
    control.stop();
    assert_eq!(multiplier.count_each(&sets, 0..sets.len(), &mut |_, _| {}, &control), Err(Stopped));
    let found = multiplier.count_each(&sets, 0..sets.len(), &mut |_, _| {}, &Control::default()).unwrap();
    assert_eq!(found.weighted_solutions, 14_772_512);
}

/// Threads that share a job share its control, but each tells its own work.
#[test]
fn the_states_of_others_are_not_counted() {
    let (sets, control) = (row_sets(14), Control::default());
    let count = |control: &Control| {
        let mut multiplier = Multiplier::new(Kernel::Portable, 1 << 30).unwrap();
        multiplier.count_each(&sets, 0..sets.len(), &mut |_, _| {}, control).unwrap()
    };
    let alone = count(&Control::default());
    let both = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| count(&control)));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(both, [alone; 2]);
    assert_eq!(control.states(), 2 * alone.states);
}

/// Somebody who fails with the first product, or takes a while for each and finds nothing.
#[derive(Debug)]
struct Idle {
    fails: bool,
    begun: Option<Arc<Barrier>>,
    counted: Arc<AtomicUsize>,
    /// Row sets that were planted together, at most.
    together: Arc<AtomicUsize>,
}

impl Products for Idle {
    fn lanes(&self) -> usize {
        32
    }

    fn costs(&self) -> &'static Costs {
        &Costs::PORTABLE
    }

    fn cell_bytes(&self) -> usize {
        1
    }

    fn matrices_max(&self, memory_max: usize) -> usize {
        memory_max
    }

    fn parts_max(&self) -> usize {
        usize::MAX
    }

    fn count(&mut self, planted: &Planted<'_>, products: &[Product<'_>]) -> Result<Vec<Vec<u64>>, Stopped> {
        self.together.fetch_max(planted.row_sets.len(), Relaxed);
        // Both have something to count.
        if let Some(begun) = self.begun.take() {
            begun.wait();
        }
        if self.fails {
            return Err(Stopped);
        }
        self.counted.fetch_add(1, Relaxed);
        thread::sleep(Duration::from_millis(20));
        Ok(products.iter().map(|product| vec![0; product.row_sets.len()]).collect())
    }

    fn take_states(&mut self) -> u64 {
        0
    }

    fn fault(&self) -> Option<String> {
        self.fails.then(|| "lost".to_owned())
    }
}

#[test]
fn when_one_counter_fails_the_others_end() {
    let (sets, begun, counted) = (row_sets(18), Arc::new(Barrier::new(2)), Arc::default());
    let counter = |fails| {
        let (begun, counted) = (Some(Arc::clone(&begun)), Arc::clone(&counted));
        let idle = Idle { fails, begun, counted, together: Arc::default() };
        TileCounter::new(Box::new(idle), 1 << 30)
    };
    let mut multiplier = Multiplier { counters: [true, false].map(counter).into(), fault: None };
    let found = multiplier.count_each(&sets, 0..sets.len(), &mut |_, _| {}, &Control::default());
    assert_eq!((found, multiplier.fault()), (Err(Stopped), Some("lost")));
    let tiles = sets.tiles(0..sets.len()).count();
    assert!(counted.load(Relaxed) < tiles / 2, "{counted:?} of {tiles} tiles");
}

#[test]
fn no_more_row_sets_are_counted_at_once_than_memory_allows() {
    let sets = row_sets(12);
    let together = |memory_max| {
        let (counted, together) = (Arc::default(), Arc::<AtomicUsize>::default());
        let idle = Idle { fails: false, begun: None, counted, together: Arc::clone(&together) };
        let mut multiplier = Multiplier::with(Box::new(idle), memory_max);
        multiplier.count_each(&sets, 0..sets.len(), &mut |_, _| {}, &Control::default()).unwrap();
        together.load(Relaxed)
    };
    let block = sets.tiles(0..sets.len()).map(|tile| tile.block.len()).max().unwrap();
    assert_eq!([1, 1 << 30].map(together), [1, block]);
    assert!((2..block).contains(&together(1 << 12)));
}
