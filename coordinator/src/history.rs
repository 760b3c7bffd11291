//! What operators look back on: the latest events, and how the runs went over time, which their results tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use nqueens_ledger::SpanSums;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Event, Moment, WallTime};
use tokio::sync::Mutex;

use crate::error::Error;
use crate::progress::{JOBS_MIN, JobSample};

/// The latest events, oldest first.
pub type Events = Arc<Vec<Event>>;

/// Moments of a run, at most.
pub(crate) const MOMENTS_MAX: i64 = 120;

/// All results are read for it. It is not read again before this many times as long has passed, whoever asks.
const REST: u32 = 50;

/// The histories that were asked for; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histories(Arc<Mutex<HashMap<RunId, History>>>);

#[derive(Debug)]
struct History {
    good_until: Instant,
    moments: Vec<Moment>,
}

impl Histories {
    /// How a run went over time, as of a while ago; `read` reads it anew. Whoever gives up waiting does not keep it from
    /// being read: of a large ledger nobody would ever wait long enough.
    pub(crate) async fn of(
        &self,
        run: RunId,
        read: impl Future<Output = Result<Vec<Moment>, Error>> + Send + 'static,
    ) -> Result<Vec<Moment>, Error> {
        let known = Arc::clone(&self.0);
        let looking = tokio::spawn(async move {
            // One is read at a time.
            let mut known = known.lock().await;
            let began = Instant::now();
            known.retain(|_, history| began < history.good_until);
            if let Some(history) = known.get(&run) {
                return Ok(history.moments.clone());
            }
            let moments = read.await?;
            let good_until = Instant::now() + REST * began.elapsed();
            known.insert(run, History { good_until, moments: moments.clone() });
            Ok(moments)
        });
        looking.await.expect("reading does not panic")
    }
}

/// How a run of so many jobs and so much estimated work went. A result says when it arrived. Its states were visited before:
/// those of a span are spread over the time that one of its jobs took.
#[expect(clippy::cast_precision_loss, reason = "for a picture")]
pub(crate) fn moments(
    began: WallTime,
    span_ms: i64,
    jobs: u32,
    work: f64,
    spans: &[SpanSums],
) -> Vec<Moment> {
    let Some(last) = spans.last() else { return Vec::new() };
    let span_s = span_ms as f64 / 1e3;
    let mut speeds = vec![0.0; last.number + 1];
    for span in spans {
        let job_s = span.elapsed_us / f64::from(span.jobs.max(1)) / 1e6;
        let end = (span.number + 1) as f64;
        let took = (job_s / span_s).clamp(1.0, end);
        for (at, speed) in speeds.iter_mut().enumerate().take(span.number + 1) {
            let share = ((at + 1) as f64 - (end - took).max(at as f64)).max(0.0) / took;
            *speed += share * span.states / span_s;
        }
    }
    let (mut done, mut sums, mut spans) = (0, SpanSums::default(), spans.iter().peekable());
    let moments = speeds.into_iter().zip(1..).map(|(states_per_s, number)| {
        if let Some(span) = spans.next_if(|span| span.number + 1 == number) {
            done += span.jobs;
            sums.x += span.x;
            sums.y += span.y;
            sums.xx += span.xx;
            sums.xy += span.xy;
            sums.yy += span.yy;
        }
        let sample =
            JobSample { jobs: f64::from(jobs), done: f64::from(done), x_all: work, x: sums.x, xx: sums.xx };
        let is_some = done >= JOBS_MIN && done < jobs;
        Moment {
            at: began.saturating_add_unsigned(number as u64 * span_ms.unsigned_abs()),
            share_done: if work > 0.0 { (sums.x / work).min(1.0) } else { 1.0 },
            states_per_s,
            total: is_some.then(|| sample.total(sums.y, sums.xy, sums.yy)),
        }
    });
    moments.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(number: usize, jobs: u32, states: f64, elapsed_us: f64) -> SpanSums {
        let each = states / f64::from(jobs);
        let (x, y) = (states, 2.0 * states);
        SpanSums { number, jobs, states, elapsed_us, x, y, xx: x * each, xy: y * each, yy: 2.0 * y * each }
    }

    #[tokio::test]
    async fn it_is_read_to_its_end_whoever_waits() {
        let (histories, run) = (Histories::default(), RunId::from_random(7));
        let (go, gone) = tokio::sync::oneshot::channel();
        let read = async {
            gone.await.expect("somebody sends");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            Ok(moments(0, 1_000, 10, 100.0, &[span(0, 1, 10.0, 1.0)]))
        };
        let given_up = histories.of(run, read);
        tokio::time::timeout(std::time::Duration::ZERO, given_up).await.expect_err("it waits");
        go.send(()).expect("it is still read");
        let other = async { panic!("it was read a moment ago") };
        assert_eq!(histories.of(run, other).await.expect("moments").len(), 1);
    }

    #[test]
    fn states_stand_where_they_were_counted() {
        let spans = [span(1, 1, 30.0, 7e6), span(4, 2, 200.0, 4e6)];
        let moments = moments(1_000, 1_000, 10, 1_000.0, &spans);
        let speeds: Vec<_> = moments.iter().map(|moment| moment.states_per_s).collect();
        assert_eq!(
            speeds,
            [15.0, 15.0, 0.0, 100.0, 100.0],
            "a job of 2 s, and one from before the beginning"
        );
        assert_eq!((moments[0].at, moments[4].at), (2_000, 6_000));
        assert!(
            [(0, 0.0), (1, 0.03), (4, 0.23)]
                .iter()
                .all(|&(at, share)| (moments[at].share_done - share).abs() < 1e-9)
        );
    }

    #[test]
    fn an_estimate_stands_where_enough_jobs_were_done() {
        let spans = [span(0, 19, 190.0, 1.0), span(1, 1, 10.0, 1.0), span(2, 20, 200.0, 1.0)];
        let totals = moments(0, 1_000, 40, 400.0, &spans).into_iter().map(|moment| moment.total);
        let totals: Vec<_> = totals.map(|total| total.map(|total| total.value)).collect();
        assert_eq!(totals, [None, Some(800.0), None], "too few, enough, all");
        assert!(moments(0, 1_000, 40, 400.0, &[]).is_empty());
    }
}
