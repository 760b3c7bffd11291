//! Exports a finished run as one file that others can check; `docs/ledger.md` has its format.

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Write};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, ensure};
use nqueens_coordinator::{JobState, LedgerRow, Reader, RunRow};
use nqueens_evidence::chain::ChainWriter;
use nqueens_evidence::line::{FORMAT, Header, JobLine, Line, TotalLine, WorkerLine};
use nqueens_evidence::sample::Sample;
use nqueens_evidence::verify::{Report, verify};
use nqueens_kernel::counts::Totals;
use nqueens_kernel::engine::Control;
use nqueens_model::message::EncodedJob;
use nqueens_model::operator::Outcome;

use crate::build::BUILD;
use crate::console::is_broken_pipe;

/// Writes a run's ledger; returns the number of its lines and its last hash.
pub(crate) async fn write(reader: &Reader, run: &RunRow, out: impl Write) -> anyhow::Result<(u64, String)> {
    let outcome = outcome(run)?;
    let mut out = ChainWriter::new(BufWriter::new(out));
    out.write(&Line::Ledger(header(run, outcome)))?;
    let mut found = Totals::default();
    let mut by_worker = BTreeMap::<u64, (u32, Totals)>::new();
    let mut next = 0;
    while let Some(rows) = reader.ledger(run.id, &mut next).await? {
        let mut others = reader.others(run.id, rows[0].number..next).await?.into_iter().peekable();
        for row in rows {
            let line = job_line(row)?;
            let (number, counts) = (line.number, line.result.counts);
            found = found.checked_add(counts)?;
            let (jobs, sums) = by_worker.entry(line.result.worker).or_default();
            (*jobs, *sums) = (*jobs + 1, sums.checked_add(counts)?);
            out.write(&Line::Job(line))?;
            while let Some(other) = others.next_if(|other| other.number == number) {
                by_worker.entry(other.result.worker).or_default();
                out.write(&Line::Other(other))?;
            }
        }
    }
    for worker in reader.workers().await? {
        let Some(&(jobs, sums)) = by_worker.get(&worker.id.get()) else { continue };
        let credential = Some(worker.credential).filter(|credential| !credential.is_shared());
        out.write(&Line::Worker(WorkerLine {
            worker: worker.id.get(),
            name: worker.name,
            credential: credential.map(|credential| credential.to_string()),
            build: worker.build,
            kernels: worker.kernels.join(","),
            device: Some(worker.device).filter(|device| !device.is_empty()),
            threads: worker.threads,
            jobs,
            counts: sums,
        }))?;
    }
    ensure!(
        run.plan.total(found)? == outcome.total,
        "the results of run {} no longer add up to its total; 'nqueens run' or a coordinator reports which check fails",
        run.id
    );
    let (orbits, total) = (outcome.totals, outcome.total);
    out.write(&Line::Total(TotalLine { counts: found, orbits, total }))?;
    Ok(out.finish()?)
}

/// Exports a run's ledger straight into its verification; returns the report, and the sample of jobs.
pub(crate) async fn check(
    reader: &Reader,
    run: &RunRow,
    mut sample: Sample,
    control: Arc<Control>,
) -> anyhow::Result<(Report, Sample)> {
    let (exported, export) = std::io::pipe()?;
    let checking = thread::spawn(move || {
        let report = verify(BufReader::new(exported), &mut sample, &control);
        (report, sample)
    });
    let written = write(reader, run, export).await;
    let (report, sample) = checking.join().expect("checking does not panic");
    let report = report?;
    match written {
        // Of a broken pipe the check has seen enough before the end, and says why.
        Err(error) if !is_broken_pipe(&error) => Err(error),
        _ => Ok((report, sample)),
    }
}

/// What a run came to, if it is done.
pub(crate) fn outcome(run: &RunRow) -> anyhow::Result<&Outcome> {
    run.outcome.as_ref().with_context(|| {
        let (id, state) = (run.id, run.state.name());
        format!("run {id} is {state} and has no total; only runs that are done can be exported as ledgers")
    })
}

fn header(run: &RunRow, outcome: &Outcome) -> Header {
    Header {
        format: FORMAT,
        run: run.id,
        n: run.plan.n(),
        plan: run.plan.kind(),
        cells: run.plan.cells(),
        states_per_job: run.plan.states_per_job(),
        jobs: run.jobs,
        fingerprint: run.fingerprint,
        seed: run.seed,
        created_at_ms: run.created_at,
        finished_at_ms: run.finished_at,
        build: BUILD.to_owned(),
        total: outcome.total,
    }
}

fn job_line(row: LedgerRow) -> anyhow::Result<JobLine> {
    let LedgerRow { number, job: EncodedJob { class, bound1, prefixes: bytes, .. }, state, accepted, .. } =
        row;
    let result = accepted.filter(|_| state == JobState::Done);
    let result =
        result.with_context(|| format!("job {number} is not done: the run changed during the export"))?;
    Ok(JobLine { number, class, bound1, bytes, result })
}
