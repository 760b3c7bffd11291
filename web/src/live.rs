//! The page's stream of server-sent events: a picture every second, and from time to time details of the selected
//! run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use nqueens_model::id::RunId;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_stream::wrappers::ReceiverStream;

use crate::picture::detail;
use crate::shared::{PICTURE_EVERY, PageState};

/// Pictures between two looks at the chosen run.
const DETAIL_EVERY: u32 = 3;

/// Time after which a browser reconnects a lost stream.
const RETRY: Duration = Duration::from_secs(2);

/// Then a stream ends; the browser begins a new one.
pub(crate) const STREAM_LIFE: Duration = Duration::from_mins(10);

#[derive(Deserialize)]
pub(crate) struct RunQuery {
    pub(crate) run: Option<RunId>,
}

pub(crate) async fn live(
    State(shared): State<Arc<PageState>>,
    Query(RunQuery { run }): Query<RunQuery>,
) -> Response {
    if run.is_some_and(|run| shared.operator.watch().borrow().run(run).is_none()) {
        return (StatusCode::NOT_FOUND, "there is no such run here").into_response();
    }
    let Ok(place) = Arc::clone(&shared.streams).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close some").into_response();
    };
    // One event waits at most: who reads slowly misses pictures.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut stopping = shared.stopping.clone();
        tokio::select! {
            _ = timeout(STREAM_LIFE, feed(&shared, run, &sender, place)) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = sender.closed() => {}
        }
    });
    Sse::new(ReceiverStream::new(receiver)).into_response()
}

type Sender = mpsc::Sender<Result<Event, Infallible>>;

/// Sends until nobody reads any more, or the coordinator stops.
async fn feed(shared: &PageState, chosen: Option<RunId>, sender: &Sender, _place: OwnedSemaphorePermit) {
    let mut ticks = interval(PICTURE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut round, mut last) = (0, None);
    loop {
        ticks.tick().await;
        let Ok(room) = sender.reserve().await else { return };
        let Ok(picture) = shared.overview().await else { return };
        room.send(Ok(Event::default().event("picture").retry(RETRY).data(&picture.text)));
        if let Some(run) = chosen.or(picture.foremost)
            && (round % DETAIL_EVERY == 0 || last != Some(run))
        {
            let Ok(text) = shared.detail(run).get(detail(&shared.operator, run)).await else { return };
            let Ok(room) = sender.reserve().await else { return };
            room.send(Ok(Event::default().event("detail").data(&text)));
            last = Some(run);
        }
        round = round.wrapping_add(1);
    }
}
