//! Estimated values, with their confidence intervals.

use serde::{Deserialize, Serialize};

use crate::numbers::span;

/// An estimate with its 95 % confidence interval. All numbers are finite, none is negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Applies a function to each of its numbers.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { value: change(self.value), low: change(self.low), high: change(self.high) }
    }

    /// A time in seconds, for people: `3 h 20 min (2 h 50 min..3 h 55 min)`.
    pub fn describe_time(self) -> String {
        format!("{} ({}..{})", span(self.value), span(self.low), span(self.high))
    }

    /// A count, for people: `2.6902e12 (2.6523e12..2.7313e12)`.
    pub fn describe_count(self) -> String {
        format!("{:.4e} ({:.4e}..{:.4e})", self.value, self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_read_well() {
        let time = Interval { value: 12_000.0, low: 10_200.0, high: 14_100.0 };
        assert_eq!(time.describe_time(), "3 h 20 min (2 h 50 min..3 h 55 min)");
        let count = Interval { value: 92.0, low: 8.0, high: 2.691e12 };
        assert_eq!(count.describe_count(), "9.2000e1 (8.0000e0..2.6910e12)");
    }
}
