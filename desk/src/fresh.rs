//! A cache for values that many requests need and one computes from time to time.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thing_is_made_again_when_it_is_old() {
        let fresh = Fresh::new(Duration::from_secs(2));
        let get = async |number: u32| fresh.get(async { Ok::<_, Infallible>(number) }).await.expect("made");
        assert_eq!((get(1).await, get(2).await), (1, 1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(get(3).await, 3);
    }
}
