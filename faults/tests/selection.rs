//! A short selection: one deck of all faults that can be had here, and a mob for some seconds.

use std::path::PathBuf;
use std::process::Command;

/// The program under test, as cargo builds it beside this crate's own. Where all tests of the workspace run, it is there
/// already.
fn nqueens() -> PathBuf {
    let mut build = Command::new(env!("CARGO"));
    build.args(["test", "--workspace", "--no-run", "--quiet"]);
    // Not what cargo says of this package: ring's build script looks at that, and all that needs ring would be compiled again.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_"]
            .iter()
            .any(|of_package| name.to_string_lossy().starts_with(of_package))
        {
            build.env_remove(name);
        }
    }
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo").success());
    PathBuf::from(env!("CARGO_BIN_EXE_nqueens-faults")).with_file_name("nqueens")
}

#[test]
fn a_selection_of_faults_leaves_every_count_exact() {
    let campaign = "--seed 6 --rounds 15 --n 15 --job-states 20000 --workers 3";
    let mut faults = Command::new(env!("CARGO_BIN_EXE_nqueens-faults"));
    faults.args(campaign.split(' ')).arg("--program").arg(nqueens());
    assert!(faults.status().expect("it starts").success());
}

#[test]
fn a_mob_leaves_every_count_exact_and_nobody_honest_distrusted() {
    for more in ["--seed 3 --seconds 10", "--seed 4 --seconds 5 --idle 300 --tls"] {
        let mut mob = Command::new(env!("CARGO_BIN_EXE_nqueens-faults"));
        mob.args("mob --n 14 --job-states 20000".split(' ').chain(more.split(' ')));
        assert!(mob.arg("--program").arg(nqueens()).status().expect("it starts").success(), "{more}");
    }
}
