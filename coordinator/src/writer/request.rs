//! The queue to the writer: requests with their answers, and questions.

use std::sync::Arc;

use nqueens_scheduler::{Dispatch, Millis, Needs, Refusal, Request, Transaction};
use tokio::sync::{mpsc, oneshot};
use tracing::Span;

use crate::error::Error;

/// Requests that may wait; who comes later waits for a place.
const QUEUE_MAX: usize = 1_024;

/// What comes to the writer.
pub(super) enum Message {
    /// To be applied in the next transaction, and answered after its commit.
    Request(Box<dyn Pending>),
    /// A question about the state as it is committed; needs no transaction.
    Question(Question),
    /// Jobs of a run that was not planned to its end are to go, a batch of them; the answer is whether all are gone.
    Discard(oneshot::Sender<Result<bool, Arc<Error>>>),
    /// The writer accepts no more messages, and ends after it has answered the waiting ones.
    Close,
}

pub(super) type Question = Box<dyn FnOnce(&Dispatch, Millis) + Send>;

/// A request on its way, whatever its kind.
pub(super) trait Pending: Send {
    /// Says what has to be loaded before.
    fn needs(&self, needs: &mut Needs);

    /// Applies it, and keeps the answer.
    fn apply(&mut self, transaction: &mut Transaction<'_>);

    /// Answers, now that the transaction is committed, or has failed for this cause.
    fn answer(self: Box<Self>, failure: Option<&Arc<Error>>);
}

/// A request, then its answer, and the channel to its sender.
struct Envelope<R: Request> {
    request: Option<R>,
    answer: Option<Result<R::Answer, Refusal>>,
    /// Of the call that asks, if one does.
    span: Span,
    asker: oneshot::Sender<Result<R::Answer, Arc<Error>>>,
}

impl<R: Request> Pending for Envelope<R> {
    fn needs(&self, needs: &mut Needs) {
        if let Some(request) = &self.request {
            request.needs(needs);
        }
    }

    fn apply(&mut self, transaction: &mut Transaction<'_>) {
        self.answer = self.request.take().map(|request| self.span.in_scope(|| transaction.apply(request)));
    }

    fn answer(self: Box<Self>, failure: Option<&Arc<Error>>) {
        let answer = match (failure, self.answer) {
            (None, Some(answer)) => answer.map_err(|refusal| Arc::new(refusal.into())),
            (Some(failure), _) => Err(Arc::clone(failure)),
            (None, None) => Err(Arc::new(Error::ShuttingDown)),
        };
        // Whoever asked may have gone; the commit stands all the same.
        drop(self.asker.send(answer));
    }
}

/// The way to the writer; cheap to clone.
#[derive(Clone)]
pub(crate) struct Handle {
    queue: mpsc::Sender<Message>,
}

impl Handle {
    /// A way to a writer, and where what comes that way arrives.
    pub(super) fn new() -> (Self, mpsc::Receiver<Message>) {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        (Self { queue }, messages)
    }

    /// Asks for something and waits for the commit. The error is a refusal, or that of the transaction that the request
    /// was in with others.
    pub(crate) async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, Arc<Error>> {
        let (asker, answered) = oneshot::channel();
        let envelope = Envelope { request: Some(request), answer: None, span: Span::current(), asker };
        self.send(Message::Request(Box::new(envelope)), answered).await?
    }

    /// Looks at the state as it is committed.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Dispatch, Millis) -> T + Send + 'static,
    ) -> Result<T, Arc<Error>> {
        let (asker, answered) = oneshot::channel();
        let question = |dispatch: &Dispatch, now| drop(asker.send(question(dispatch, now)));
        self.send(Message::Question(Box::new(question)), answered).await
    }

    /// Removes all runs that were not planned to their ends. Each transaction removes some of their jobs, so that others have
    /// their turn in between.
    pub(crate) async fn discard_unplanned(&self) -> Result<(), Arc<Error>> {
        loop {
            let (asker, answered) = oneshot::channel();
            if self.send(Message::Discard(asker), answered).await?? {
                return Ok(());
            }
        }
    }

    /// Has the writer end; it may have ended already.
    pub(crate) async fn close(&self) {
        drop(self.queue.send(Message::Close).await);
    }

    async fn send<T>(&self, message: Message, answered: oneshot::Receiver<T>) -> Result<T, Arc<Error>> {
        let gone = || Arc::new(Error::ShuttingDown);
        self.queue.send(message).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())
    }
}
