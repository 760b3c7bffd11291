//! How to cite the program, and its method.

use std::fs;
use std::process::Command;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;

#[test]
fn the_citation_is_of_this_version() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../CITATION.cff");
    let citation = fs::read_to_string(file).expect("the citation");
    for line in [
        "cff-version: 1.2.0",
        "title: nqueens",
        concat!("version: ", env!("CARGO_PKG_VERSION")),
        "  - MIT",
        "  - Apache-2.0",
    ] {
        assert!(citation.lines().any(|it| it == line), "{line}");
    }
    for key in ["message: ", "authors:"] {
        assert!(citation.lines().any(|line| line.starts_with(key)), "{key}");
    }
}

#[test]
fn the_example_of_the_method_counts_right() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/colours.py");
    let output = Command::new("python3").args([script, "12"]).output().expect("python3 runs");
    let expected = (4..=12).map(|n| {
        let known = published(BoardSize::new(n).expect("a board")).expect("published");
        format!("{n} {}\n", known.total)
    });
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected.collect::<String>());
}
