//! Estimated values, with their confidence intervals.

/// An estimate with its 95 % confidence interval. All numbers are finite, none is negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
}

impl Interval {
    /// Applies a function to each of its numbers.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { value: change(self.value), low: change(self.low), high: change(self.high) }
    }

    /// A time in seconds, for people: `3h20m (2h50m..3h55m)`.
    pub fn describe_time(self) -> String {
        format!("{} ({}..{})", span(self.value), span(self.low), span(self.high))
    }

    /// A count, for people: `2.6902e12 (2.6523e12..2.7313e12)`.
    pub fn describe_count(self) -> String {
        format!("{:.4e} ({:.4e}..{:.4e})", self.value, self.low, self.high)
    }
}

/// A whole number with separators between thousands: `14,772,512`.
pub fn thousands(number: impl ToString) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// A number that need not be exact: `0.0123`, `4.50`, `14,772,512`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub fn quantity(number: f64) -> String {
    if number >= 1e3 {
        return thousands(number.round() as u128);
    }
    let before_point = if number > 0.0 { number.log10().floor() } else { 2.0 };
    let decimals = (2.0 - before_point).clamp(0.0, 12.0) as usize;
    format!("{number:.decimals$}")
}

/// A share of the work for people: `42.3 %`. What is not done is never all.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", if share < 1.0 { (100.0 * share).min(99.9) } else { 100.0 })
}

/// A time span in its two largest units: `3h20m`, `72y323d`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub fn span(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (365.., ..) => format!("{}y{:03}d", days / 365, days % 365),
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, ..) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            ["0", "92", "724", "2680", "14772512"].map(thousands),
            ["0", "92", "724", "2,680", "14,772,512"]
        );
        assert_eq!(
            [0.0, 1.234e-5, 0.5, 45.67, 999.4, 14_772_512.3].map(quantity),
            ["0", "0.0000123", "0.500", "45.7", "999", "14,772,512"]
        );
    }

    #[test]
    fn what_is_not_done_is_never_all() {
        assert_eq!(
            [0.0, 0.4236, 0.999_4, 0.999_96, 1.0].map(percent),
            ["0.0 %", "42.4 %", "99.9 %", "99.9 %", "100.0 %"]
        );
    }

    #[test]
    fn spans_are_short_and_readable() {
        let seconds =
            [0.2, 59.0, 61.0, 3_599.0, 3_600.0, 86_399.0, 86_400.0, 1e6, 31_536_000.0, 2_298_574_800.0];
        let texts =
            ["0s", "59s", "1m01s", "59m59s", "1h00m", "23h59m", "1d00h", "11d13h", "1y000d", "72y323d"];
        assert_eq!(seconds.map(span), texts);
        let time = Interval { value: 12_000.0, low: 10_200.0, high: 14_100.0 };
        assert_eq!(time.describe_time(), "3h20m (2h50m..3h55m)");
        let count = Interval { value: 92.0, low: 8.0, high: 2.691e12 };
        assert_eq!(count.describe_count(), "9.2000e1 (8.0000e0..2.6910e12)");
    }
}
