//! The time that a thread spends on something: by the clock, and of the processor. On a machine that has more to do than
//! processors, the second is less.

use std::ops::AddAssign;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) wall: Duration,
    /// Of the processor, with what else the thread did for it: taking jobs apart, and waiting for the queue.
    pub(super) cpu: Duration,
}

/// The processor time of the thread that started it, without gaps: so what results tell adds up to what the process took.
pub(super) struct ThreadClock(Duration);

impl ThreadClock {
    pub(super) fn start() -> Self {
        Self(cpu_time())
    }

    /// Since the last call.
    pub(super) fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.0, cpu_time());
        self.0.saturating_sub(before)
    }
}

impl Spent {
    /// The part of it that belongs to so many of all states.
    pub(super) fn share(self, states: u64, all: u128) -> Self {
        let share = |time: Duration| Duration::from_nanos_u128(time.as_nanos() * u128::from(states) / all);
        Self { wall: share(self.wall), cpu: share(self.cpu) }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

/// Processor time of this thread so far.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time since the thread's start")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_thread_that_sleeps_takes_no_processor_time() {
        let mut clock = ThreadClock::start();
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(300));
        let (wall, cpu) = (begun.elapsed(), clock.lap());
        assert!(wall >= Duration::from_millis(300) && cpu < wall / 2, "{wall:?}, {cpu:?}");
        let (begun, mut busy) = (Instant::now(), Duration::ZERO);
        while busy < Duration::from_millis(20) {
            busy += clock.lap();
        }
        assert!(begun.elapsed() >= Duration::from_millis(19), "a thread has one processor at a time");
    }

    #[test]
    fn shares_add_up() {
        let all = Spent { wall: Duration::from_secs(10), cpu: Duration::from_secs(6) };
        let mut sum = all.share(1, 4);
        assert_eq!(sum, Spent { wall: Duration::from_millis(2_500), cpu: Duration::from_millis(1_500) });
        sum += all.share(3, 4);
        assert_eq!(sum, all);
    }
}
