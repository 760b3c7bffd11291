//! How a run went over time, in a bounded number of moments.

use super::{Interval, WallTime};

/// One moment of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// When it was.
    pub at: WallTime,
    /// Share of the estimated work that was done, `0.0..=1.0`.
    pub share_done: f64,
    /// How fast it went; `None` while nobody counted, or too little was known.
    pub states_per_s: Option<f64>,
    /// The estimate of its total, if there was one.
    pub total: Option<Interval>,
    /// The estimate of the time left in seconds, if there was one.
    pub time_left_s: Option<Interval>,
}

/// What a coordinator tells of one run alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDetail {
    /// How it went over time, oldest moment first.
    pub moments: Vec<Moment>,
    /// How many of its leased jobs are being counted, the others wait in their workers' queues; `None` if nobody can say.
    pub being_counted: Option<u32>,
    /// Processor time of all its results, also of second counts, in microseconds; `None` if it was not told.
    pub cpu_us: Option<u64>,
}

impl RunDetail {
    /// The processor time, for people.
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub fn core_hours(&self) -> Option<f64> {
        self.cpu_us.map(|us| us as f64 / 3.6e9)
    }
}

/// The moments of one run, oldest first. When there are too many, every second one goes, and those to come are taken half as
/// often.
#[derive(Clone, Debug)]
pub struct History {
    moments: Vec<Moment>,
    /// Time between two of them, in milliseconds, at least.
    stride: i64,
}

/// The smallest time between two moments, in milliseconds.
const STRIDE_MIN: i64 = 1_000;

impl Default for History {
    fn default() -> Self {
        Self { moments: Vec::new(), stride: STRIDE_MIN }
    }
}

impl History {
    /// Moments of a run: more are never kept.
    pub const MOMENTS_MAX: usize = 240;

    /// Goes on with stored moments, oldest first. How far apart they are tells how often more are taken: a run may have
    /// rested for long, so the smallest gap does.
    pub fn restored(moments: Vec<Moment>) -> Self {
        let gaps = moments.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at));
        let smallest = gaps.min().unwrap_or(0);
        let strides = std::iter::successors(Some(STRIDE_MIN), |stride| stride.checked_mul(2));
        let stride = strides.take_while(|stride| *stride <= smallest).last().unwrap_or(STRIDE_MIN);
        Self { moments, stride }
    }

    /// The moments, oldest first.
    pub fn moments(&self) -> &[Moment] {
        &self.moments
    }

    /// Whether it is time for another moment.
    pub fn is_due(&self, at: WallTime) -> bool {
        self.moments.last().is_none_or(|last| at.saturating_sub(last.at) >= self.stride)
    }

    /// Adds a moment that is due. Of too many, every second one goes, from the second on.
    pub fn add(&mut self, moment: Moment) {
        self.moments.push(moment);
        if self.moments.len() > Self::MOMENTS_MAX {
            let mut kept = [true, false].into_iter().cycle();
            self.moments.retain(|_| kept.next().unwrap_or(true));
            self.stride = self.stride.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at: WallTime) -> Moment {
        Moment { at, share_done: 0.0, states_per_s: None, total: None, time_left_s: None }
    }

    #[test]
    fn a_long_run_keeps_few_moments_evenly_spread() {
        let mut history = History::default();
        for now in (0..100_000_000).step_by(1_000) {
            if history.is_due(now) {
                history.add(at(now));
            }
            assert!(history.moments().len() <= History::MOMENTS_MAX);
        }
        let gaps: Vec<_> = history.moments().windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        assert!(history.moments().len() >= History::MOMENTS_MAX / 2, "{gaps:?}");
        assert!(gaps.iter().all(|gap| *gap == gaps[0]), "{gaps:?}");
        assert_eq!(history.moments()[0].at, 0);
    }

    #[test]
    fn it_goes_on_as_often_as_before() {
        let stored = |times: &[WallTime]| History::restored(times.iter().copied().map(at).collect());
        for (times, due) in [
            (&[][..], 0),
            (&[500][..], 1_500),
            // Moments are taken some time after they are due, and nobody takes any while the coordinator is away.
            (&[0, 4_200, 8_250, 900_000][..], 904_000),
        ] {
            let history = stored(times);
            assert!(
                history.is_due(due) && !history.moments().last().is_some_and(|_| history.is_due(due - 1))
            );
        }
    }
}
