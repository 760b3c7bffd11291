//! The latest events, for operators who do not read the log; kept in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use nqueens_model::operator::{Event, WallTime};
use nqueens_scheduler::News;
use tokio::sync::watch;

/// Number of events in memory; slow readers miss the oldest.
const EVENTS_MAX: usize = 300;

/// The latest events, oldest first.
pub type Events = Arc<VecDeque<Event>>;

/// Numbers and publishes events.
#[derive(Debug, Default)]
pub(crate) struct Board {
    recent: watch::Sender<Events>,
    latest: u64,
}

impl Board {
    pub(crate) fn watch(&self) -> watch::Receiver<Events> {
        self.recent.subscribe()
    }

    /// Makes these known, as of a time. What they tell of must have been committed.
    pub(crate) fn post(&mut self, at: WallTime, news: impl IntoIterator<Item = News>) {
        let events: Vec<_> = news
            .into_iter()
            .map(|News { kind, run, worker, text }| {
                self.latest += 1;
                Event { number: self.latest, at, kind, run, worker, text }
            })
            .collect();
        if events.is_empty() {
            return;
        }
        let kept = self.recent.borrow().iter().cloned().chain(events).collect::<VecDeque<_>>();
        let surplus = kept.len().saturating_sub(EVENTS_MAX);
        self.recent.send_replace(Arc::new(kept.into_iter().skip(surplus).collect()));
    }
}

#[cfg(test)]
mod tests {
    use nqueens_model::operator::EventKind;

    use super::*;

    fn news() -> News {
        News { kind: EventKind::DiskShort, run: None, worker: None, text: String::new() }
    }

    #[test]
    fn the_latest_are_kept_and_numbered() {
        let mut board = Board::default();
        let mut events = board.watch();
        board.post(0, []);
        assert!(!events.has_changed().unwrap(), "no news");
        for _ in 0..EVENTS_MAX {
            board.post(0, [news(), news()]);
        }
        let kept = events.borrow_and_update().clone();
        assert_eq!(kept.len(), EVENTS_MAX);
        assert_eq!(kept.back().unwrap().number, 2 * EVENTS_MAX as u64);
        assert!(kept.iter().zip(kept.iter().skip(1)).all(|(a, b)| a.number + 1 == b.number));
    }
}
