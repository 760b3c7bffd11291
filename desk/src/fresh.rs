//! A cache for values that many requests need and one computes from time to time.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

/// A value that is computed again when it is requested and too old.
pub(crate) struct Fresh<T> {
    age_max: Duration,
    made: Mutex<Option<(Instant, T)>>,
}

impl<T: Clone> Fresh<T> {
    pub(crate) fn new(age_max: Duration) -> Self {
        Self { age_max, made: Mutex::new(None) }
    }

    /// The value. Requests during its computation wait for it.
    pub(crate) async fn get<E>(&self, make: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let mut made = self.made.lock().await;
        if let Some((at, thing)) = &*made
            && at.elapsed() < self.age_max
        {
            return Ok(thing.clone());
        }
        let thing = make.await?;
        *made = Some((Instant::now(), thing.clone()));
        Ok(thing)
    }
}
