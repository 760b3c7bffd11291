//! The operators' connection to a coordinator, and advice for its errors.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use anyhow::anyhow;
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    Blamed, Event, MachineName, RunDetail, RunState, RunStatus, Submission, WorkerStatus,
};
use nqueens_proto::v1::operator_service_client::OperatorServiceClient;
use nqueens_proto::{ClientTls, MESSAGE_BYTES_MAX, Token, connect, present, request_id, tls, v1};
use tonic::codegen::http::Uri;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, TimeoutExpired};
use tracing::warn;

use crate::exit::misuse;

/// A call without an answer fails after this time.
const CALL_TIMEOUT: Duration = Duration::from_secs(35);

/// A coordinator on this machine that was started a moment before the command listens within this time.
const START_WITHIN: Duration = Duration::from_secs(5);

/// The wait is told when this much of it is left; a shorter one is not worth a line.
const TOLD_AT: Duration = Duration::from_secs(4);

/// Pause between two attempts to reach it.
const ATTEMPT_EVERY: Duration = Duration::from_millis(100);

/// Makes a call with one answer; an error ends the function, in words that help.
macro_rules! call {
    ($client:ident.$call:ident($message:expr)) => {{
        let message = $message;
        loop {
            let request = $client.request(stringify!($call), message.clone());
            match $client.inner.$call(request).await {
                Ok(answer) => {
                    $client.was_there();
                    break answer.into_inner();
                }
                Err(status) if $client.waits_for_start(&status).await => {}
                Err(status) => return Err($client.explain(&status)),
            }
        }
    }};
}

/// A connection to one coordinator; clones share it.
#[derive(Clone)]
pub(crate) struct OperatorClient {
    url: String,
    token: Option<Token>,
    inner: OperatorServiceClient<Channel>,
    /// How much longer it waits for a coordinator that may be starting.
    patience: Duration,
}

impl OperatorClient {
    /// Connects at the first call. An address that is none is wrong usage.
    pub(crate) fn new(url: &str, token: Option<Token>, tls: Option<&ClientTls>) -> Self {
        let channel = connect(url, tls).unwrap_or_else(|error| misuse(error).exit());
        let inner = OperatorServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { url: url.to_owned(), token, inner, patience: Duration::ZERO }
    }

    /// The same, but before its first answer it waits a moment for a coordinator on this machine that is just starting.
    pub(crate) fn patient(self) -> Self {
        let patience = if is_loopback(&self.url) { START_WITHIN } else { Duration::ZERO };
        Self { patience, ..self }
    }

    /// Somebody listens, so nothing is starting.
    fn was_there(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// Whether to try again, after a pause: nobody listens yet, and that may change in a moment.
    async fn waits_for_start(&mut self, status: &Status) -> bool {
        if self.patience.is_zero() || !is_refused(status) {
            return false;
        }
        self.patience = self.patience.saturating_sub(ATTEMPT_EVERY);
        if self.patience == TOLD_AT {
            warn!(url = self.url, "no coordinator listens there yet; trying again for {:?}", self.patience);
        }
        tokio::time::sleep(ATTEMPT_EVERY).await;
        true
    }

    /// The coordinator's build, the version of its conversation with workers, and the room on its disk.
    pub(crate) async fn coordinator(&mut self) -> anyhow::Result<v1::GetCoordinatorResponse> {
        Ok(call!(self.get_coordinator(v1::GetCoordinatorRequest {})))
    }

    /// Has a run planned; returns it as it is before long, planned or being planned.
    pub(crate) async fn submit(&mut self, submission: Submission) -> anyhow::Result<RunStatus> {
        Ok(present("run", call!(self.submit(v1::SubmitRequest::from(submission))).run)?)
    }

    /// All runs, oldest first.
    pub(crate) async fn runs(&mut self) -> anyhow::Result<Vec<RunStatus>> {
        let runs = call!(self.list_runs(v1::ListRunsRequest {})).runs;
        Ok(runs.into_iter().map(RunStatus::try_from).collect::<Result<_, _>>()?)
    }

    pub(crate) async fn run(&mut self, run: RunId) -> anyhow::Result<RunStatus> {
        Ok(present("run", call!(self.get_run(v1::GetRunRequest { run: run.get() })).run)?)
    }

    /// Pauses, resumes or cancels a run.
    pub(crate) async fn set_state(&mut self, run: RunId, state: RunState) -> anyhow::Result<RunStatus> {
        let state = v1::RunState::from(state).into();
        Ok(present("run", call!(self.set_run_state(v1::SetRunStateRequest { run: run.get(), state })).run)?)
    }

    /// Opens the quarantined jobs of a run again.
    pub(crate) async fn retry_quarantined(&mut self, run: RunId) -> anyhow::Result<RunStatus> {
        Ok(present("run", call!(self.retry_quarantined(v1::RetryQuarantinedRequest { run: run.get() })).run)?)
    }

    /// Voids results of a run; returns the run after that, and how many they are.
    pub(crate) async fn requeue(&mut self, run: RunId, of: Blamed) -> anyhow::Result<(RunStatus, u64)> {
        let v1::RequeueResponse { run, jobs } = call!(self.requeue(v1::RequeueRequest::from((run, of))));
        Ok((present("run", run)?, jobs))
    }

    /// Marks a machine trusted or untrusted.
    pub(crate) async fn set_trust(&mut self, machines: MachineName, trusted: bool) -> anyhow::Result<()> {
        call!(self.set_trust(v1::SetTrustRequest::from((machines, trusted))));
        Ok(())
    }

    /// The workers seen since the coordinator started.
    pub(crate) async fn workers(&mut self) -> anyhow::Result<Vec<WorkerStatus>> {
        let workers = call!(self.list_workers(v1::ListWorkersRequest {})).workers;
        Ok(workers.into_iter().map(WorkerStatus::try_from).collect::<Result<_, _>>()?)
    }

    /// The latest events, oldest first.
    pub(crate) async fn events(&mut self) -> anyhow::Result<Vec<Event>> {
        let events = call!(self.list_events(v1::ListEventsRequest { after: 0 })).events;
        Ok(events.into_iter().map(Event::try_from).collect::<Result<_, _>>()?)
    }

    /// How a run went over time, and what it has cost.
    pub(crate) async fn detail(&mut self, run: RunId) -> anyhow::Result<RunDetail> {
        Ok(call!(self.get_history(v1::GetHistoryRequest { run: run.get() })).try_into()?)
    }

    pub(crate) async fn drain(&mut self, worker: WorkerId) -> anyhow::Result<()> {
        call!(self.drain_worker(v1::DrainWorkerRequest { worker_id: worker.get() }));
        Ok(())
    }

    fn request<T>(&self, call: &str, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(CALL_TIMEOUT);
        request_id::identify(&mut request, call, self.token.as_ref());
        request
    }

    fn explain(&self, status: &Status) -> anyhow::Error {
        let words = self.words(status);
        let is_passing = matches!(status.code(), Code::Unavailable | Code::Unknown)
            || is_timeout(status)
            || breakage(status).is_some();
        if is_passing { Unreachable(words).into() } else { anyhow!(words) }
    }

    fn words(&self, status: &Status) -> String {
        let (url, text) = (&self.url, status.message());
        if let Some(explanation) = tls::explain(status) {
            return format!("no secure connection to {url}: {explanation}");
        }
        match (status.code(), breakage(status)) {
            (Code::Unavailable, Some(cause)) => format!(
                "can't reach a coordinator at {url} ({cause}); check the address, and that 'nqueens coordinator' runs \
                 there"
            ),
            (_, Some(cause)) => {
                format!(
                    "the connection to {url} failed ({cause}); check that a coordinator listens there, and whether the \
                     address must begin with https://"
                )
            }
            (Code::Unauthenticated | Code::PermissionDenied, _) => format!(
                "the coordinator refused: {text}; give a token by --operator-token-file or the variable {TOKEN_VARIABLE}, or a \
                 certificate by --tls-cert"
            ),
            (Code::Unimplemented, _) => {
                format!("{url} does not know this call; install the same version of nqueens on both sides")
            }
            _ if is_timeout(status) => format!("the coordinator at {url} did not answer in time"),
            _ => text.to_owned(),
        }
    }
}

/// Carries the operator's token where no file does.
pub(crate) const TOKEN_VARIABLE: &str = "NQUEENS_OPERATOR_TOKEN";

/// What kept the call from being answered, if it was the connection: the deepest cause, for it says most.
fn breakage(status: &Status) -> Option<&(dyn Error + 'static)> {
    let cause = std::iter::successors(status.source(), |&cause| cause.source()).last();
    cause.filter(|cause| !cause.is::<TimeoutExpired>())
}

/// Whether nobody listens at an address that answers.
fn is_refused(status: &Status) -> bool {
    let cause = breakage(status).and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == ErrorKind::ConnectionRefused)
}

/// Whether an address is one of this machine.
fn is_loopback(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_timeout(status: &Status) -> bool {
    matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded) && breakage(status).is_none()
}

/// Nobody answers at the moment; that may pass.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreachable(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_waited_for() {
        let here =
            ["http://127.0.0.1:7327", "https://127.8.0.1:1", "http://[::1]:7327", "http://localhost:7327"];
        let there = [
            "http://head:7327",
            "http://10.0.0.1:7327",
            "http://[2001:db8::1]:1",
            "https://127.0.0.1.example",
        ];
        assert!(here.iter().all(|url| is_loopback(url)) && !there.iter().any(|url| is_loopback(url)));
    }
}
