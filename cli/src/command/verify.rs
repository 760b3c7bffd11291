//! `nqueens verify`: checks an exported ledger from the file alone.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_evidence::signature::{FileHash, Hashed, TrustedKeys};
use nqueens_evidence::verify::{Report, Unread, verify};

use super::bundle;
use super::export::signature_of;
use super::finding_lines::{print_finding, print_run};
use super::sampling::{Interrupt, Population, SamplingOptions};
use crate::exit::INTERRUPTED;
use crate::output::{Json, harmless};

/// Checks a ledger file written by 'nqueens export --format ledger', or the ledger in an archive written by 'nqueens bundle'; it
/// needs only that file.
///
/// Prints one line per check; with --json, an object per line: first the run, then 'check', 'passed' (null if the check could not be
/// made) and 'detail'. With --signer, the signature in FILE.sig is one of them. With --sample, another engine counts the mirror images of some random jobs, and the output
/// states the confidence that this gives. The exit code is 1 if a check fails or a count differs.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens verify nqueens-16.ledger --signer id_ed25519.pub --sample 300")]
pub(crate) struct VerifyCommand {
    /// Ledger file, or an archive with one
    file: PathBuf,

    /// File with the public key of the one who must have signed the file, or with several keys, one a line
    #[arg(long, value_name = "PUBLIC_KEY")]
    signer: Option<PathBuf>,

    /// Number of jobs to count again
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,

    #[command(flatten)]
    sampling: SamplingOptions,

    #[command(flatten)]
    json: Json,
}

impl VerifyCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::listen()?;
        let name = || self.file.display().to_string();
        let keys = self.signer.as_deref().map(read_keys).transpose()?;
        let mut file = Hashed::new(File::open(&self.file).with_context(name)?);
        let mut draw = self.sampling.draw(self.sample.unwrap_or(0))?;
        let check =
            |ledger: &mut dyn Read| verify(BufReader::new(ledger), &mut draw.sample, interrupt.control());
        let mut report = match bundle::with_ledger(&mut file, check).with_context(name)? {
            Err(Unread::Stopped(_)) => {
                eprintln!("nqueens: interrupted before all lines were read; nothing was verified");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            report => report.with_context(name)?,
        };
        if let Some(keys) = keys {
            // What comes after an error.
            io::copy(&mut file, &mut io::sink()).with_context(name)?;
            let verdict = check_signature(&signature_of(&self.file), &keys, file.finish().0);
            report.findings.push((Check::Signature, verdict));
        }
        self.print(&report)?;
        let mut code = if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        let mut recounted_alike = 0;
        if self.sample.is_some() && report.header.is_some() {
            for (name, _) in report.workers.values_mut() {
                *name = harmless(name);
            }
            let population = Population { jobs: report.jobs, workers: std::mem::take(&mut report.workers) };
            let recounted = draw.recount(&population, &interrupt, self.json)?;
            if recounted == ExitCode::SUCCESS {
                recounted_alike = report.jobs.min(self.sample.unwrap_or(0).into());
            } else {
                code = recounted;
            }
        }
        if let Some(counted) = report.counted {
            print_finding(self.json, Check::Confirmed.name(), &counted.verdict(recounted_alike))?;
        }
        Ok(code)
    }

    fn print(&self, report: &Report) -> io::Result<()> {
        if let Some(header) = &report.header {
            let subject = header.plan().map_or_else(String::new, |plan| plan.subject());
            print_run(self.json, (&header.run, &subject), header.plan, header.jobs.into())?;
        }
        let mut findings = report.findings.iter();
        findings.try_for_each(|(check, verdict)| print_finding(self.json, check.name(), verdict))
    }
}

fn read_keys(path: &Path) -> anyhow::Result<TrustedKeys> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    TrustedKeys::parse(&text).with_context(|| path.display().to_string())
}

fn check_signature(path: &Path, keys: &TrustedKeys, file: FileHash) -> CheckResult {
    match std::fs::read_to_string(path) {
        Ok(signature) => keys.check(&signature, file),
        Err(error) => CheckResult::Failed(format!("there is no signature: {}: {error}", path.display())),
    }
}
