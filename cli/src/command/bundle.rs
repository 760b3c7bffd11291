//! `nqueens bundle`: all there is to publish about a finished run, in one archive.
//!
//! ```text
//! nqueens-16/nqueens-16.ledger   every job and every result: what `nqueens verify` checks
//! nqueens-16/report.html         the report
//! nqueens-16/README.md           the same in short, with the commands that verify it
//! nqueens-16/bundle.json         versions, classes of machines, commands that count it again
//! ```
//!
//! A bundle of a variant is called as `nqueens run` calls its database: `nqueens-16-torus`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_coordinator::{Reader, RunRow};
use nqueens_model::kernel::KernelName;
use nqueens_model::message::Registration;
use serde_json::{Value, json};
use tar::{Archive, Builder, EntryType, Header};

use super::ledger;
use super::report::Reports;
use super::source::LedgerSource;
use super::variant::count_again;
use crate::build::BUILD;
use crate::output::{create, harmless, print_line};
use crate::runtime::block_on;

/// Where an archive of the POSIX format says that it is one.
const MAGIC: (usize, &[u8]) = (257, b"ustar");

/// Writes one archive (tar) about a finished run, to publish: ledger, report, versions, machines, commands.
///
/// 'nqueens verify' takes the archive: it checks the ledger in it. The other files are for people, and no evidence. To
/// sign all of it: ssh-keygen -Y sign -n nqueens-ledger -f KEY FILE; 'nqueens verify --signer' checks that signature.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens bundle --db nqueens-16.db")]
pub(crate) struct BundleCommand {
    #[command(flatten)]
    source: LedgerSource,

    /// Output file; an existing file is an error [default: nqueens-N.tar; of a variant nqueens-N-torus.tar or nqueens-N-DIGITS.tar]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long)]
    force: bool,
}

impl BundleCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let (path, hash) = block_on(self.source.read(async |reader, run| {
            // Before there is a file.
            ledger::outcome(&run)?;
            let path = self.output.unwrap_or_else(|| format!("{}.tar", run.plan.file_stem()).into());
            let hash = write(reader, &run, create(&path, self.force)?)
                .await
                .with_context(|| path.display().to_string())?;
            Ok((path, hash))
        }))?;
        let path = path.display();
        print_line(format_args!(
            "{path}: check it with 'nqueens verify {path}'\n\
             publish the last hash of its ledger, so that every later change is detected: {hash}"
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes the archive; returns the last hash of the ledger in it.
async fn write(reader: &Reader, run: &RunRow, file: File) -> anyhow::Result<String> {
    let name = run.plan.file_stem();
    let ledger_name = format!("{name}.ledger");
    let reports = Reports::write(reader, run).await?;
    let about = about(reader, run, &reports, &ledger_name).await?;
    let mut archive = Builder::new(file);
    // Its length is known when it is written.
    let mut first = header(run)?;
    let mut entry = archive.append_writer(&mut first, Path::new(&name).join(&ledger_name))?;
    let (_, hash) = ledger::write(reader, run, &mut entry).await?;
    entry.finish()?;
    let about = format!("{about:#}\n");
    for (file, text) in
        [("report.html", &reports.html), ("README.md", &reports.markdown), ("bundle.json", &about)]
    {
        let mut header = header(run)?;
        header.set_size(text.len().try_into()?);
        archive.append_data(&mut header, Path::new(&name).join(file), text.as_bytes())?;
    }
    archive.finish()?;
    Ok(hash)
}

/// Says nothing of who wrote it, and when.
fn header(run: &RunRow) -> anyhow::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(u64::try_from(run.finished_at.unwrap_or_default())? / 1000);
    Ok(header)
}

/// What programs and people want to know before they unpack a report.
async fn about(reader: &Reader, run: &RunRow, reports: &Reports, ledger_name: &str) -> anyhow::Result<Value> {
    let (outcome, plan) = (ledger::outcome(run)?, run.plan);
    let (n, kind) = (plan.n(), plan.kind());
    let how = if plan.variant().is_none() { format!(" --plan {kind}") } else { String::new() };
    let again = count_again(&plan) + &how;
    let mut machines = BTreeMap::<_, u64>::new();
    let workers = reader.workers().await?;
    for worker in workers.into_iter().filter(|worker| reports.workers.contains(&worker.id)) {
        let Registration { build, kernels, capability, threads, .. } = worker.registration;
        let kernels = kernels.iter().map(KernelName::as_str).collect::<Vec<_>>().join(",");
        let device = capability.map(|capability| harmless(&capability.device));
        *machines.entry((harmless(&build), kernels, device, threads)).or_default() += 1;
    }
    let machines = machines.into_iter().map(|((build, kernels, device, threads), processes)| {
        json!({ "build": build, "kernels": kernels, "device": device, "threads": threads, "processes": processes })
    });
    Ok(json!({
        "bundle": 1,
        "written_by": BUILD,
        "run": run.id.to_string(),
        "n": n.get(),
        "plan": kind.name(),
        "states_per_job": plan.states_per_job().to_string(),
        "jobs": run.jobs,
        "fingerprint": run.fingerprint.to_string(),
        "total": outcome.total.to_string(),
        "machines": machines.collect::<Vec<_>>(),
        "files": {
            (ledger_name): "every job and every result; what 'nqueens verify' checks",
            "report.html": "the report, for people",
            "README.md": "the same in short, with the commands that verify it",
        },
        "cells": plan.cells().map(|cells| cells.to_string()),
        "count_it_again": format!("{again} --job-states {}", plan.states_per_job()),
    }))
}

/// Looks at the ledger in a file, which is one or is an archive with one.
pub(crate) fn with_ledger<T>(
    mut file: impl Read,
    look: impl FnOnce(&mut dyn Read) -> T,
) -> anyhow::Result<T> {
    let (at, magic) = MAGIC;
    let mut start = Vec::new();
    file.by_ref().take((at + magic.len()) as u64).read_to_end(&mut start)?;
    let is_archive = start.get(at..) == Some(magic);
    let mut file = Cursor::new(start).chain(file);
    if !is_archive {
        return Ok(look(&mut file));
    }
    let (mut look, mut seen) = (Some(look), None);
    for entry in Archive::new(file).entries()? {
        let mut entry = entry?;
        if entry.path()?.extension().is_some_and(|extension| extension == "ledger") {
            let look = look.take().context("there are several ledgers in this archive")?;
            seen = Some(look(&mut entry));
        }
    }
    seen.context("there is no ledger in this archive")
}
