//! The coordinator's end of TLS: version 1.3, with one certificate. Callers show tokens, no certificates.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nqueens_proto::tls::{InvalidPem, certificates, private_key, trouble};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::error::Error;

/// What a caller that speaks HTTP/2 asks for; browsers and Prometheus may speak HTTP/1.1.
const HTTP2: &[u8] = b"h2";

/// Time for a caller whose handshake failed to read the reason.
const LINGER: Duration = Duration::from_secs(1);

/// Proves who the coordinator is.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// From PEM texts.
    pub(crate) fn new(certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        let wrong = |what, reason: InvalidPem| Error::Tls(what, reason.to_string());
        let certificate = certificates(certificate).map_err(|error| wrong("--tls-cert", error))?;
        let key = private_key(key).map_err(|error| wrong("--tls-key", error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(certificate, key);
        let mut config = config.map_err(|error| wrong("--tls-key", error.into()))?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Makes the handshake. A refused caller gets the reason before its connection is closed.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let (error, mut stream) = match self.0.accept(stream).into_fallible().await {
            Ok(stream) => return Ok(stream),
            Err(failed) => failed,
        };
        // What the caller has sent meanwhile has to be read: closing before that takes the alert back.
        let farewell = async {
            stream.shutdown().await?;
            let mut rest = [0; 4 << 10];
            while stream.read(&mut rest).await? > 0 {}
            Ok::<_, io::Error>(())
        };
        // The error that counts is the first one.
        drop(tokio::time::timeout(LINGER, farewell).await);
        Err(error)
    }
}

/// Whether a caller has asked for HTTP/2.
pub(crate) fn is_http2(stream: &TlsStream<TcpStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

/// Why a handshake failed, and what its caller should do.
pub(crate) fn explain(error: &io::Error) -> String {
    match trouble(error) {
        Some(rustls::Error::AlertReceived(alert)) => format!(
            "it rejects this coordinator's certificate ({alert:?}): that has expired, or is not for the name \
             in its address, or is not the one that it trusts"
        ),
        Some(rustls::Error::InvalidMessage(_)) => {
            "it does not use TLS; its address of this coordinator must begin with https://".to_owned()
        }
        _ => error.to_string(),
    }
}
