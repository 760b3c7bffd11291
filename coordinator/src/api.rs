//! The operators' JSON API: calls in, methods of [`Operator`] out. `docs/web.md` lists them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use nqueens_model::id::{RunId, WorkerId};
use nqueens_model::operator::{
    Blamed, CoordinatorStatus, Event, EventView, Fleet, RunDetail, RunState, RunStatus, RunView, Submission,
    TrustChange, WorkerStatus,
};
use nqueens_proto::PROTOCOL_VERSION;
use nqueens_scheduler::Refusal;
use nqueens_scheduler::request::{self, Requeue};
use serde::Deserialize;
use tokio::sync::watch;

use crate::error::Error;
use crate::operator::Operator;

#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) operator: Operator,
    /// True, or its sender gone, once the coordinator stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Fleets, and until when each is taken to be there.
    pub(crate) fleets: Arc<Mutex<Vec<(Fleet, Instant)>>>,
}

/// All calls.
pub(crate) fn routes(api: Api) -> Router {
    Router::new()
        .route("/v1/coordinator", get(coordinator))
        .route("/v1/runs", get(runs).post(submit))
        .route("/v1/runs/{run}", get(run))
        .route("/v1/runs/{run}/state", post(set_state))
        .route("/v1/runs/{run}/retry", post(retry_quarantined))
        .route("/v1/runs/{run}/requeue", post(requeue))
        .route("/v1/runs/{run}/detail", get(detail))
        .route("/v1/workers", get(workers))
        .route("/v1/workers/{worker}/drain", post(drain))
        .route("/v1/trust", post(set_trust))
        .route("/v1/fleets", post(fleets))
        .route("/v1/events", get(events))
        .with_state(api)
}

/// An answer, or why there is none.
type Answer<T> = Result<Json<T>, Refused>;

struct Refused(Arc<Error>);

impl From<Arc<Error>> for Refused {
    fn from(error: Arc<Error>) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = match *self.0 {
            Error::Refused(Refusal::NoRun(_) | Refusal::NoWorker(_) | Refusal::NoMachine { .. }) => {
                StatusCode::NOT_FOUND
            }
            Error::Refused(Refusal::RunIsOver { .. })
            | Error::BeingPlanned(_)
            | Error::OtherSubmission(_) => StatusCode::CONFLICT,
            Error::PlanTooLarge { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Error::TooManyPlans(_) => StatusCode::TOO_MANY_REQUESTS,
            Error::PlanCancelled(_) => StatusCode::GONE,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, self.0.to_string()).into_response()
    }
}

async fn coordinator(State(Api { operator, .. }): State<Api>) -> Json<CoordinatorStatus> {
    let disk = operator.snapshot.borrow().room;
    let build = operator.build.to_string();
    Json(CoordinatorStatus { build, protocol_version: PROTOCOL_VERSION, disk })
}

async fn runs(State(Api { operator, .. }): State<Api>) -> Answer<Vec<RunView>> {
    Ok(Json(operator.runs().await?.into_iter().map(RunStatus::view).collect()))
}

async fn run(State(Api { operator, .. }): State<Api>, Path(run): Path<RunId>) -> Answer<RunView> {
    one(&operator, run).await
}

async fn one(operator: &Operator, run: RunId) -> Answer<RunView> {
    Ok(Json(operator.run(run).await?.view()))
}

/// Has a run planned, and answers with it as it is before long, planned or being planned.
async fn submit(
    State(Api { operator, mut stopping, .. }): State<Api>,
    Json(submission): Json<Submission>,
) -> Answer<RunView> {
    let begun = async {
        match operator.begin(submission).await? {
            Some(planning) => planning.underway().await,
            None => Ok(()),
        }
    };
    tokio::select! {
        begun = begun => begun?,
        _ = stopping.wait_for(|stopping| *stopping) => return Err(Arc::new(Error::ShuttingDown).into()),
    }
    one(&operator, submission.run()).await
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Active,
    Paused,
    Cancelled,
}

async fn set_state(
    State(Api { operator, .. }): State<Api>,
    Path(run): Path<RunId>,
    Json(change): Json<Change>,
) -> Answer<RunView> {
    let state = match change {
        Change::Active => RunState::Active,
        Change::Paused => RunState::Paused,
        Change::Cancelled => RunState::Cancelled,
    };
    Ok(Json(operator.set_run_state(run, state).await?.view()))
}

async fn retry_quarantined(
    State(Api { operator, .. }): State<Api>,
    Path(run): Path<RunId>,
) -> Answer<RunView> {
    operator.ask(request::retry_quarantined(run)).await?;
    one(&operator, run).await
}

/// How many results were voided.
async fn requeue(
    State(Api { operator, .. }): State<Api>,
    Path(run): Path<RunId>,
    Json(of): Json<Blamed>,
) -> Answer<usize> {
    Ok(Json(operator.ask(Requeue { run, of }).await?))
}

async fn detail(State(Api { operator, .. }): State<Api>, Path(run): Path<RunId>) -> Answer<RunDetail> {
    Ok(Json(operator.detail(run).await?))
}

async fn workers(State(Api { operator, .. }): State<Api>) -> Answer<Vec<WorkerStatus>> {
    Ok(Json(operator.workers().await?))
}

async fn drain(State(Api { operator, .. }): State<Api>, Path(worker): Path<WorkerId>) -> Answer<()> {
    Ok(Json(operator.ask(request::drain(worker)).await?))
}

async fn set_trust(
    State(Api { operator, .. }): State<Api>,
    Json(TrustChange { machines, trusted }): Json<TrustChange>,
) -> Answer<()> {
    Ok(Json(operator.ask(request::set_trust(machines, trusted)).await?))
}

/// Notes that a fleet is there, unless others are that were told of none beside them: these are the answer.
async fn fleets(State(Api { fleets, .. }): State<Api>, Json(fleet): Json<Fleet>) -> Json<Vec<Fleet>> {
    let now = Instant::now();
    let mut fleets = fleets.lock().unwrap_or_else(PoisonError::into_inner);
    fleets.retain(|(_, until)| *until > now);
    let may_come = fleet.also || fleets.iter().any(|(other, _)| *other == fleet);
    fleets.retain(|(other, _)| other.place != fleet.place);
    let others = fleets.iter().map(|(other, _)| other).filter(|other| !may_come && !other.also);
    let others: Vec<_> = others.cloned().collect();
    if others.is_empty() {
        fleets.push((fleet.clone(), now + Duration::from_secs(fleet.seconds.into())));
    }
    Json(others)
}

async fn events(State(Api { operator, .. }): State<Api>) -> Json<Vec<EventView>> {
    let events = operator.events.borrow().clone();
    Json(events.iter().cloned().map(Event::view).collect())
}
