//! The coordinator's end of TLS.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nqueens_model::credential::Credential;
use nqueens_proto::Role;
use nqueens_proto::tls::{InvalidPem, certificates, private_key, trouble};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, CertificateError, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::error::Error;

/// Time for a caller whose handshake failed to read the reason.
const LINGER: Duration = Duration::from_secs(1);

/// What a caller that speaks HTTP/2 asks for; browsers and Prometheus may speak HTTP/1.1.
const HTTP2: &[u8] = b"h2";

/// Proves who the coordinator is, and reads who calls.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    /// Whether callers may show certificates.
    pub(crate) asks: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

/// The authorities whose certificates callers may show, and whether they have to.
pub(crate) struct ClientAuthorities<'a> {
    pub(crate) pem: &'a [u8],
    pub(crate) required: bool,
}

impl Tls {
    /// From PEM texts.
    pub(crate) fn new(
        certificate: &[u8],
        key: &[u8],
        clients: Option<&ClientAuthorities<'_>>,
    ) -> Result<Self, Error> {
        let wrong = |what, reason: &dyn fmt::Display| Error::Tls(what, reason.to_string());
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring has TLS 1.3");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(ClientAuthorities { pem, required }) => {
                let mut roots = RootCertStore::empty();
                for ca in certificates(pem).map_err(|error| wrong("--tls-ca", &error))? {
                    roots.add(ca).map_err(|error| wrong("--tls-ca", &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                let verifier = if *required { verifier } else { verifier.allow_unauthenticated() };
                builder
                    .with_client_cert_verifier(verifier.build().map_err(|error| wrong("--tls-ca", &error))?)
            }
        };
        let certificate = certificates(certificate).map_err(|error| wrong("--tls-cert", &error))?;
        let key = private_key(key).map_err(|error| wrong("--tls-key", &error))?;
        let config = builder.with_single_cert(certificate, key);
        let mut config = config.map_err(|error| wrong("--tls-key", &InvalidPem::from(error)))?;
        config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
        // Every connection shows its certificate: a session that is taken up again would outlive it.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), asks: clients.is_some() })
    }

    /// Makes the handshake. A refused caller gets the reason before its connection is closed.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let (error, mut stream) = match self.acceptor.accept(stream).into_fallible().await {
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

/// What the certificate of a connection says.
#[derive(Clone, Debug)]
pub(crate) struct Certified {
    /// What its holder may do.
    pub(crate) roles: Vec<Role>,
    /// Its holder: the common name, or where that is none, the first digits of the certificate's SHA-256.
    pub(crate) credential: Credential,
}

impl Certified {
    /// Of the connection; `None` if it showed none.
    pub(crate) fn of(stream: &TlsStream<TcpStream>) -> Option<Self> {
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates()?.first()?;
        Some(Self { roles: roles_in(certificate), credential: holder(certificate) })
    }
}

fn roles_in(certificate: &CertificateDer<'_>) -> Vec<Role> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Vec::new() };
    let names: Vec<_> = certificate.valid_uri_names().collect();
    Role::ALL.into_iter().filter(|role| names.contains(&role.uri())).collect()
}

fn holder(certificate: &CertificateDer<'_>) -> Credential {
    let parsed = X509Certificate::from_der(certificate).ok();
    let named = parsed.and_then(|(_, certificate)| {
        let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
        Credential::named(name).ok()
    });
    named.unwrap_or_else(|| {
        let digits = hex::encode(&Sha256::digest(certificate)[..8]);
        Credential::named(&format!("certificate {digits}")).expect("a name")
    })
}

/// Why a handshake failed, and what its caller should do.
pub(crate) fn explain(error: &io::Error) -> String {
    match trouble(error) {
        Some(rustls::Error::InvalidCertificate(error)) => match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "its certificate has expired; make a new one with 'nqueens certs renew'".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet; check the clocks of both machines".to_owned()
            }
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "its certificate comes from another authority than those in this coordinator's --tls-ca"
                    .to_owned()
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                "its certificate has no role for workers or operators".to_owned()
            }
            error => format!("its certificate is invalid: {error}"),
        },
        Some(rustls::Error::NoCertificatesPresented) => {
            "it has no certificate; start it with --tls-cert and --tls-key".to_owned()
        }
        Some(rustls::Error::AlertReceived(alert)) => format!(
            "it rejects this coordinator's certificate ({alert:?}): that has expired, or is not for the name \
             in its address, or its --tls-ca has another authority"
        ),
        Some(rustls::Error::InvalidMessage(_)) => {
            "it does not use TLS; its address of this coordinator must begin with https://".to_owned()
        }
        _ => error.to_string(),
    }
}
