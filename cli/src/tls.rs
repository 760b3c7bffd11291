//! TLS: certificates from files, and the one that a coordinator makes for itself.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use nqueens_coordinator::Access;
use nqueens_fleet::folder::replace;
use nqueens_proto::ClientTls;
use nqueens_proto::tls::{InvalidPem, certificates, is_for, is_host, private_key};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use time::{Duration, OffsetDateTime};
use tracing::info;

use crate::headings::CONNECTION;
use crate::permissions::read_secret;

/// How long a coordinator's own certificate is valid: it is trusted by itself, so whoever has it must get another one then.
const VALID: Duration = Duration::days(3_650);

/// Tolerated difference between the clocks of machines.
const SLACK: Duration = Duration::HOUR;

/// How a caller knows its coordinator.
#[derive(Clone, Debug, Args)]
pub(crate) struct CallerTls {
    /// For https:// addresses: the coordinator's certificate, or that of the authority that signed it (PEM)
    #[arg(long = "tls-ca", value_name = "FILE", help_heading = CONNECTION)]
    ca: Option<PathBuf>,
}

impl CallerTls {
    /// Reads the file; `None` if there is no such setting.
    pub(crate) fn read(&self) -> anyhow::Result<Option<ClientTls>> {
        self.pem()?.map(|pem| ClientTls::new(&pem)).transpose().context("--tls-ca")
    }

    /// The file's content; `None` if there is no such setting.
    pub(crate) fn pem(&self) -> anyhow::Result<Option<Vec<u8>>> {
        self.ca.as_deref().map(|ca| read(ca, &certificates)).transpose()
    }
}

/// How a coordinator shows who it is.
#[derive(Clone, Debug, Args)]
pub(crate) struct CoordinatorTls {
    /// Encrypt all connections. The first start makes a certificate and keeps it beside the database, with the endings .pem
    /// and .key; callers trust it by --tls-ca or their join file
    #[arg(long, help_heading = CONNECTION)]
    tls: bool,

    /// Names and addresses in that certificate by which callers reach the coordinator, beside this host's name and localhost
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = host, requires = "tls", help_heading = CONNECTION)]
    tls_host: Vec<String>,

    /// Encrypt all connections, with this certificate (PEM)
    #[arg(long = "tls-cert", value_name = "FILE", requires = "key", conflicts_with = "tls", help_heading = CONNECTION)]
    cert: Option<PathBuf>,

    /// Private key of that certificate (PEM)
    #[arg(long = "tls-key", value_name = "FILE", requires = "cert", help_heading = CONNECTION)]
    key: Option<PathBuf>,
}

impl CoordinatorTls {
    /// Has the coordinator of a database use TLS, if that is wanted.
    pub(crate) fn apply(&self, access: Access, db: &Path) -> anyhow::Result<Access> {
        let (certificate, key) = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            _ if self.tls => self.own(db)?,
            _ => return Ok(access),
        };
        let name = || key.display().to_string();
        let secret = read_secret(&key).with_context(name)?;
        private_key(&secret).with_context(name)?;
        Ok(access.with_tls(&read(&certificate, &certificates)?, &secret)?)
    }

    /// The files of the certificate of a database's coordinator, and of its key; made if there are none.
    fn own(&self, db: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
        let beside = |end: &str| {
            let mut name = db.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        };
        let (certificate, key) = (beside(".pem"), beside(".key"));
        if !certificate.exists() {
            make(&certificate, &key, self.tls_host.iter().cloned().chain(own_names()))?;
            info!(certificate = %certificate.display(), "a certificate is made; callers trust it by --tls-ca or a join file");
        }
        let pem = read(&certificate, &certificates)?;
        if let Some(host) = self.tls_host.iter().find(|host| !is_for(&pem, host)) {
            let (certificate, key) = (certificate.display(), key.display());
            bail!(
                "{certificate} is not for {host}; remove it and {key} to have another made, and give that to all callers"
            );
        }
        Ok((certificate, key))
    }
}

/// Makes a certificate that is signed by its own key.
fn make(certificate: &Path, key: &Path, hosts: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut params = CertificateParams::new(hosts.collect::<Vec<_>>())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "nqueens coordinator");
    let now = OffsetDateTime::now_utc();
    (params.not_before, params.not_after) = (now - SLACK, now + VALID);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let pair = KeyPair::generate()?;
    // In this order: a key without a certificate is made again.
    replace(key, &pair.serialize_pem(), 0o600)?;
    Ok(replace(certificate, &params.self_signed(&pair)?.pem(), 0o644)?)
}

/// The names by which this machine is likely to be reached.
fn own_names() -> impl Iterator<Item = String> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let own = host(&own).ok().filter(|own| own != "localhost");
    own.into_iter().chain(["localhost", "127.0.0.1", "::1"].map(str::to_owned))
}

fn host(text: &str) -> Result<String, String> {
    is_host(text)
        .then(|| text.to_owned())
        .ok_or_else(|| "a host is a name or an address, without http:// and port".into())
}

/// Reads a file that has what it should.
fn read<T>(path: &Path, what: &dyn Fn(&[u8]) -> Result<T, InvalidPem>) -> anyhow::Result<Vec<u8>> {
    let pem = std::fs::read(path).with_context(|| path.display().to_string())?;
    what(&pem).with_context(|| path.display().to_string())?;
    Ok(pem)
}
