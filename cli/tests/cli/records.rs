//! `docs/records.md`: no slip of the pen in a total, and each command counts the board of its row.

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;

#[test]
fn totals_are_the_published_ones() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/records.md"));
    let page = page.expect("the page");
    let rows = page.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let board = |row: &[&str]| row.get(1)?.trim_start_matches("N = ").parse::<u32>().ok();
    let records: Vec<_> = rows.filter_map(|row| Some((board(&row)?, row))).collect();
    assert!(records.len() >= 20, "{page}");
    for (n, row) in records {
        let known = published(BoardSize::new(n).expect("a board"));
        if let Some(known) = known {
            assert_eq!(row[2].replace(',', ""), known.total.to_string(), "N = {n}");
        }
        if !row[1].starts_with("N = ") {
            assert_eq!(row[6], format!("`nqueens run {n}`"));
        }
    }
}
