//! What went wrong last, for whoever keeps the coordinator.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::Error;

/// The latest failure, or the one after which nothing goes on; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(watch::Sender<Option<Arc<Error>>>);

impl Faults {
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Arc<Error>>> {
        self.0.subscribe()
    }

    /// Tells of a failure, unless a final one was told before: that one stays.
    pub(crate) fn tell(&self, error: Arc<Error>) {
        self.0.send_if_modified(|last| {
            let is_news = last.as_ref().is_none_or(|last| !last.is_final());
            if is_news {
                *last = Some(error);
            }
            is_news
        });
    }

    /// Begins a task without which the coordinator would leave something undone in silence: if it panics, that is final.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        // Ends with this task.
        let (faults, mut works) = (self.clone(), JoinSet::new());
        works.spawn(work);
        tokio::spawn(async move {
            if let Some(Err(error)) = works.join_next().await
                && error.is_panic()
            {
                faults.tell(Arc::new(Error::WriterFailed(error.to_string())));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_final_stays() {
        let faults = Faults::default();
        let told = faults.subscribe();
        let last = || told.borrow().as_deref().map(Error::to_string).unwrap_or_default();
        faults.tell(Arc::new(Error::TooManyPlans(1)));
        faults.tell(Arc::new(Error::TooManyPlans(2)));
        assert!(last().contains("2 runs"), "{}", last());
        faults.spawn(async { panic!("out of luck") }).await.expect("it only watches");
        assert!(last().contains("out of luck"), "{}", last());
        faults.tell(Arc::new(Error::ShuttingDown));
        assert!(last().contains("out of luck"), "{}", last());
    }

    #[tokio::test]
    async fn a_task_ends_with_its_handle() {
        let (alive, ended) = tokio::sync::oneshot::channel::<()>();
        let task = Faults::default().spawn(async {
            let _alive = alive;
            std::future::pending::<()>().await;
        });
        task.abort();
        ended.await.expect_err("it is dropped");
    }
}
