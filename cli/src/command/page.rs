//! What the coordinator's page offers as files.

use std::io::{PipeWriter, Write};

use nqueens_coordinator::{Reader, RunRow};
use nqueens_web::Document;
use tokio::runtime::Handle;

use super::report;
use crate::ledger_file;

/// Writes a document of a run for the page.
pub(super) fn write_document(
    document: Document,
    runtime: &Handle,
    reader: &Reader,
    run: &RunRow,
    mut out: PipeWriter,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime.block_on(async {
        match document {
            Document::Ledger => drop(ledger_file::write(reader, run, out).await?),
            Document::Report => out.write_all(report::html(reader, run).await?.as_bytes())?,
        }
        Ok(())
    })
}
