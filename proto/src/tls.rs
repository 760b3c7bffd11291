//! TLS: the caller's end of a connection.

use std::error::Error;
use std::io;

use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{self, CertificateError, RootCertStore};
use tonic::transport::{Certificate, ClientTlsConfig};

/// What was given is no certificate or no key, or they don't fit; nothing of what was there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPem {
    /// Nothing that begins with `-----BEGIN CERTIFICATE-----`, or it does not end well.
    #[error("it contains no certificate; it must be PEM text")]
    Certificate,
    #[error("it contains no private key; it must be PEM text")]
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

pub fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, InvalidPem> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| InvalidPem::Key)
}

/// Whether the first certificate in a PEM text is one for this host, a name or an address.
pub fn is_for(pem: &[u8], host: &str) -> bool {
    let Ok(found) = certificates(pem) else { return false };
    let (certificate, name) = (ParsedCertificate::try_from(&found[0]), ServerName::try_from(host));
    certificate
        .is_ok_and(|certificate| name.is_ok_and(|name| verify_server_name(&certificate, &name).is_ok()))
}

pub fn is_host(text: &str) -> bool {
    ServerName::try_from(text).is_ok()
}

/// By what a caller knows its coordinator.
#[derive(Clone, Debug)]
pub struct ClientTls(pub(crate) ClientTlsConfig);

impl ClientTls {
    /// Trusts a coordinator whose certificate is one of these, or comes from one of these authorities; PEM texts.
    pub fn new(trusted: &[u8]) -> Result<Self, InvalidPem> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(trusted)? {
            roots.add(certificate)?;
        }
        Ok(Self(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(trusted))))
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

/// For a caller whose call failed: what was wrong with the coordinator's certificate, and what to do; `None` if it was
/// something else.
pub fn explain(error: &(dyn Error + 'static)) -> Option<String> {
    match trouble(error) {
        Some(rustls::Error::InvalidCertificate(error)) => Some(distrust(error)),
        Some(rustls::Error::InvalidMessage(_)) => Some(
            "it does not use TLS; write http:// where the network is trusted, or start the coordinator with --tls"
                .to_owned(),
        ),
        Some(error) => Some(format!("TLS failed: {error}")),
        // What TLS answers to HTTP/2 is no frame of that.
        None => std::iter::successors(Some(error), |&error| error.source())
            .any(|error| error.to_string().contains("frame with invalid size"))
            .then(|| {
                "it may use TLS: check whether the address must begin with https://, and give the certificate by --tls-ca \
                 or a join file"
                    .to_owned()
            }),
    }
}

fn distrust(error: &CertificateError) -> String {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the coordinator's certificate has expired; give it a new one and start it again, or correct this machine's \
             clock"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the coordinator's certificate is not valid yet; check the clocks of both machines".to_owned()
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the coordinator's certificate is neither in --tls-ca or the join file, nor from an authority that is; is it \
             another coordinator, or has it a new certificate?"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "the coordinator's certificate is not for {}, but for {}; use one of these names in the address",
            expected.to_str(),
            presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ")
        ),
        error => format!("the coordinator's certificate is invalid: {error}"),
    }
}

/// A name out of its description, as in `DnsName("head.example")`.
fn bare(name: &str) -> &str {
    let inside = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inside.map_or(name, |inside| inside.trim_matches('"'))
}
