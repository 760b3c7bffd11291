//! Numbers and times as people read them.

use std::fmt::Display;
use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;

/// Runs a short conversation with a database or a coordinator.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("starting the runtime")?.block_on(future)
}

/// Prints a line to stdout. A reader that has gone is an error here, where `println!` would panic.
pub(crate) fn print_line(line: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{line}")
}

/// A whole number with separators between thousands: `14,772,512`.
pub(crate) fn thousands(number: impl ToString) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A duration as the classic tables print it: `hh:mm:ss.ms`, in hundredths of a second.
pub(crate) fn hours(time: Duration) -> String {
    let (seconds, hundredths) = (time.as_secs(), time.subsec_millis() / 10);
    format!("{:02}:{:02}:{:02}.{hundredths:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(
            ["0", "92", "724", "2680", "14772512"].map(thousands),
            ["0", "92", "724", "2,680", "14,772,512"]
        );
        assert_eq!(hours(Duration::from_millis(0)), "00:00:00.00");
        assert_eq!(hours(Duration::from_millis(100 * 3_600_000 + 62_349)), "100:01:02.34");
    }
}
