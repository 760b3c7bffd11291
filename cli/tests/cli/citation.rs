//! How to cite the program.

use std::fs;

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
