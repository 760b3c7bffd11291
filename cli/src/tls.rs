//! Certificates and keys from files.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use nqueens_coordinator::Access;
use nqueens_proto::ClientTls;
use nqueens_proto::tls::{InvalidPem, certificates, private_key};

use crate::authority::warn_of_end;
use crate::exit::misuse;
use crate::headings::CONNECTION;
use crate::permissions::{read_secret, warn_of_readers};

/// How a caller knows its coordinator, and shows who it is.
#[derive(Clone, Debug, Args)]
pub(crate) struct CallerTls {
    /// For https:// addresses: certificate of the authority that signed the coordinator's (PEM)
    #[arg(long = "tls-ca", value_name = "FILE", help_heading = CONNECTION)]
    ca: Option<PathBuf>,

    /// Certificate to present to the coordinator instead of a token (PEM)
    #[arg(long = "tls-cert", value_name = "FILE", help_heading = CONNECTION)]
    cert: Option<PathBuf>,

    /// Private key of that certificate (PEM)
    #[arg(long = "tls-key", value_name = "FILE", help_heading = CONNECTION)]
    key: Option<PathBuf>,
}

impl CallerTls {
    /// Whether a certificate goes with the calls.
    pub(crate) fn shows_certificate(&self) -> bool {
        self.cert.is_some()
    }

    /// Reads the files; `None` if there are no such settings.
    pub(crate) fn read(&self) -> anyhow::Result<Option<ClientTls>> {
        let Some(CallerPems { authority, own }) = self.pems()? else { return Ok(None) };
        let own = own.as_ref().map(|(certificate, key)| (&**certificate, &**key));
        Ok(Some(ClientTls::new(&authority, own).context("--tls-ca, --tls-cert, --tls-key")?))
    }

    /// The files' contents; `None` if there are no such settings.
    pub(crate) fn pems(&self) -> anyhow::Result<Option<CallerPems>> {
        let pair = pair(self.cert.as_deref(), self.key.as_deref());
        let Some(ca) = &self.ca else {
            if pair.is_some() {
                misuse("--tls-cert requires --tls-ca, which verifies the coordinator").exit();
            }
            return Ok(None);
        };
        let authority = read(ca, &certificates)?;
        let own = pair.map(|(certificate, key)| anyhow::Ok((own(certificate)?, own_key(key)?)));
        Ok(Some(CallerPems { authority, own: own.transpose()? }))
    }
}

/// A caller's certificates as PEM texts.
pub(crate) struct CallerPems {
    /// Of the authority that signed the coordinator's.
    pub(crate) authority: Vec<u8>,
    /// The caller's own, and its private key.
    pub(crate) own: Option<(Vec<u8>, Vec<u8>)>,
}

/// How a coordinator shows who it is, and knows its callers.
#[derive(Clone, Debug, Args)]
pub(crate) struct CoordinatorTls {
    /// The coordinator's certificate (PEM); enables TLS
    #[arg(long = "tls-cert", value_name = "FILE", help_heading = CONNECTION)]
    cert: Option<PathBuf>,

    /// Private key of that certificate (PEM)
    #[arg(long = "tls-key", value_name = "FILE", help_heading = CONNECTION)]
    key: Option<PathBuf>,

    /// Certificate of the authority that signs client certificates (PEM); workers and operators with such a
    /// certificate need no token
    #[arg(long = "tls-ca", value_name = "FILE", help_heading = CONNECTION)]
    ca: Option<PathBuf>,
}

impl CoordinatorTls {
    /// Reads the files and has the coordinator use them, if there are such settings.
    pub(crate) fn apply(&self, access: Access) -> anyhow::Result<Access> {
        let Some((certificate, key)) = pair(self.cert.as_deref(), self.key.as_deref()) else {
            if self.ca.is_some() {
                misuse("--tls-ca requires --tls-cert and --tls-key").exit();
            }
            return Ok(access);
        };
        let ca = self.ca.as_deref().map(|ca| read(ca, &certificates)).transpose()?;
        Ok(access.with_tls(&own(certificate)?, &own_key(key)?, ca.as_deref())?)
    }
}

fn pair<'a>(certificate: Option<&'a Path>, key: Option<&'a Path>) -> Option<(&'a Path, &'a Path)> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => misuse("--tls-cert and --tls-key must be given together").exit(),
    }
}

/// Reads an own certificate, and says so if it has expired or will soon.
fn own(path: &Path) -> anyhow::Result<Vec<u8>> {
    let pem = read(path, &certificates)?;
    warn_of_end(path, &pem);
    Ok(pem)
}

/// Reads the key of an own certificate, and says so if others can read it.
fn own_key(path: &Path) -> anyhow::Result<Vec<u8>> {
    let name = || path.display().to_string();
    let pem = read_secret(path).with_context(name)?;
    private_key(&pem).with_context(name)?;
    warn_of_readers(path);
    Ok(pem)
}

/// Reads a file that has what it should.
fn read<T>(path: &Path, what: &dyn Fn(&[u8]) -> Result<T, InvalidPem>) -> anyhow::Result<Vec<u8>> {
    let pem = std::fs::read(path).with_context(|| path.display().to_string())?;
    what(&pem).with_context(|| path.display().to_string())?;
    Ok(pem)
}
