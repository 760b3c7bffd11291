//! The speed of a run, from its first lease to its last result.

use std::collections::BTreeMap;
use std::time::Duration;

use nqueens_model::id::WorkerId;
use nqueens_model::operator::WallTime;

/// A picture has no room for more.
const SPANS_MAX: usize = 60;

/// States by time, in at most 60 spans of equal length, however long the run takes.
pub(super) struct Timeline {
    begin: WallTime,
    length_ms: i64,
    /// What arrived from each worker in each span.
    batches: BTreeMap<(usize, WorkerId), Batch>,
    /// When the first result arrived, and the last.
    results: Option<(WallTime, WallTime)>,
}

/// Results that arrived together.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    states: u128,
    /// What their worker took for them.
    took: Duration,
}

impl Timeline {
    pub(super) fn new(begin: WallTime) -> Self {
        Self { begin, length_ms: 1, batches: BTreeMap::new(), results: None }
    }

    /// A result arrives, for which all threads of its worker would have taken this time. One from before the beginning (a
    /// clock was set back) stands at the beginning.
    pub(super) fn add(&mut self, at: WallTime, worker: WorkerId, states: u64, took: Duration) {
        let (first, last) = self.results.unwrap_or((at, at));
        self.results = Some((first.min(at), last.max(at)));
        let offset = at.saturating_sub(self.begin).max(0);
        while self.span_of(offset) >= SPANS_MAX {
            let mut halved = BTreeMap::<_, Batch>::new();
            for (&(span, worker), batch) in &self.batches {
                halved.entry((span / 2, worker)).or_default().add(*batch);
            }
            self.batches = halved;
            self.length_ms = self.length_ms.saturating_mul(2);
        }
        let batch = Batch { states: states.into(), took };
        self.batches.entry((self.span_of(offset), worker)).or_default().add(batch);
    }

    fn span_of(&self, offset_ms: i64) -> usize {
        usize::try_from(offset_ms / self.length_ms).unwrap_or(usize::MAX)
    }

    /// When the first result arrived, and the last.
    pub(super) fn results(&self) -> Option<(WallTime, WallTime)> {
        self.results
    }

    /// Seconds of a span.
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    pub(super) fn span_s(&self) -> f64 {
        self.length_ms as f64 / 1e3
    }

    /// States a second in each span. What arrives together was counted before: its states are spread over the time that it
    /// took.
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    pub(super) fn speeds(&self) -> Vec<f64> {
        let spans = self.batches.last_key_value().map_or(0, |(&(span, _), _)| span + 1);
        let (mut speeds, span_s) = (vec![0.0; spans], self.span_s());
        for (&(span, _), batch) in &self.batches {
            let took = (batch.took.as_secs_f64() / span_s).clamp(1.0, (span + 1) as f64);
            let from = (span + 1) as f64 - took;
            for (at, speed) in speeds.iter_mut().enumerate().take(span + 1) {
                let share = ((at + 1) as f64 - from.max(at as f64)).max(0.0) / took;
                *speed += share * batch.states as f64 / span_s;
            }
        }
        speeds
    }
}

impl Batch {
    fn add(&mut self, other: Self) {
        self.states += other.states;
        self.took = self.took.saturating_add(other.took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> WorkerId {
        WorkerId::new(1).expect("a name")
    }

    #[test]
    fn a_long_run_has_no_more_spans_than_a_short_one() {
        let mut timeline = Timeline::new(1_000);
        assert_eq!(timeline.results(), None);
        for at in [1_000, 1_059, 500, 1_000_000, 999_999, i64::MAX] {
            timeline.add(at, worker(), 3, Duration::ZERO);
            assert!(timeline.speeds().len() <= SPANS_MAX);
        }
        assert_eq!(timeline.batches.values().map(|batch| batch.states).sum::<u128>(), 18, "nothing is lost");
        assert_eq!(timeline.results(), Some((500, i64::MAX)));
    }

    #[test]
    fn speeds_are_those_of_the_spans() {
        let mut timeline = Timeline::new(0);
        for at in 0..120 {
            timeline.add(at, worker(), 2, Duration::ZERO);
        }
        assert_eq!((timeline.begin, timeline.length_ms), (0, 2));
        assert!(timeline.speeds().iter().all(|speed| (speed - 2_000.0).abs() < 1e-6));
    }

    #[test]
    fn states_stand_where_they_were_counted() {
        let mut timeline = Timeline::new(0);
        timeline.add(49, worker(), 200, Duration::from_millis(20));
        timeline.add(9, worker(), 30, Duration::from_secs(7));
        let speeds = timeline.speeds();
        assert_eq!(speeds.len(), 50);
        let parts = [(0..10, 3_000.0), (10..30, 0.0), (30..50, 10_000.0)];
        for (span, expected) in parts {
            assert!(speeds[span].iter().all(|speed: &f64| (speed - expected).abs() < 1e-6), "{speeds:?}");
        }
    }
}
