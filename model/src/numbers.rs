//! Numbers for people: one form for each kind. JSON and logs for programs have plain numbers.

use std::fmt::Display;

/// A whole number with separators between thousands: `14,772,512`.
pub fn thousands(number: impl ToString) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// So many of them: `1 job`, `2,680 jobs`.
pub fn counted(number: impl Display, noun: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{} {noun}{plural}", thousands(number))
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

/// A share of the work: `42.3 %`. What is not done is never all.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", if share < 1.0 { (100.0 * share).min(99.9) } else { 100.0 })
}

/// A speed: `6.19 G states/s`.
pub fn speed(states_per_s: f64) -> String {
    let (mut value, mut prefix) = (states_per_s, "");
    for larger in ["k ", "M ", "G ", "T ", "P "] {
        // It would be rounded to 1000.
        if value < 999.5 {
            break;
        }
        (value, prefix) = ((value / 1e3).max(1.0), larger);
    }
    format!("{} {prefix}states/s", quantity(value))
}

/// A time span in its two largest units: `4 min 35 s`, `3 h 20 min`, `72 y 323 d`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub fn span(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (365.., ..) => format!("{} y {} d", days / 365, days % 365),
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A duration that may be short: `0.240 s`, `12.3 s`, `1 min 17 s`.
pub fn duration(seconds: f64) -> String {
    if seconds < 60.0 { format!("{} s", quantity(seconds)) } else { span(seconds) }
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
        assert_eq!(
            [0, 1, 2, 2_680].map(|jobs| counted(jobs, "job")),
            ["0 jobs", "1 job", "2 jobs", "2,680 jobs"]
        );
    }

    #[test]
    fn speeds_have_three_digits_and_a_prefix() {
        assert_eq!(
            [0.0, 92.4, 999.4, 999.6, 6.19e9, 112e9, 4e15, 5e18].map(speed),
            [
                "0 states/s",
                "92.4 states/s",
                "999 states/s",
                "1.00 k states/s",
                "6.19 G states/s",
                "112 G states/s",
                "4.00 P states/s",
                "5,000 P states/s"
            ]
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
        let texts = [
            "0 s",
            "59 s",
            "1 min 1 s",
            "59 min 59 s",
            "1 h 0 min",
            "23 h 59 min",
            "1 d 0 h",
            "11 d 13 h",
            "1 y 0 d",
            "72 y 323 d",
        ];
        assert_eq!(seconds.map(span), texts);
        assert_eq!([0.24, 12.34, 77.0].map(duration), ["0.240 s", "12.3 s", "1 min 17 s"]);
    }
}
