//! Documents and examples that are written by hand: no slip of the pen in a total, a version or a command.

use std::fs;
use std::path::Path;
use std::process::Command;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;

/// A file of the repository.
fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).expect(path)
}

/// The published total of a board, if there is one.
fn total(n: u32) -> Option<String> {
    published(BoardSize::new(n).expect("a board")).map(|known| known.total.to_string())
}

#[test]
fn records_have_the_published_totals_and_commands_of_their_boards() {
    let page = read("docs/records.md");
    let rows = page.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let board = |row: &[&str]| row.get(1)?.trim_start_matches("N = ").parse::<u32>().ok();
    let records: Vec<_> = rows.filter_map(|row| Some((board(&row)?, row))).collect();
    assert!(records.len() >= 20, "{page}");
    for (n, row) in records {
        let told = row[2].replace(',', "");
        assert_eq!(total(n).unwrap_or_else(|| told.clone()), told, "N = {n}");
        assert!(row[1].starts_with("N = ") || row[6] == format!("`nqueens run {n}`"), "{row:?}");
    }
}

#[test]
fn the_citation_is_of_this_version() {
    let citation = read("CITATION.cff");
    let version = concat!("version: ", env!("CARGO_PKG_VERSION"));
    for begin in [
        "cff-version: 1.2.0",
        "title: nqueens",
        version,
        "  - MIT",
        "  - Apache-2.0",
        "message: ",
        "authors:",
    ] {
        assert!(citation.lines().any(|line| line.starts_with(begin)), "{begin}");
    }
}

#[test]
fn the_example_of_the_method_counts_right() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/colours.py");
    let output = Command::new("python3").args([script, "12"]).output().expect("python3 runs");
    let expected = (4..=12).map(|n| format!("{n} {}\n", total(n).expect("published")));
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected.collect::<String>());
}
