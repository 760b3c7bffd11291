//! `nqueens certs`: a certificate authority and the certificates of a cluster.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, Permissions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use nqueens_proto::Role;
use tempfile::NamedTempFile;

use crate::authority::{Authority, Holder, Made, facts, found, split};
use crate::exit::misuse;
use crate::output::print_line;
use crate::permissions::warn_of_readers;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CertsAction {
    /// Create what is missing: the authority, and one certificate each for coordinator, workers and operators
    Make,
    /// Replace all certificates and their keys, from the existing authority
    Renew,
    /// Create another authority; ca.pem then holds both, and certificates of either are trusted
    NewCa,
    /// Remove the old authority from ca.pem, once its certificates are no longer in use
    RetireCa,
}

/// Creates a certificate authority, and certificates for TLS between coordinator, workers and operators.
///
/// Existing files are kept, except by the action renew. Only their owner can read private keys. The output says where each
/// file goes. Keep ca.key secret: with it, everyone can create certificates that the cluster accepts.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens certs make --host head.example,10.0.0.7")]
pub(crate) struct CertsCommand {
    /// What to do
    #[arg(default_value = "make")]
    action: CertsAction,

    /// Directory of the files; created if it does not exist
    #[arg(long, value_name = "DIR", default_value = "nqueens-certs")]
    dir: PathBuf,

    /// Host names and addresses of the coordinator [default: this host's name and localhost; with renew: those in the
    /// certificate]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = host)]
    host: Vec<String>,

    /// Names of workers; each gets its own certificate
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = name, default_value = "worker")]
    worker: Vec<String>,

    /// Names of operators; each gets its own certificate
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = name, default_value = "operator")]
    operator: Vec<String>,

    /// Validity of certificates
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650), default_value_t = 365)]
    days: u32,

    /// Validity of a new authority
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500), default_value_t = 3_650)]
    ca_days: u32,
}

const COORDINATOR: &str = "coordinator";
const CA: &str = "ca";

/// Reads a name of a certificate's files.
fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = (1..=64).contains(&text.len()) && text.chars().all(plain) && !text.starts_with('.');
    if !fits || [CA, COORDINATOR].contains(&text) {
        return Err(
            "a name has 1 to 64 letters, digits, dots, '-' and '_', and is not 'ca' or 'coordinator'".into(),
        );
    }
    Ok(text.to_owned())
}

/// Reads a host's name or address.
fn host(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let fits = text.parse::<IpAddr>().is_ok() || text.len() <= 253 && text.split('.').all(is_label);
    fits.then(|| text.to_owned())
        .ok_or_else(|| "a host is a name or an address, without http:// and port".into())
}

/// The names by which this machine is likely to be reached.
fn own_names() -> Vec<String> {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let own = host(&own).ok().filter(|own| own != "localhost");
    own.into_iter().chain(["localhost", "127.0.0.1", "::1"].map(str::to_owned)).collect()
}

impl CertsCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let mut names = BTreeSet::new();
        if let Some(twice) = self.worker.iter().chain(&self.operator).find(|name| !names.insert(*name)) {
            misuse(format_args!("'{twice}' is given twice; each certificate needs its own name")).exit();
        }
        let dir = Folder(self.dir.clone());
        match self.action {
            CertsAction::Make => self.make(&dir)?,
            CertsAction::Renew => self.renew(&dir)?,
            CertsAction::NewCa => self.new_ca(&dir)?,
            CertsAction::RetireCa => retire_ca(&dir)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn make(&self, dir: &Folder) -> anyhow::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir.0)
            .with_context(|| dir.0.display().to_string())?;
        if !dir.has(CA)? {
            dir.write(CA, &found(self.ca_days)?, false)?;
        }
        let authority = dir.authority()?;
        let hosts = if self.host.is_empty() { own_names() } else { self.host.clone() };
        let of = |role, names: &[String]| {
            names.iter().map(|name| (name.clone(), Holder::Caller(role))).collect::<Vec<_>>()
        };
        let coordinator = (COORDINATOR.to_owned(), Holder::Coordinator(hosts));
        let wanted = std::iter::once(coordinator);
        let wanted = wanted.chain(of(Role::Worker, &self.worker)).chain(of(Role::Operator, &self.operator));
        let mut kept = Vec::new();
        for (name, holder) in wanted {
            if dir.has(&name)? {
                kept.push(format!("{name}.pem"));
            } else {
                dir.write(&name, &authority.issue(&name, &holder, self.days)?, false)?;
            }
        }
        dir.list()?;
        if !kept.is_empty() {
            print_line(format_args!(
                "\nkept existing files: {}; 'nqueens certs renew' replaces them",
                kept.join(", ")
            ))?;
        }
        Ok(())
    }

    fn renew(&self, dir: &Folder) -> anyhow::Result<()> {
        let authority = dir.authority()?;
        for name in dir.names()? {
            let holder = match dir.holder(&name)? {
                Holder::Coordinator(_) if !self.host.is_empty() => Holder::Coordinator(self.host.clone()),
                holder => holder,
            };
            dir.write(&name, &authority.issue(&name, &holder, self.days)?, true)?;
        }
        dir.list()?;
        print_line(
            "\ncopy the new files to their machines and restart coordinator and workers; no work is lost",
        )?;
        Ok(())
    }

    fn new_ca(&self, dir: &Folder) -> anyhow::Result<()> {
        // Read, so that nobody replaces what is none.
        let former =
            split(&dir.read("ca.pem")?).into_iter().next().context("ca.pem contains no certificate")?;
        let Made { certificate, key } = found(self.ca_days)?;
        dir.write(CA, &Made { certificate: certificate + &former, key }, true)?;
        dir.list()?;
        print_line(
            "\nca.pem holds both authorities. Copy it to every machine and restart coordinator and workers. Then run 'nqueens \
             certs renew' and copy the new certificates. Then run 'nqueens certs retire-ca' and copy ca.pem again",
        )?;
        Ok(())
    }
}

fn retire_ca(dir: &Folder) -> anyhow::Result<()> {
    let (authority, all) = (dir.authority()?, split(&dir.read("ca.pem")?));
    for name in dir.names()? {
        let facts = facts(dir.read(&format!("{name}.pem"))?.as_bytes())?;
        ensure!(
            authority.has_issued(&facts),
            "{name}.pem was signed by the old authority; run 'nqueens certs renew' first, and copy the new files to their \
             machines"
        );
    }
    let newest = all.first().context("ca.pem contains no certificate")?;
    dir.put("ca.pem", newest, 0o644, true)?;
    dir.list()?;
    print_line(
        "\nca.pem holds only the newest authority; copy it to every machine and restart coordinator and workers",
    )?;
    Ok(())
}

/// The directory of the files.
struct Folder(PathBuf);

impl Folder {
    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.path(file);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    /// Whether a certificate and its key are there; half of it is an error.
    fn has(&self, name: &str) -> anyhow::Result<bool> {
        let there = ["pem", "key"].map(|end| self.path(&format!("{name}.{end}")).exists());
        if there[0] != there[1] {
            let (there, missing) = if there[0] { ("pem", "key") } else { ("key", "pem") };
            bail!(
                "{0}.{there} exists but {0}.{missing} does not; restore it, or move both away",
                self.path(name).display()
            );
        }
        Ok(there[0])
    }

    fn authority(&self) -> anyhow::Result<Authority> {
        let [certificate, key] = ["ca.pem", "ca.key"].map(|file| self.read(file));
        warn_of_readers(&self.path("ca.key"));
        Authority::read(&certificate?, &key?).with_context(|| self.path("ca.pem").display().to_string())
    }

    /// The names of all certificates but the authority's that have their keys beside them, in order.
    fn names(&self) -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.0).with_context(|| self.0.display().to_string())? {
            let file = PathBuf::from(entry?.file_name());
            let stem = file.file_stem().and_then(|stem| stem.to_str());
            if let Some(name) =
                stem.filter(|name| *name != CA && file.extension().is_some_and(|end| end == "pem"))
                && self.has(name)?
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable_by_key(|name| (name != COORDINATOR, name.clone()));
        Ok(names)
    }

    fn holder(&self, name: &str) -> anyhow::Result<Holder> {
        let file = format!("{name}.pem");
        let facts = facts(self.read(&file)?.as_bytes()).context(file.clone())?;
        facts.holder.with_context(|| format!("{file} is the certificate of an authority; move it elsewhere"))
    }

    /// Stores a certificate and its key.
    fn write(&self, name: &str, made: &Made, replace: bool) -> anyhow::Result<()> {
        self.put(&format!("{name}.key"), &made.key, 0o600, replace)?;
        self.put(&format!("{name}.pem"), &made.certificate, 0o644, replace)
    }

    /// Stores a file, whole or not at all; nobody else can read it before it has its mode.
    fn put(&self, file: &str, text: &str, mode: u32, replace: bool) -> anyhow::Result<()> {
        let path = self.path(file);
        let store = || {
            let mut temporary = NamedTempFile::new_in(&self.0)?;
            temporary.write_all(text.as_bytes())?;
            temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
            temporary.as_file().sync_all()?;
            if replace { temporary.persist(&path) } else { temporary.persist_noclobber(&path) }
                .map(drop)
                .map_err(|error| error.error)
        };
        store().with_context(|| path.display().to_string())
    }

    /// Prints what is there and where it goes.
    fn list(&self) -> anyhow::Result<()> {
        let shown = |path: &Path| path.display().to_string();
        print_line(format_args!("in {}:", shown(&self.0)))?;
        let authorities = split(&self.read("ca.pem")?);
        let until = facts(authorities.concat().as_bytes())?.until.date();
        let both = if authorities.len() > 1 { ", and the old one" } else { "" };
        line("ca.pem", &format!("the authority, until {until}{both}"), "every machine: --tls-ca")?;
        line("ca.key", "its key", "nowhere: keep it here or offline")?;
        for name in self.names()? {
            let (facts, files) =
                (facts(self.read(&format!("{name}.pem"))?.as_bytes())?, format!("{name}.pem, .key"));
            let until = facts.until.date();
            match facts.holder {
                Some(Holder::Coordinator(hosts)) => {
                    let what = format!("coordinator {}, until {until}", hosts.join(" "));
                    line(&files, &what, "the coordinator's machine: --tls-cert, --tls-key")?;
                }
                Some(Holder::Caller(role)) => {
                    let machines =
                        if role == Role::Worker { "workers' machines" } else { "operators' machines" };
                    line(
                        &files,
                        &format!("{role}, until {until}"),
                        &format!("{machines}: --tls-cert, --tls-key"),
                    )?;
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn line(files: &str, what: &str, whither: &str) -> std::io::Result<()> {
    print_line(format_args!("  {files:<24} {what}\n  {:<24} -> {whither}", ""))
}
