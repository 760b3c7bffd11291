//! Devices, of which PoCL makes one of any processor.

use std::sync::LazyLock;

use nqueens_faults::process::Background;

use crate::http::{get, page_of, skip};
use crate::processes::{Coordinator, end_well, eventually};
use crate::{NO_DEVICES, Place};

/// What the doctor says; asked once, for it tests each device.
fn doctor() -> &'static str {
    static DOCTOR: LazyLock<String> = LazyLock::new(|| Place::new().stdout("doctor"));
    &DOCTOR
}

/// Whether there is a device. Where there is none the test is skipped.
fn has_device() -> bool {
    let doctor = doctor();
    let found = doctor.lines().any(|line| line.starts_with("device 0 ") && line.contains("passed its test"));
    if !found {
        let why =
            doctor.lines().find(|line| line.starts_with("OpenCL ")).unwrap_or_else(|| panic!("{doctor}"));
        skip(&format!("an OpenCL device, such as PoCL ({why})"));
    }
    found
}

#[test]
fn a_device_counts_alone_and_beside_threads() {
    if !has_device() {
        return;
    }
    let place = Place::new();
    for plan in ["rows", "border", "colours"] {
        let run = place.json(&format!("run 14 --kernel opencl --plan {plan} --db {plan}.db --json"));
        let counts =
            ["total", "count2", "count4", "count8", "kernel", "check"].map(|name| run[name].as_str());
        assert_eq!(counts, ["365596", "0", "105", "45647", "opencl", "published"].map(Some), "{plan}");
        assert_eq!(place.ask(&format!("{plan}.db"), "SELECT DISTINCT kernel FROM result"), ["opencl"]);
    }
    let both =
        place.json("run 13 --kernel scalar --device 0 --plan border --job-states 20000 --db both.db --json");
    assert_eq!(both["total"], "73712");
    let mut kernels: Vec<_> = both["kernel"].as_str().expect("names").split(" + ").collect();
    kernels.sort_unstable();
    assert_eq!(
        kernels,
        place.ask("both.db", "SELECT DISTINCT kernel FROM result ORDER BY 1"),
        "those that counted"
    );
    let missing = place.failure("run 9 --device 0,77");
    assert!(missing.starts_with("there is no device 77: 'nqueens doctor' lists "), "{missing}");
    let bench = place.json("bench 12 --kernel opencl --json");
    assert_eq!((&bench["total"], &bench["kernel"]), (&"14200".into(), &"opencl-0".into()));
}

#[test]
fn auto_leaves_processors_alone_and_says_nothing_without_opencl() {
    let place = Place::new();
    let run = place.run_with(&[NO_DEVICES], "run 10 --device auto --json --db without.db");
    assert_eq!((run.code, &*run.said()), (0, ""), "{}", run.stdout);
    if !has_device() {
        return;
    }
    for arguments in ["run 10 --device auto --json", "bench 10 --kernel scalar --device auto --json"] {
        let said = place.run(arguments);
        assert_eq!(said.code, 0, "{}", said.stderr);
        let told = said.said();
        let decisions: Vec<_> = told.lines().collect();
        let is_decision = |line: &&str| line.starts_with("nqueens: device ");
        assert!(!decisions.is_empty() && decisions.iter().all(is_decision), "{}", said.stderr);
        // A GPU, if there is one, may be faster or not.
        let mut pocl = decisions.iter().filter(|line| line.contains("(pthread") || line.contains("(cpu"));
        assert!(pocl.all(|line| line.ends_with(" is left alone: it is a processor")), "{}", said.stderr);
        let takes_none = decisions.iter().all(|line| line.contains(" is left alone: "));
        assert_eq!(said.stdout.contains("opencl"), !takes_none, "{}", said.stdout);
    }
}

/// PoCL alone is asked for devices, and can be told to hide them, or to compile nothing.
#[test]
fn a_device_that_is_hidden_or_cannot_compile_says_why() {
    const POCL: (&str, &str) = ("OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd");
    let place = Place::new();
    if !std::path::Path::new(POCL.1).exists() {
        return skip("PoCL");
    }
    let hidden = place.run_with(&[POCL, ("POCL_DEVICES", "none")], "doctor");
    let says = "OpenCL            OpenCL is here, but its drivers find no device: ";
    assert_eq!(hidden.code, 0, "{}", hidden.stderr);
    assert!(hidden.stdout.lines().any(|line| line.starts_with(says)), "{}", hidden.stdout);
    let broken = [POCL, ("POCL_EXTRA_BUILD_FLAGS", "-include /there/is/none.h")];
    let why = "the device is lost: its compiler says: ";
    let doctor = place.run_with(&broken, "doctor");
    let device = doctor.stdout.lines().find(|line| line.starts_with("device 0 ")).expect("it is listed");
    assert_eq!(doctor.code, 1);
    assert!(device.contains(&format!("; FAILED: {why}")), "{device}");
    let run = place.run_with(&broken, "run 8 --kernel opencl");
    assert!(run.code == 1 && run.stderr.contains(why), "{}", run.stderr);
}

/// A layer before PoCL ends the process, when it looks for devices or later when it tests one. Nobody else ends.
#[test]
fn a_driver_that_crashes_ends_no_command() {
    if !has_device() {
        return;
    }
    let place = Place::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/gpu/tests/hostile.c");
    let library = place.path("hostile.so");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-std=c11", "-shared", "-fPIC", "-pthread", source, "-o"]).arg(&library);
    assert!(compiler.status().expect("a compiler").success());
    let library = library.to_str().expect("UTF-8");
    let crash = |at| [("OPENCL_DYLIB_PATH", library), ("HOSTILE", "crash"), ("HOSTILE_AT", at)];
    let why = "a driver fails in a process of its own: signal: 6";

    let doctor = place.run_with(&crash("1"), "doctor");
    assert_eq!(doctor.code, 0, "{}", doctor.stderr);
    assert!(doctor.stdout.contains(&format!("OpenCL            OpenCL fails: {why}")), "{}", doctor.stdout);
    let run = place.run_with(&crash("1"), "run 10 --device auto --json --db auto.db");
    assert!(run.code == 0 && run.stdout.contains(r#""total":"724""#), "{}", run.stderr);
    assert!(run.stderr.starts_with(&format!("nqueens: OpenCL fails: {why}")), "{}", run.stderr);

    let doctor = place.run_with(&crash("100"), "doctor");
    assert_eq!(doctor.code, 1, "{}", doctor.stderr);
    assert!(doctor.stdout.contains(&format!("; FAILED: {why}")), "{}", doctor.stdout);
    let run = place.run_with(&crash("100"), "run 10 --device 0 --db asked.db");
    assert!(run.code == 1 && run.stderr.contains(why), "{}", run.stderr);
}

#[test]
fn a_device_beside_threads_is_named_with_its_driver() {
    if !has_device() {
        return;
    }
    let place = Place::new();
    let device =
        doctor().lines().find_map(|line| line.strip_prefix("device 0          ")).expect("it is there");
    let (name, rest) = device.split_once(", driver ").expect("it has a driver");
    let driver = rest.split(", ").next().expect("its version");
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let arguments = coordinator.worker_arguments("http", "both", "both").replace(" --kernel scalar", "");
    let worker = Background::start(&mut place.command(&format!("{arguments} --device 0")));
    let told = eventually("it is there", || {
        let all = place.json(&format!("workers --json --coordinator {}", coordinator.url()));
        all["workers"][0]["device"].as_str().map(str::to_owned)
    });
    // A long name is cut, and so is what follows: the instruction sets of the processor.
    let (found, rest) = told.split_once(&format!(", driver {driver}")).unwrap_or_else(|| panic!("{told}"));
    assert!(name.starts_with(found) && found.len() >= 5 && rest.starts_with(" + "), "{told}: {device}");
    end_well(worker);
    assert_eq!(coordinator.stop().code, 0);
}

/// Each job is counted by two families: on the device, and by a processor.
#[test]
fn a_device_and_processors_check_each_other_in_a_cluster() {
    if !has_device() {
        return;
    }
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let url = coordinator.url();
    let arguments = |name: &str| coordinator.worker_arguments("http", name, name);
    let device = arguments("device").replace("scalar", "opencl");
    let workers = [device, arguments("west"), arguments("east")];
    let workers = workers.map(|arguments| Background::start(&mut place.command(&arguments)));
    eventually("all are there", || {
        let all = place.json(&format!("workers --json --coordinator {url}"));
        (all["workers"].as_array()?.len() == 3).then_some(())
    });
    let run = coordinator.submit(&place, "16 --plan border --job-states 5000000 --replicate 100");
    place.stdout(&format!("watch {run} --coordinator {url}"));
    let done = &place.json(&format!("status {run} --coordinator {url} --json"))["runs"][0];
    assert_eq!((&done["total"], &done["state"]), (&"14772512".into(), &"done".into()));
    let listed = place.json(&format!("workers --all --json --coordinator {url}"));
    let listed = listed["workers"].as_array().expect("a list");
    let of_device = listed.iter().find(|worker| worker["name"] == "device").expect("listed");
    assert_eq!(of_device["kernels"][0], "opencl");
    assert!(of_device["device"].as_str().is_some_and(|device| device.contains("driver")), "{of_device}");
    let metrics = get(&page_of(&coordinator), "/metrics").body;
    let is_told = |line: &str| line.starts_with("nqueens_workers_by_device{") && line.contains("driver");
    assert!(metrics.lines().any(|line| is_told(line) && line.contains(r#"kernel="opencl""#)), "{metrics}");
    workers.into_iter().for_each(end_well);
    assert_eq!(coordinator.stop().code, 0);
    let ledger = place.run(&format!("export {run} --db queens.db --format ledger")).stdout;
    let says = |text: &str| text.contains("pthread") || text.contains("driver");
    assert!(ledger.lines().any(|line| line.starts_with(r#"{"line":"worker""#) && says(line)), "{ledger}");
    let report = place.stdout("report --db queens.db");
    assert!(report.lines().any(|line| line.contains("Devices") && says(line)), "{report}");
    // While there is other work, second counts are of another family; at the end there may be none. A few are the coordinator's.
    let query = "SELECT count(*) FROM result AS first JOIN result AS second USING (run, job)
                 WHERE first.verdict = 'accepted' AND second.verdict = 'duplicate'
                   AND first.kernel = second.kernel";
    let alike: u32 = place.ask("queens.db", query)[0].parse().expect("a number");
    let jobs: u32 = place.ask("queens.db", "SELECT count(*) FROM job")[0].parse().expect("a number");
    assert!(jobs >= 20 && 2 * alike < jobs, "{alike} of {jobs}");
    let kernels = place.ask("queens.db", "SELECT DISTINCT kernel FROM result ORDER BY kernel");
    assert!(kernels.contains(&"opencl".to_owned()) && kernels.contains(&"scalar".to_owned()), "{kernels:?}");
}
