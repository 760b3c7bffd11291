//! The commands of the README and of the tutorial do what the pages say.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Place;
use crate::http::skipped;

#[test]
fn the_readme_works_as_written() {
    works_as_written("README.md");
}

#[test]
fn the_tutorial_works_as_written() {
    works_as_written("docs/tutorial.md");
}

/// Runs all blocks of shell commands on a page in one shell, which ends at the first that fails. Every block of text below
/// one is what it prints, line by line, with any number of spaces. The shell has a network of its own, so that ports are
/// free, and takes all that it started along when it ends.
fn works_as_written(page: &str) {
    let alone = ["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--"];
    let probe = Command::new("unshare").args(alone).args(["ip", "link", "set", "lo", "up"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skipped("the right to make a network of its own, and ip");
    }
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page))
        .expect("the page");
    let mut script = "set -euo pipefail\nip link set lo up\n".to_owned();
    let mut shown = Vec::new();
    for block in text.split("\n```").skip(1).step_by(2) {
        match block.split_once('\n') {
            Some(("sh", commands)) => script.extend([commands, "\n"]),
            Some(("text", output)) => shown.extend(output.lines().map(words)),
            _ => {}
        }
    }
    assert!(!shown.is_empty(), "{page} shows nothing");

    let place = Place::new();
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_nqueens")).parent().expect("its folder").to_owned();
    let path = std::env::join_paths(
        [folder].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").expect("a path"))),
    );
    let output = Command::new("unshare")
        .args(alone)
        .args(["bash", "-c", &script])
        .env("PATH", path.expect("a path"))
        .current_dir(place.path("."))
        .output()
        .expect("a shell");
    let printed = String::from_utf8_lossy(&output.stdout);
    let told = format!("{page} printed\n{printed}\nand said\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    let mut printed = printed.lines().map(words);
    for line in shown {
        assert!(printed.any(|other| other.contains(&line)), "{line:?} is missing: {told}");
    }
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}
