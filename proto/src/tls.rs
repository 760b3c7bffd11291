//! TLS: the roles in certificates, and the caller's end of a connection.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::io::AsyncBufReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, ClientConfig, RootCertStore};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Take jobs and report results.
    Worker,
    /// Plan, watch and change runs.
    Operator,
}

impl Role {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Worker, Self::Operator];

    /// How a client certificate says it: as a URI among its subject alternative names. One certificate may say both.
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Worker => "urn:nqueens:worker",
            Self::Operator => "urn:nqueens:operator",
        }
    }
}

/// What was given is no certificate or no key, or they don't fit; nothing of what was there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPem {
    /// Nothing that begins with `-----BEGIN CERTIFICATE-----`, or it does not end well.
    #[error("it contains no certificate; it must be PEM text, as 'nqueens certs' writes it")]
    Certificate,
    /// No private key.
    #[error("it contains no private key; it must be PEM text, as 'nqueens certs' writes it")]
    Key,
    /// Both are there and are of no use.
    #[error("{0}")]
    Unfit(String),
}

impl From<rustls::Error> for InvalidPem {
    fn from(error: rustls::Error) -> Self {
        Self::Unfit(match error {
            rustls::Error::InconsistentKeys(_) => "the key does not belong to this certificate".to_owned(),
            error => error.to_string(),
        })
    }
}

/// The certificates in a PEM text, at least one.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, InvalidPem> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or(InvalidPem::Certificate)
}

/// The private key in a PEM text.
pub fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, InvalidPem> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| InvalidPem::Key)
}

/// By what a caller knows its coordinator, and shows who it is itself. Nothing prints it.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// Trusts a coordinator whose certificate comes from one of these authorities, and shows a certificate, with its key,
    /// to one that asks for it; all as PEM texts.
    pub fn new(ca: &[u8], own: Option<(&[u8], &[u8])>) -> Result<Self, InvalidPem> {
        let mut roots = RootCertStore::empty();
        for ca in certificates(ca)? {
            roots.add(ca)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("ring has TLS 1.3")
            .with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?)?
            }
        };
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(Self(Arc::new(config)))
    }

    /// Shakes hands with the coordinator at this address, and waits for its first word: what it thinks of the caller's
    /// certificate comes only then.
    pub(crate) async fn connect(&self, stream: TcpStream, host: &str) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let mut stream = TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await?;
        if stream.fill_buf().await?.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the coordinator closed the connection",
            ));
        }
        Ok(stream)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls(..)")
    }
}

/// What TLS found wrong, if that is what an error is about.
pub fn trouble<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inside = |error: &'a (dyn Error + 'static)| match error.downcast_ref::<io::Error>() {
        // An error of input hides the one in it from the chain of causes.
        Some(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
        None => error.downcast_ref(),
    };
    std::iter::successors(Some(error), |&error| error.source()).find_map(inside)
}

/// For a caller whose call failed: what was wrong between the certificates, and what to do; `None` if it was something
/// else.
pub fn explain(error: &(dyn Error + 'static)) -> Option<String> {
    match trouble(error) {
        Some(rustls::Error::InvalidCertificate(error)) => Some(distrust(error)),
        Some(rustls::Error::AlertReceived(alert)) => Some(refusal(*alert)),
        Some(rustls::Error::InvalidMessage(_)) => Some(
            "it does not use TLS; write http:// where the network is trusted, or give the coordinator a certificate"
                .to_owned(),
        ),
        Some(error) => Some(format!("TLS failed: {error}")),
        None => None,
    }
}

/// Why the coordinator's certificate is refused.
fn distrust(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the coordinator's certificate has expired; make a new one with 'nqueens certs renew' and restart the \
             coordinator with it, or correct this machine's clock"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the coordinator's certificate is not valid yet; check the clocks of both machines".to_owned()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the coordinator's certificate comes from another authority than those in --tls-ca; give the ca.pem that \
             was made together with it"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the coordinator's certificate is not for {}, but for {}; use one of these names in the address, or make \
             one for this name with 'nqueens certs renew --host'",
            expected.to_str(),
            presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
        ),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the coordinator's certificate is not for coordinators; start it with coordinator.pem"
                .to_owned()
        }
        error => format!("the coordinator's certificate is invalid: {error}"),
    }
}

/// A name out of its description, as in `DnsName("head.example")`.
fn bare(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.map_or(name, |inside| inside.trim_matches('"'))
}

/// Why the caller's certificate is not taken.
fn refusal(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            "the coordinator requires a certificate; give --tls-cert and --tls-key".to_owned()
        }
        AlertDescription::CertificateExpired => {
            "the coordinator says that the certificate in --tls-cert has expired or is not valid yet; make a new one \
             with 'nqueens certs renew' and start again with it, or correct the clocks"
                .to_owned()
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "the coordinator does not trust the authority of the certificate in --tls-cert; have one made by the \
             authority in the coordinator's --tls-ca"
                .to_owned()
        }
        alert => format!(
            "the coordinator rejects the certificate in --tls-cert ({alert:?}); its log says why"
        ),
    }
}
