//! Drivers as bad as OpenCL allows, and devices that fail: a board is counted right, or fails with a clear line. `hostile.c`
//! stands before PoCL; it is told by the environment what to do, so each trouble has a process of its own.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use nqueens_gpu::{devices, engine};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Control;
use nqueens_kernel::known::published;
use nqueens_kernel::plan::{Plan, PlanKind};
use nqueens_kernel::solver::Solver;
use nqueens_kernel::symmetric::symmetric_counts;

const BOARDS: [(u32, PlanKind); 3] = [(8, PlanKind::Colours), (9, PlanKind::Border), (10, PlanKind::Colours)];

/// Counts small boards by a new engine, or says why that fails.
fn count() -> Result<(), String> {
    let device = devices().map_err(|reason| reason.to_string())?.devices[0];
    let mut solver = Solver::new(engine(device, 1).map_err(|fault| fault.to_string())?, 0);
    for (n, plan) in BOARDS {
        let n = BoardSize::new(n).expect("a board");
        let counted = solver.count_jobs(Plan::new(n, plan).jobs(), &Control::default());
        let (totals, _) = counted.map_err(|_| solver.fault().expect("nobody stops it").to_owned())?;
        let symmetric = symmetric_counts(n, &Control::default()).expect("nobody stops it");
        assert_eq!(totals.sorted(symmetric), Ok(published(n).expect("published").orbits), "{n} by {plan}");
    }
    Ok(())
}

#[test]
#[ignore = "for the processes that others start"]
fn rounds() {
    let rounds = std::env::var("ROUNDS").expect("set").parse::<u32>().expect("a number");
    for round in 1..=rounds {
        let outcome = count();
        println!("round {round}: {}", outcome.err().unwrap_or_else(|| "exact".to_owned()));
    }
}

/// What came of so many rounds with a trouble; `None` where there is no PoCL.
fn outcomes(trouble: &str, rounds: u32) -> Option<Vec<String>> {
    let pocl = Path::new("/etc/OpenCL/vendors/pocl.icd");
    if !pocl.exists() {
        assert!(std::env::var_os("NO_SKIPS").is_none(), "PoCL is needed here");
        // Past the test harness, which keeps what a passing test prints to itself.
        writeln!(std::io::stderr(), "\nSKIPPED: {trouble}: PoCL is not here\n").expect("stderr");
        return None;
    }
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{trouble}.so"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hostile.c");
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", source, "-o"];
    assert!(Command::new("cc").args(flags).arg(&library).status().expect("a compiler").success());
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--ignored", "--exact", "rounds", "--nocapture"]);
    command.env("OPENCL_DYLIB_PATH", &library).env("OCL_ICD_VENDORS", pocl);
    let outcome =
        command.env("HOSTILE", trouble).env("ROUNDS", rounds.to_string()).output().expect("it runs");
    let [said, failed] =
        [outcome.stdout, outcome.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(outcome.status.success(), "{said}{failed}");
    // The first line has the harness's own words before it.
    let said =
        said.lines().filter_map(|line| Some(line.split_once("round ")?.1.split_once(": ")?.1.to_owned()));
    let said: Vec<_> = said.collect();
    assert_eq!(said.len(), rounds as usize, "{said:?}");
    Some(said)
}

#[test]
fn writes_that_land_late_and_launches_that_begin_late_change_nothing() {
    let Some(outcomes) = outcomes("late", 2) else { return };
    assert!(outcomes.iter().all(|outcome| outcome == "exact"), "{outcomes:?}");
}

/// What a device without memory for one buffer, or a launch without resources, may come to. Sooner or later all is counted.
fn fails_with(trouble: &str, rounds: u32, faults: &[&str]) {
    let Some(outcomes) = outcomes(trouble, rounds) else { return };
    let is_clear = |outcome: &String| faults.iter().any(|fault| outcome.starts_with(fault));
    let (exact, failed): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| *outcome == "exact");
    assert!(failed.len() >= 3 && failed.iter().all(|outcome| is_clear(outcome)), "{failed:?}");
    assert!(!exact.is_empty() && outcomes.last() == exact.last().copied(), "{outcomes:?}");
}

#[test]
fn a_buffer_without_memory_is_a_clear_fault() {
    fails_with("memory", 40, &["the device has no memory left"]);
}

#[test]
fn a_launch_without_resources_is_a_lost_device() {
    fails_with("resources", 20, &["the device is lost: CL_OUT_OF_RESOURCES"]);
}

#[test]
fn a_device_that_is_gone_is_lost_whatever_is_called() {
    let faults = ["the device is lost: ", "OpenCL fails: the driver ", "an OpenCL driver"];
    fails_with("gone", 30, &faults);
}
