//! A connection that can be closed from outside.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tonic::Status;
use tonic::transport::server::Connected;

use super::connection_table::ConnectionGuard;

/// Encrypted or not.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// Who calls: goes with each request of a connection.
#[derive(Clone, Debug)]
pub struct Caller(pub(crate) Arc<ConnectionGuard>);

impl Caller {
    /// A request was let in, as far as the caller's rates allow. From then on the connection counts as authenticated.
    pub fn admit(&self) -> Result<(), Status> {
        self.0.admit(Instant::now())
    }

    /// A request came that needs no token: it is let in as far as the caller's rates allow. The connection stays
    /// unauthenticated.
    pub fn admit_open(&self) -> Result<(), Status> {
        self.0.admit_open(Instant::now())
    }

    /// A request came without the right token. Waits before it is answered, if that is to be slow.
    pub async fn refuse(&self) {
        self.0.refuse();
        sleep(self.0.slow_down(Instant::now())).await;
    }
}

/// A connection; it fails once its connection is to end.
pub struct Connection {
    pub(crate) stream: Box<dyn ByteStream>,
    pub(crate) caller: Caller,
    /// Nothing once it has.
    pub(crate) ended: Option<oneshot::Receiver<()>>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({:?})", self.caller)
    }
}

impl Connection {
    /// Who calls.
    pub fn caller(&self) -> Caller {
        self.caller.clone()
    }

    /// Fails once the connection is to end; until then, has whoever waits for the stream wake for that too.
    fn goes_on(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Some(ended) = &mut self.ended
            && Pin::new(ended).poll(context).is_pending()
        {
            return Ok(());
        }
        self.ended = None;
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.goes_on(context)?;
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if read.is_pending() {
            self.caller.0.set_slow();
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.goes_on(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.goes_on(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.goes_on(context)?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
