//! Who calls, and how quickly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::extract::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::Status;

use super::connection_table::ConnectionGuard;

/// Who calls: goes with each request of a connection.
#[derive(Clone, Debug)]
pub struct Caller(pub(crate) Arc<ConnectionGuard>);

impl Caller {
    /// Who makes a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        request.extensions().get::<Self>().expect("each connection has its caller").clone()
    }

    /// A request was let in, as far as the caller's rates allow. From then on the connection counts as authenticated.
    pub fn admit(&self) -> Result<(), Status> {
        self.0.admit(Instant::now())
    }

    /// A request came that needs no token: it is let in as far as the caller's rates allow. The connection stays
    /// unauthenticated.
    pub fn admit_open(&self) -> Result<(), Status> {
        self.0.admit_open(Instant::now())
    }

    /// A request came without the right token.
    pub fn refuse(&self) {
        self.0.refuse();
    }
}

/// A connection that notes when its caller keeps us waiting.
pub(crate) struct Connection<S> {
    pub(crate) stream: S,
    pub(crate) caller: Caller,
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            self.caller.0.set_slow();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
