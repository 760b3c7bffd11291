//! State that all requests share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nqueens_coordinator::{Error, Operator};
use nqueens_model::id::RunId;
use tokio::sync::{Semaphore, watch};

use crate::documents::Documents;
use crate::fresh::Fresh;
use crate::picture::{Overview, paint};

/// Time between two pictures of a stream.
pub(crate) const PICTURE_EVERY: Duration = Duration::from_secs(1);

/// Streams at once: fewer than connections, so that there is always room for a look at the metrics.
const STREAMS_MAX: usize = 48;

/// How old a map of a run's jobs may be.
const DETAIL_AGE: Duration = Duration::from_secs(2);

pub(crate) struct PageState {
    pub(crate) operator: Operator,
    picture: Fresh<Overview>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) documents: Documents,
    /// Counts the calls that were refused without the right token.
    pub(crate) refused: Box<dyn Fn() -> u64 + Send + Sync>,
    /// True once the coordinator stops.
    pub(crate) stopping: watch::Receiver<bool>,
    details: Mutex<HashMap<RunId, Arc<Fresh<Arc<str>>>>>,
}

impl PageState {
    pub(crate) fn new(
        operator: Operator,
        documents: Documents,
        refused: impl Fn() -> u64 + Send + Sync + 'static,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            operator,
            documents,
            picture: Fresh::new(PICTURE_EVERY / 2),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            refused: Box::new(refused),
            stopping,
            details: Mutex::default(),
        }
    }

    /// What there is to see, as of this moment.
    pub(crate) async fn overview(&self) -> Result<Overview, Arc<Error>> {
        self.picture.get(paint(&self.operator, self.documents.are_written())).await
    }

    /// Where the details of a run that exists are kept for a moment.
    pub(crate) fn detail(&self, run: RunId) -> Arc<Fresh<Arc<str>>> {
        let mut details = self.details.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(details.entry(run).or_insert_with(|| Arc::new(Fresh::new(DETAIL_AGE))))
    }
}
