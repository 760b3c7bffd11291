//! What there is to see, and who sees it.

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::StatusCode;
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use nqueens_coordinator::{Door, Operator};

use crate::auth::{Auth, enter, keep};
use crate::documents::{Document, DocumentWriter, Documents};
use crate::headers::{FILES, LOGIN, STYLE, guard};
use crate::live::{RunQuery, live};
use crate::metrics::metrics;
use crate::shared::PageState;
use crate::solutions::solution;

/// Bytes of a request's body.
const BODY_BYTES_MAX: usize = 1 << 10;

/// The page and the metrics of a coordinator, for whoever may call it as an operator; for everybody if they are
/// `public`, but for documents, which cost processor time.
pub fn pages(operator: &Operator, door: &Door, documents: DocumentWriter, public: bool) -> Router {
    let documents = Documents::new((!public).then_some(documents));
    let shared = Arc::new(PageState::new(operator.clone(), documents, door.refused(), door.stopping()));
    let auth = Arc::new(Auth::new(door.operators(), public));
    let mut inside = Router::new()
        .route("/live", get(live))
        .route("/report", get(|shared, run| document(shared, run, Document::Report)))
        .route("/ledger", get(|shared, run| document(shared, run, Document::Ledger)))
        .route("/metrics", get(metrics))
        .route("/solution", get(solution));
    for file in FILES {
        inside = inside.route(file.path, get(move || async move { file }));
    }
    let outside = Router::new()
        .route(STYLE.path, get(|| async { STYLE }))
        .route(LOGIN.path, get(|| async { LOGIN }).post(enter))
        .with_state(Arc::clone(&auth));
    inside
        .route_layer(from_fn_with_state(auth, keep))
        .merge(outside)
        .with_state(shared)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(map_response(guard))
}

async fn document(
    State(shared): State<Arc<PageState>>,
    Query(RunQuery { run }): Query<RunQuery>,
    document: Document,
) -> Response {
    let Some(run) = run else {
        return (StatusCode::BAD_REQUEST, "name a run: ?run=RUN").into_response();
    };
    shared.documents.send(shared.operator.reader().clone(), run, document).await
}
