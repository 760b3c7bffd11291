//! `nqueens verify`: checks an exported ledger from the file alone.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_evidence::finding::Check;
use nqueens_evidence::verify::{Report, Unread, verify};

use super::finding_lines::{print_finding, print_run};
use super::sampling::{Interrupt, Population, SamplingOptions};
use crate::exit::INTERRUPTED;
use crate::output::{Json, harmless};

/// Checks a ledger file written by 'nqueens export --format ledger'; it needs only that file.
///
/// Prints one line per check; with --json, an object per line: first the run, then 'check', 'passed' (null if the check could not be
/// made) and 'detail'. With --sample, another engine counts the mirror images of some random jobs, and the output states the
/// confidence that this gives. The exit code is 1 if a check fails or a count differs.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens verify nqueens-16.ledger --sample 300")]
pub(crate) struct VerifyCommand {
    /// Ledger file
    file: PathBuf,

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
        let file = BufReader::new(File::open(&self.file).with_context(name)?);
        let mut draw = self.sampling.draw(self.sample.unwrap_or(0))?;
        let mut report = match verify(file, &mut draw.sample, interrupt.control()) {
            Err(Unread::Stopped(_)) => {
                eprintln!("nqueens: interrupted before all lines were read; nothing was verified");
                return Ok(ExitCode::from(INTERRUPTED));
            }
            report => report.with_context(name)?,
        };
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
