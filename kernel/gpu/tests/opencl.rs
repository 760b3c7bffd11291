//! The very program for devices, on every device of this machine, held equal to the engines for CPUs. PoCL is a device
//! that any CPU has.

#[path = "../../tests/kernel/boards.rs"]
mod boards;

use std::cell::RefCell;
use std::io::Write;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use nqueens_gpu::{Device, devices, engine};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::{Control, Engine, Kernel, Stopped, Tally};
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::random::Random;
use nqueens_kernel::solver::Solver;
use nqueens_kernel::subproblem::{OpenRow, Subproblem};
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_kernel::unit::Unit;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use boards::boards;

/// Tests take turns: each keeps all of the device busy.
static TURN: Mutex<()> = Mutex::new(());

fn found() -> (MutexGuard<'static, ()>, Vec<Device>) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match devices() {
        Ok(found) => (turn, found.devices),
        Err(reason) => {
            assert!(std::env::var_os("NO_SKIPS").is_none(), "{reason}");
            skip(&reason.to_string());
            (turn, Vec::new())
        }
    }
}

fn skip(reason: &str) {
    let test = thread::current().name().unwrap_or_default().to_owned();
    // Past the test harness, which keeps what a passing test prints to itself.
    writeln!(std::io::stderr(), "\nSKIPPED: {test}: {reason}\n").expect("stderr");
}

/// Runs tests of this file in a process that knows this driver alone; returns what it says.
fn by_driver(driver: &Path, settings: &[(&str, &str)], tests: &[&str]) -> String {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(tests).env("OCL_ICD_VENDORS", driver).env("NO_SKIPS", "1").envs(settings.iter().copied());
    let outcome = command.output().expect("it runs");
    let said = [outcome.stdout, outcome.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(outcome.status.success(), "{}", said.concat());
    said.concat()
}

fn board(n: u32) -> BoardSize {
    BoardSize::new(n).expect("a board")
}

fn count(engine: &mut dyn Engine, boards: &[Subproblem]) -> Vec<u64> {
    let mut tallies = vec![Tally::default(); boards.len()];
    let control = Control::default();
    for (boards, tallies) in boards.chunks(engine.batch_max()).zip(tallies.chunks_mut(engine.batch_max())) {
        engine.count_batch(boards, tallies, &control).unwrap_or_else(|_| panic!("{:?}", engine.fault()));
    }
    let states: u64 = tallies.iter().map(|tally| tally.states).sum();
    assert_eq!(states, control.states());
    tallies.iter().map(|tally| tally.completions).collect()
}

fn whole_boards(numbers: RangeInclusive<u32>, threads: usize) {
    let (_turn, devices) = found();
    for device in devices {
        let mut solver = Solver::new(engine(device, threads).expect("an engine"), 0);
        for n in numbers.clone() {
            let known = published(board(n)).expect("published");
            for kind in [PlanKind::Rows, PlanKind::Border, PlanKind::Colours] {
                let control = Control::default();
                let (totals, _) =
                    solver.count_jobs(Plan::new(board(n), kind).jobs(), &control).expect("nobody stops it");
                let symmetric = symmetric_counts(board(n), &control).expect("nobody stops it");
                assert_eq!(totals.sorted(symmetric), Ok(known.orbits), "N = {n} by {kind}");
            }
        }
    }
}

/// Alone, for a device that looks at each access to its memory, and runs one launch at a time.
#[test]
fn small_boards_by_each_plan() {
    whole_boards(5..=9, 1);
}

/// By several threads, and larger ones.
#[test]
fn boards_by_each_plan_and_several_threads() {
    whole_boards(5..=14, 4);
}

#[test]
fn every_border_board_is_counted_as_by_the_cpu() {
    let (_turn, devices) = found();
    for device in devices {
        let mut device = engine(device, 2).expect("an engine");
        let mut cpu = Kernel::best().engine().expect("it runs everywhere");
        for n in 5..=13 {
            let jobs = Plan::new(board(n), PlanKind::Border).jobs();
            let units: Vec<_> = jobs.flat_map(|job| job.units(false)).collect();
            let boards: Vec<_> = units.iter().filter_map(Unit::board).cloned().collect();
            assert!(!boards.is_empty());
            assert_eq!(count(&mut *device, &boards), count(&mut *cpu, &boards), "N = {n}");
        }
    }
}

#[test]
fn any_boards_with_gaps_and_masks() {
    let (_turn, devices) = found();
    for device in devices {
        let device = RefCell::new(engine(device, 2).expect("an engine"));
        let cpu = RefCell::new(Kernel::Portable.engine().expect("it runs everywhere"));
        let config = ProptestConfig {
            cases: 40,
            rng_seed: RngSeed::Fixed(8),
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let outcome = TestRunner::new(config).run(&prop::collection::vec(boards(9), 0..40), |boards| {
            prop_assert_eq!(
                count(&mut **device.borrow_mut(), &boards),
                count(&mut **cpu.borrow_mut(), &boards)
            );
            Ok(())
        });
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Open rows of N = 24, with the cells of a solution and up to six more in each.
fn deep_board(open: usize, random: &mut Random) -> Subproblem {
    let solution = (1..24).step_by(2).chain((0..24).step_by(2));
    let mut rows: Vec<(u8, u32)> = (0..).zip(solution).collect();
    while rows.len() > open {
        rows.remove(random.index(rows.len()));
    }
    let free = rows.iter().fold(0_u32, |free, (_, column)| free | 1 << column);
    let mut allowed = |column| (0..6).fold(1_u32 << column, |cells, _| cells | 1 << random.below(24));
    let rows: Vec<_> = rows.iter().map(|&(row, column)| OpenRow { row, allowed: allowed(column) }).collect();
    Subproblem::new(board(24), free, &rows).expect("a real board")
}

/// A device gets 14 rows at most: the host cuts those before, and the stems that these have in common.
#[test]
fn boards_with_more_rows_than_a_device_takes() {
    let (_turn, devices) = found();
    let mut random = Random::new(24);
    let boards: Vec<_> =
        (15..=23).flat_map(|open| [open; 3]).map(|open| deep_board(open, &mut random)).collect();
    let mut cpu = Kernel::best().engine().expect("it runs everywhere");
    for device in devices {
        let found = count(&mut *engine(device, 2).expect("an engine"), &boards);
        assert_eq!(found, count(&mut *cpu, &boards));
        assert!(found.iter().all(|completions| *completions > 0), "{found:?}");
    }
}

/// What each orbit of a range has.
fn orbits(solver: &mut Solver, sets: &RowSets, range: Range<u64>) -> Vec<u64> {
    let mut all = vec![0; usize::try_from(range.end - range.start).expect("few")];
    let mut found =
        |number: u64, solutions| all[usize::try_from(number - range.start).expect("few")] += solutions;
    let multiplier = solver.multiplier().expect("it multiplies");
    let tally = multiplier.count_each(sets, range.clone(), &mut found, &Control::default());
    let sum = tally.unwrap_or_else(|_| panic!("{:?}", solver.fault())).weighted_solutions;
    assert_eq!(sum, all.iter().sum::<u64>());
    all
}

#[test]
fn every_row_set_of_small_boards_and_some_of_larger_ones() {
    let (_turn, devices) = found();
    for device in devices {
        let mut device = Solver::new(engine(device, 1).expect("an engine"), 1 << 28);
        let mut cpu = Solver::new(Kernel::best().engine().expect("the best"), 1 << 28);
        let mut random = Random::new(17);
        for n in 4..=20 {
            let sets = RowSets::new(board(n)).expect("large enough");
            let (starts, length) = if n <= 14 {
                (vec![0], sets.len())
            } else {
                ((0..if n > 17 { 2 } else { 10 }).map(|_| random.below(sets.len())).collect(), 2)
            };
            for start in starts {
                let range = start..sets.len().min(start + length);
                let [found, expected] =
                    [&mut device, &mut cpu].map(|solver| orbits(solver, &sets, range.clone()));
                assert_eq!(found, expected, "N = {n}, {range:?}");
            }
        }
    }
}

#[test]
fn who_is_stopped_stops_and_counts_right_afterwards() {
    let (_turn, devices) = found();
    for device in devices {
        let mut engine = engine(device, 1).expect("an engine");
        let control = Control::default();
        let large = [Subproblem::empty(board(24))];
        let outcome = thread::scope(|scope| {
            let counting = scope.spawn(|| engine.count(&large[0], &control));
            while control.states() == 0 && !counting.is_finished() {
                thread::yield_now();
            }
            control.stop();
            counting.join().expect("no panic")
        });
        assert_eq!((outcome, engine.fault()), (Err(Stopped), None));
        assert_eq!(count(&mut *engine, &[Subproblem::empty(board(12))]), [14_200]);
    }
}

/// Intel's runtime for processors; the variable names its libintelocl.so. It vectorises, and keeps to the specification by
/// other means than PoCL.
#[test]
fn intels_runtime_counts_the_same() {
    let Some(driver) = std::env::var_os("INTEL_OPENCL") else {
        return skip("INTEL_OPENCL does not name Intel's libintelocl.so");
    };
    let others = ["--skip", "intels_runtime", "--skip", "oclgrind"];
    let said = by_driver(Path::new(&driver), &[], &others);
    assert!(said.contains("test result: ok. 7 passed"), "{said}");
}

/// Oclgrind looks at each access to memory, and at each call.
#[test]
fn oclgrind_finds_no_race_and_nothing_out_of_bounds() {
    let driver = Path::new("/usr/lib/oclgrind/liboclgrind-rt-icd.so");
    if !driver.exists() {
        assert!(std::env::var_os("NO_SKIPS").is_none(), "oclgrind is needed here");
        return skip("oclgrind is not here");
    }
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oclgrind.log");
    let settings = [
        ("OCLGRIND_LOCAL_MEM_SIZE", "65536"),
        ("OCLGRIND_DATA_RACES", "1"),
        ("OCLGRIND_CHECK_API", "1"),
        ("OCLGRIND_LOG", log.to_str().expect("UTF-8")),
    ];
    let said = by_driver(driver, &settings, &["--exact", "small_boards_by_each_plan"]);
    assert!(said.contains("test result: ok. 1 passed"), "{said}");
    assert_eq!(std::fs::read_to_string(&log).expect("its log"), "", "what it found");
}
