//! The coordinator in this process, as its worker sees it.

use std::sync::Arc;

use nqueens_coordinator::{Error, Workers};
use nqueens_model::credential::Credential;
use nqueens_model::message::{Registration, Session, SyncRequest, SyncResponse};
use nqueens_worker::{CallError, Coordinator};

/// Calls without a network: the same requests, transactions and answers.
#[derive(Clone)]
pub(super) struct Here(pub(super) Workers);

fn call_error(error: Arc<Error>) -> CallError {
    match *error {
        Error::Refused(_) => CallError::Refused(error.to_string()),
        _ => CallError::Unavailable(error.to_string()),
    }
}

impl Coordinator for Here {
    fn address(&self) -> &'static str {
        "this process"
    }

    async fn register(&self, worker: Registration) -> Result<Session, CallError> {
        self.0.register(worker, Credential::shared()).await.map_err(call_error)
    }

    async fn sync(&self, sync: SyncRequest) -> Result<SyncResponse, CallError> {
        let answer = self.0.sync(sync, Credential::shared()).await.map_err(call_error)?;
        answer.ok_or(CallError::Unregistered)
    }
}
