//! A certificate authority: makes certificates, and reads them.

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use nqueens_proto::{Role, random_bytes};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};
use tracing::warn;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;

/// Tolerated difference between the clocks of machines.
const SLACK: Duration = Duration::HOUR;

fn now() -> OffsetDateTime {
    let milliseconds = i128::from(nqueens_coordinator::wall_time());
    OffsetDateTime::from_unix_timestamp_nanos(milliseconds * 1_000_000).expect("a year below 10,000")
}

/// A certificate and its private key, both as PEM text.
pub(crate) struct Made {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Whose certificate it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// The coordinator, at these names and addresses.
    Coordinator(Vec<String>),
    Caller(Role),
}

pub(crate) struct CertificateFacts {
    /// What a coordinator's is for; a caller's role; neither for an authority's.
    pub(crate) holder: Option<Holder>,
    pub(crate) subject: String,
    pub(crate) issuer: String,
    pub(crate) until: OffsetDateTime,
}

/// Reads the first certificate of a PEM text.
pub(crate) fn facts(pem: &[u8]) -> anyhow::Result<CertificateFacts> {
    let pem = Pem::iter_from_buffer(pem).next().context("it contains no certificate")??;
    let (_, certificate) = parse_x509_certificate(&pem.contents).context("it is damaged")?;
    let names = certificate.subject_alternative_name()?;
    let names = names.map_or(&[][..], |names| &names.value.general_names);
    let role = |name: &GeneralName<'_>| {
        Role::ALL.into_iter().find(|role| matches!(name, GeneralName::URI(uri) if *uri == role.uri()))
    };
    let hosts = || names.iter().filter_map(host).collect::<Vec<_>>();
    Ok(CertificateFacts {
        holder: match names.iter().find_map(role) {
            Some(role) => Some(Holder::Caller(role)),
            None if certificate.is_ca() => None,
            None => Some(Holder::Coordinator(hosts())),
        },
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        until: certificate.validity().not_after.to_datetime(),
    })
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d]).to_string()),
            _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
        },
        _ => None,
    }
}

/// The certificates in a PEM text, each as one.
pub(crate) fn split(pem: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    pem.split_inclusive(END)
        .filter(|part| part.contains(END))
        .map(|part| format!("{}\n", part.trim()))
        .collect()
}

/// A new authority. Its name has digits drawn at random, so that no two have the same.
pub(crate) fn found(days: u32) -> anyhow::Result<Made> {
    let name = format!("nqueens CA {}", hex::encode(random_bytes::<4>()));
    let mut params = params(&name, now() + Duration::days(days.into()));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    Ok(Made { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

fn params(name: &str, until: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = now() - SLACK;
    params.not_after = until;
    params.use_authority_key_identifier_extension = true;
    params
}

pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    facts: CertificateFacts,
}

impl Authority {
    /// From its certificate, the first of the text, and its key.
    pub(crate) fn read(certificate: &str, key: &str) -> anyhow::Result<Self> {
        let facts = facts(certificate.as_bytes())?;
        ensure!(
            facts.until > now(),
            "this authority has expired; create another with 'nqueens certs new-ca'"
        );
        let newest = split(certificate).into_iter().next().context("it contains no certificate")?;
        let Ok(key) = KeyPair::from_pem(key) else { bail!("its key can't be read; it must be PEM text") };
        Ok(Self { issuer: Issuer::from_ca_cert_pem(&newest, key)?, facts })
    }

    /// Whether a certificate is of this authority, by its name.
    pub(crate) fn has_issued(&self, facts: &CertificateFacts) -> bool {
        facts.issuer == self.facts.subject
    }

    /// Makes a certificate with a new key. It does not outlive the authority's own.
    pub(crate) fn issue(&self, name: &str, holder: &Holder, days: u32) -> anyhow::Result<Made> {
        let until = now() + Duration::days(days.into());
        let mut params = params(name, until.min(self.facts.until));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let (names, usage) = match holder {
            Holder::Coordinator(hosts) => {
                let names = hosts.iter().map(|host| san(host)).collect::<Result<_, _>>()?;
                (names, ExtendedKeyUsagePurpose::ServerAuth)
            }
            Holder::Caller(role) => {
                (vec![SanType::URI(role.uri().try_into()?)], ExtendedKeyUsagePurpose::ClientAuth)
            }
        };
        params.subject_alt_names = names;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        Ok(Made { certificate: params.signed_by(&key, &self.issuer)?.pem(), key: key.serialize_pem() })
    }
}

fn san(host: &str) -> Result<SanType, rcgen::Error> {
    host.parse().map_or_else(|_| Ok(SanType::DnsName(host.try_into()?)), |ip| Ok(SanType::IpAddress(ip)))
}

/// Says so if a certificate has expired or will soon.
pub(crate) fn warn_of_end(path: &Path, pem: &[u8]) {
    let Ok(facts) = facts(pem) else { return };
    let (left, certificate) = (facts.until - now(), path.display());
    let until = facts.until.date();
    if left < Duration::ZERO {
        warn!(%certificate, %until, "the certificate has expired; make a new one with 'nqueens certs renew'");
    } else if left < Duration::days(30) {
        warn!(%certificate, %until, "the certificate expires soon; make a new one with 'nqueens certs renew'");
    }
}
