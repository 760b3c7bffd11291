//! State that all requests share.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nqueens_coordinator::{Error, Operator};
use nqueens_model::id::RunId;
use tokio::sync::{Semaphore, watch};

use crate::auth::{Admission, Auth};
use crate::documents::{DocumentWriter, Documents};
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
    pub(crate) auth: Arc<Auth>,
    picture: Fresh<Overview>,
    pub(crate) streams: Arc<Semaphore>,
    /// None where everyone can see the page, for they cost processor time.
    pub(crate) documents: Documents,
    /// Requests to this listener without the right token.
    pub(crate) refused: Arc<AtomicU64>,
    /// True once the coordinator stops.
    pub(crate) stopping: watch::Receiver<bool>,
    details: Mutex<HashMap<RunId, Arc<Fresh<Arc<str>>>>>,
}

impl PageState {
    pub(crate) fn new(
        operator: Operator,
        admission: Admission,
        documents: DocumentWriter,
        refused: Arc<AtomicU64>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            operator,
            documents: Documents::new((!matches!(admission, Admission::Public)).then_some(documents)),
            auth: Arc::new(Auth::new(admission)),
            picture: Fresh::new(PICTURE_EVERY / 2),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            refused,
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
