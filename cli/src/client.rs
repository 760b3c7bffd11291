//! The operators' connection to a coordinator, and advice for its errors.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use anyhow::anyhow;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    Blamed, CoordinatorStatus, Event, Fleet, RunState, RunStatus, Submission, TrustChange, WorkerStatus,
};
use nqueens_proto::{CallFailure, ClientTls, JsonClient, Token, connect, tls};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::codegen::http::StatusCode;
use tracing::warn;

use crate::exit::misuse;
use crate::token;

/// A coordinator that was started a moment before the command listens within 5 seconds: so often is tried again, ...
const ATTEMPTS: u32 = 50;

/// ... after this pause. A wait of a second is worth a line.
const ATTEMPT_EVERY: Duration = Duration::from_millis(100);
const TOLD_AT: u32 = 10;

/// No coordinator answers at the moment; that may pass.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreachable(String);

/// A connection to one coordinator; clones share it.
#[derive(Clone)]
pub(crate) struct OperatorClient {
    url: String,
    inner: JsonClient,
    /// How often it tries again to reach a coordinator that may be starting.
    attempts: u32,
}

impl OperatorClient {
    /// Connects at the first call. An address that is none is wrong usage.
    pub(crate) fn new(url: &str, token: Option<Token>, tls: Option<&ClientTls>) -> Self {
        let channel = connect(url, tls).unwrap_or_else(|error| misuse(error).exit());
        Self { url: url.to_owned(), inner: JsonClient::new(channel, token), attempts: 0 }
    }

    /// The same, but before its first answer it waits a moment for a coordinator that is just starting.
    pub(crate) fn patient(self) -> Self {
        Self { attempts: ATTEMPTS, ..self }
    }

    /// The coordinator's build, the version of its conversation with workers, and the room on its disk.
    pub(crate) async fn coordinator(&mut self) -> anyhow::Result<CoordinatorStatus> {
        self.get("/v1/coordinator").await
    }

    pub(crate) async fn ready(&mut self) -> anyhow::Result<()> {
        let inner = self.inner.clone();
        self.patiently(async || inner.ready().await).await
    }

    /// Has a run planned; returns it as it is before long, planned or being planned.
    pub(crate) async fn submit(&mut self, submission: Submission) -> anyhow::Result<RunStatus> {
        self.post("/v1/runs", &submission).await
    }

    pub(crate) async fn runs(&mut self) -> anyhow::Result<Vec<RunStatus>> {
        self.get("/v1/runs").await
    }

    pub(crate) async fn run(&mut self, run: RunId) -> anyhow::Result<RunStatus> {
        self.get(&format!("/v1/runs/{run}")).await
    }

    pub(crate) async fn set_state(&mut self, run: RunId, state: RunState) -> anyhow::Result<RunStatus> {
        self.post(&format!("/v1/runs/{run}/state"), &state).await
    }

    pub(crate) async fn retry_quarantined(&mut self, run: RunId) -> anyhow::Result<RunStatus> {
        self.post(&format!("/v1/runs/{run}/retry"), &()).await
    }

    /// Voids results of a run; returns the run after that, and how many they are.
    pub(crate) async fn requeue(&mut self, run: RunId, of: Blamed) -> anyhow::Result<(RunStatus, u64)> {
        let jobs = self.post(&format!("/v1/runs/{run}/requeue"), &of).await?;
        Ok((self.run(run).await?, jobs))
    }

    pub(crate) async fn set_trust(&mut self, change: &TrustChange) -> anyhow::Result<()> {
        self.post("/v1/trust", change).await
    }

    /// The workers seen since the coordinator started.
    pub(crate) async fn workers(&mut self) -> anyhow::Result<Vec<WorkerStatus>> {
        self.get("/v1/workers").await
    }

    pub(crate) async fn events(&mut self) -> anyhow::Result<Vec<Event>> {
        self.get("/v1/events").await
    }

    pub(crate) async fn drain(&mut self, worker: WorkerId) -> anyhow::Result<()> {
        self.post(&format!("/v1/workers/{worker}/drain"), &()).await
    }

    /// Says that a fleet is there; returns those that keep it out.
    pub(crate) async fn note_fleet(&mut self, fleet: &Fleet) -> anyhow::Result<Vec<Fleet>> {
        self.post("/v1/fleets", fleet).await
    }

    async fn get<Answer: DeserializeOwned>(&mut self, path: &str) -> anyhow::Result<Answer> {
        let inner = self.inner.clone();
        self.patiently(async || inner.get(path).await).await
    }

    async fn post<Answer: DeserializeOwned>(
        &mut self,
        path: &str,
        message: &impl Serialize,
    ) -> anyhow::Result<Answer> {
        let inner = self.inner.clone();
        self.patiently(async || inner.post(path, message).await).await
    }

    /// Calls, and again while no coordinator listens yet.
    async fn patiently<Answer>(
        &mut self,
        call: impl AsyncFn() -> Result<Answer, CallFailure>,
    ) -> anyhow::Result<Answer> {
        for attempt in 0..self.attempts {
            match call().await {
                Err(failure) if is_unheard(&failure) => {}
                // One listens, so nothing is starting.
                answer => {
                    self.attempts = 0;
                    return answer.map_err(|failure| self.explain(&failure));
                }
            }
            if attempt == TOLD_AT {
                let left = (ATTEMPTS - TOLD_AT) * ATTEMPT_EVERY;
                warn!(url = self.url, "no coordinator listens there yet; trying again for {left:?}");
            }
            tokio::time::sleep(ATTEMPT_EVERY).await;
        }
        call().await.map_err(|failure| self.explain(&failure))
    }

    fn explain(&self, failure: &CallFailure) -> anyhow::Error {
        let url = &self.url;
        let text = match failure {
            CallFailure::Late => format!("the coordinator at {url} did not answer in time"),
            CallFailure::Broken(error) => match (tls::explain(&**error), cause(&**error)) {
                (Some(explanation), _) => format!("no secure connection to {url}: {explanation}"),
                (None, cause) if cause.is::<io::Error>() => format!(
                    "can't reach a coordinator at {url} ({cause}); check the address, and that 'nqueens coordinator' runs \
                     there"
                ),
                (None, cause) if cause.is::<serde_json::Error>() => {
                    return anyhow!(
                        "the answer of {url} makes no sense ({cause}); install the same version of nqueens on both sides"
                    );
                }
                (None, cause) => format!(
                    "the connection to {url} failed ({cause}); check that a coordinator listens there, and whether the \
                     address must begin with https://"
                ),
            },
            CallFailure::Refused(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, text) => {
                return anyhow!(
                    "the coordinator refused: {text}; give a token by --operator-token-file or the variable {}",
                    token::OF_OPERATOR
                );
            }
            CallFailure::Refused(status, text) => {
                let text = if text.is_empty() { format!("{url} answers {status}") } else { text.clone() };
                if *status != StatusCode::SERVICE_UNAVAILABLE {
                    return anyhow!(text);
                }
                text
            }
        };
        Unreachable(text).into()
    }
}

/// The deepest cause, for it says most.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error)
}

/// Whether the machine answers, and no process listens there.
fn is_unheard(failure: &CallFailure) -> bool {
    let CallFailure::Broken(error) = failure else { return false };
    let refused = |error: &io::Error| error.kind() == ErrorKind::ConnectionRefused;
    cause(&**error).downcast_ref().is_some_and(refused)
}
