//! A finished run's report and its ledger, written when somebody asks for them.
//!
//! Whoever writes one reads the whole run, and for a report makes all checks: one is written at a time. It goes out as it is
//! written, so a slow reader takes no memory, and the end of the connection ends the writing.

use std::error::Error;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::Arc;
use std::thread;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use nqueens_coordinator::{Reader, RunRow};
use nqueens_model::id::RunId;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tracing::warn;

/// Bytes that are sent at once.
const CHUNK: usize = 64 << 10;

/// What can be written of a run that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A page that stands on its own.
    Report,
    /// All jobs and results, for `nqueens verify`.
    Ledger,
}

impl Document {
    /// The ending of its file, and its type for browsers.
    const fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Report => ("html", "text/html; charset=utf-8"),
            Self::Ledger => ("ledger", "text/plain; charset=utf-8"),
        }
    }
}

/// Writes a document. It may block; the runtime is for what does not.
pub type DocumentWriter =
    fn(Document, &Handle, &Reader, &RunRow, PipeWriter) -> Result<(), Box<dyn Error + Send + Sync>>;

pub(crate) struct Documents {
    write: Option<DocumentWriter>,
    writing: Arc<Semaphore>,
}

impl Documents {
    /// Without a writer there are none.
    pub(crate) fn new(write: Option<DocumentWriter>) -> Self {
        Self { write, writing: Arc::new(Semaphore::new(1)) }
    }

    pub(crate) fn are_written(&self) -> bool {
        self.write.is_some()
    }

    /// A document of a run as a file for the browser to keep.
    pub(crate) async fn send(&self, reader: Reader, run: RunId, document: Document) -> Response {
        let run = match reader.run(run).await {
            Ok(run) => run,
            Err(error) => return (StatusCode::NOT_FOUND, error.to_string()).into_response(),
        };
        if run.outcome.is_none() {
            return (StatusCode::CONFLICT, "this run is not done").into_response();
        }
        let Some(write) = self.write else {
            return (StatusCode::FORBIDDEN, "a page that everyone can see writes no documents")
                .into_response();
        };
        let Ok(place) = Arc::clone(&self.writing).try_acquire_owned() else {
            let busy = "another document is being written; try again soon";
            return (StatusCode::SERVICE_UNAVAILABLE, busy).into_response();
        };
        written(write, place, reader, run, document)
    }
}

fn written(
    write: DocumentWriter,
    place: OwnedSemaphorePermit,
    reader: Reader,
    run: RunRow,
    document: Document,
) -> Response {
    let (sent, sending) = match io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    };
    let (ending, content_type) = document.kind();
    let name = format!("attachment; filename=\"{}.{ending}\"", run.plan.file_stem());
    let (chunks, body) = mpsc::channel(1);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let _place = place;
        thread::scope(|scope| {
            let writing = scope.spawn(|| write(document, &runtime, &reader, &run, sending));
            let gone = !pass_on(sent, &chunks);
            let outcome = writing.join().unwrap_or_else(|_| Err("it panicked".into()));
            if let Some(error) = outcome.err().filter(|_| !gone) {
                warn!(run = %run.id, ?document, %error, "a document could not be written to its end");
                // Without this, what was cut off would look whole.
                drop(chunks.blocking_send(Err(io::Error::other(error))));
            }
        });
    });
    let headers = [(CONTENT_TYPE, content_type), (CONTENT_DISPOSITION, name.as_str())];
    (headers, Body::from_stream(ReceiverStream::new(body))).into_response()
}

/// Passes on what is written, to its end; false if nobody wants more.
fn pass_on(mut sent: PipeReader, chunks: &mpsc::Sender<io::Result<Bytes>>) -> bool {
    let mut buffer = vec![0; CHUNK];
    loop {
        match sent.read(&mut buffer) {
            Ok(0) => return true,
            Ok(read) => {
                if chunks.blocking_send(Ok(Bytes::copy_from_slice(&buffer[..read]))).is_err() {
                    return false;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return chunks.blocking_send(Err(error)).is_ok(),
        }
    }
}
