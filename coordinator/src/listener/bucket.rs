//! Rate limits: token buckets.

use std::time::{Duration, Instant};

/// So much in a time; as much may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How often, in each span of that time.
    pub most: u32,
    /// The time.
    pub each: Duration,
}

impl Rate {
    /// So often a second.
    pub const fn a_second(most: u32) -> Self {
        Self { most, each: Duration::from_secs(1) }
    }

    /// So often an hour.
    pub const fn an_hour(most: u32) -> Self {
        Self { most, each: Duration::from_hours(1) }
    }
}

/// What is left of a rate: a token bucket, full at first.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    /// Full.
    pub fn new(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: f64::from(rate.most), filled: now }
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }

    fn fill(&mut self, now: Instant) {
        let share = now.saturating_duration_since(self.filled).div_duration_f64(self.rate.each);
        self.tokens = (self.tokens + share * f64::from(self.rate.most)).min(f64::from(self.rate.most));
        self.filled = self.filled.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_at_once_and_then_as_time_goes() {
        let begun = Instant::now();
        let at = |milliseconds| begun + Duration::from_millis(milliseconds);
        let mut bucket = Bucket::new(Rate::a_second(4), begun);
        assert_eq!((0..10).filter(|_| bucket.take(begun)).count(), 4);
        assert!(!bucket.take(at(249)));
        assert!(bucket.take(at(251)));
        assert!(!bucket.take(at(252)) && !bucket.take(begun), "a clock that goes back gives nothing");
        assert_eq!((0..10).filter(|_| bucket.take(at(60_000))).count(), 4, "never more than at once");
    }
}
