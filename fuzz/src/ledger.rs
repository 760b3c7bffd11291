//! A ledger that somebody offers as evidence.

use nqueens_evidence::sample::Sample;
use nqueens_evidence::verify::verify;
use nqueens_kernel::engine::Control;
use nqueens_kernel::known::published;

/// Larger boards may take their time to plan, and to count their symmetric solutions.
const N_MAX: u64 = 10;

/// Whatever the file says, there is a report; and where no check failed, the total stands in it.
pub(crate) fn check(bytes: &[u8]) {
    if board(bytes).is_some_and(|n| n > N_MAX) {
        return;
    }
    let report = verify(bytes, &mut Sample::new(3, 1), &Control::default()).expect("bytes can be read");
    assert!(!report.findings.is_empty(), "there is always something to say");
    if report.passed() {
        let header = report.header.expect("a ledger that passes has a first line");
        let total = report.outcome.expect("and all of its jobs").total;
        assert_eq!(total, header.total);
        if header.cells.is_none() {
            assert_eq!(Some(total), published(header.n).map(|known| known.total));
        }
    }
}

/// The board's size, as far as it can be told without reading the file in earnest.
fn board(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    let after = text.split("\"n\"").skip(1);
    after
        .filter_map(|rest| {
            let digits = rest.trim_start_matches([' ', ':', '\t']);
            let end = digits.find(|one: char| !one.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().ok()
        })
        .max()
}
