//! The speed of a run, from its first lease to its last result.

use nqueens_model::operator::WallTime;

/// A picture has no room for more.
const SPANS_MAX: usize = 120;

/// States by time, in at most 120 spans of equal length, however long the run takes.
pub(super) struct Timeline {
    begin: WallTime,
    length_ms: i64,
    spans: Vec<u128>,
    /// When the first result arrived, and the last.
    results: Option<(WallTime, WallTime)>,
}

impl Timeline {
    pub(super) fn new(begin: WallTime) -> Self {
        Self { begin, length_ms: 1, spans: Vec::new(), results: None }
    }

    /// A result arrives. One from before the beginning (a clock was set back) stands at the beginning.
    pub(super) fn add(&mut self, at: WallTime, states: u64) {
        let (first, last) = self.results.unwrap_or((at, at));
        self.results = Some((first.min(at), last.max(at)));
        let offset = at.saturating_sub(self.begin).max(0);
        let mut index = self.span_of(offset);
        while index >= SPANS_MAX {
            self.spans = self.spans.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.length_ms = self.length_ms.saturating_mul(2);
            index = self.span_of(offset);
        }
        if index >= self.spans.len() {
            self.spans.resize(index + 1, 0);
        }
        self.spans[index] += u128::from(states);
    }

    fn span_of(&self, offset_ms: i64) -> usize {
        usize::try_from(offset_ms / self.length_ms).unwrap_or(usize::MAX)
    }

    /// When the first result arrived, and the last.
    pub(super) fn results(&self) -> Option<(WallTime, WallTime)> {
        self.results
    }

    /// When the first span begins, and the last ends.
    pub(super) fn bounds(&self) -> (WallTime, WallTime) {
        let spans = i64::try_from(self.spans.len()).unwrap_or(i64::MAX);
        (self.begin, self.begin.saturating_add(self.length_ms.saturating_mul(spans)))
    }

    /// States a second in each span.
    #[expect(clippy::cast_precision_loss, reason = "for a picture")]
    pub(super) fn speeds(&self) -> Vec<f64> {
        let seconds = self.length_ms as f64 / 1e3;
        self.spans.iter().map(|&states| states as f64 / seconds).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_no_more_spans_than_a_short_one() {
        let mut timeline = Timeline::new(1_000);
        assert_eq!(timeline.results(), None);
        for at in [1_000, 1_119, 500, 1_000_000, 999_999, i64::MAX] {
            timeline.add(at, 3);
            assert!(timeline.spans.len() <= SPANS_MAX);
        }
        assert_eq!(timeline.spans.iter().sum::<u128>(), 18, "nothing is lost");
        assert_eq!(timeline.results(), Some((500, i64::MAX)));
    }

    #[test]
    fn speeds_are_those_of_the_spans() {
        let mut timeline = Timeline::new(0);
        for at in 0..240 {
            timeline.add(at, 2);
        }
        assert_eq!((timeline.bounds(), timeline.length_ms), ((0, 240), 2));
        assert!(timeline.speeds().iter().all(|speed| (speed - 2_000.0).abs() < 1e-6));
    }
}
