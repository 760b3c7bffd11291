//! Exports a finished run as one file that others can check; `docs/ledger.md` has its format.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use anyhow::{Context, ensure};
use nqueens_coordinator::{JobState, LedgerRow, OtherResult, Reader, RunRow};
use nqueens_evidence::chain::ChainWriter;
use nqueens_evidence::line::{
    ChecksLine, FORMAT, GroundsLine, Header, JobLine, Line, OtherLine, TotalLine, WorkerLine,
};
use nqueens_kernel::counts::Totals;
use nqueens_model::id::WorkerId;
use nqueens_model::kernel::KernelName;
use nqueens_model::message::Registration;
use nqueens_model::operator::Outcome;

use crate::build::BUILD;

/// Writes a run's ledger; returns the number of its lines and its last hash.
pub(crate) async fn write(reader: &Reader, run: &RunRow, out: impl Write) -> anyhow::Result<(u64, String)> {
    let outcome = outcome(run)?;
    let mut out = ChainWriter::new(BufWriter::new(out));
    out.write(&Line::Ledger(header(run, outcome)))?;
    let mut found = Totals::default();
    let mut by_worker = BTreeMap::<WorkerId, (u32, Totals)>::new();
    let mut next = 0;
    loop {
        let rows = reader.ledger(run.id, next).await?;
        let Some(last) = rows.last() else { break };
        let after = last.number + 1;
        let mut others = reader.others(run.id, next..after).await?.into_iter().peekable();
        next = after;
        for row in rows {
            let (line, worker) = job_line(row)?;
            let number = line.number;
            found = found.checked_add(line.counts)?;
            let (jobs, sums) = by_worker.entry(worker).or_default();
            (*jobs, *sums) = (*jobs + 1, sums.checked_add(line.counts)?);
            out.write(&Line::Job(line))?;
            while let Some(other) = others.next_if(|other| other.number == number) {
                by_worker.entry(other.result.worker).or_default();
                out.write(&Line::Other(other_line(other)?))?;
            }
        }
    }
    for worker in reader.workers().await? {
        let Some(&(jobs, sums)) = by_worker.get(&worker.id) else { continue };
        let Registration { name, build, kernels, capability, threads, .. } = worker.registration;
        let kernels = kernels.iter().map(KernelName::as_str).collect::<Vec<_>>().join(",");
        let credential = Some(worker.credential).filter(|credential| !credential.is_shared());
        let credential = credential.map(|credential| credential.to_string());
        let (worker, device) = (worker.id.get(), capability.map(|capability| capability.device));
        let line =
            WorkerLine { worker, name, credential, build, kernels, device, threads, jobs, counts: sums };
        out.write(&Line::Worker(line))?;
    }
    ensure!(
        run.plan.total(found)? == outcome.total,
        "the results of run {} no longer add up to its total; 'nqueens run' or a coordinator reports which check fails",
        run.id
    );
    let checks = ChecksLine {
        recounts_agreed: run.recounts.agreed,
        recounts_differing: run.recounts.differing,
        grounds: outcome.grounds.map(GroundsLine::from),
    };
    let (orbits, total) = (outcome.totals, outcome.total);
    out.write(&Line::Total(TotalLine { counts: found, orbits, total, checks }))?;
    Ok(out.finish()?)
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

fn job_line(row: LedgerRow) -> anyhow::Result<(JobLine, WorkerId)> {
    let number = row.number;
    let accepted = row.accepted.filter(|_| row.state == JobState::Done);
    let result =
        accepted.with_context(|| format!("job {number} is not done: the run changed during the export"))?;
    let line = JobLine {
        number,
        class: row.job.class,
        bound1: row.job.bound1,
        bytes: row.job.prefixes,
        counts: result.counts,
        kernel: result.kernel,
        worker: result.worker.get(),
        epoch: result.epoch,
        states: result.states,
        elapsed_us: result.elapsed_us,
        reported_at_ms: result.reported_at,
    };
    Ok((line, result.worker))
}

fn other_line(other: OtherResult) -> anyhow::Result<OtherLine> {
    let OtherResult { number, verdict, result } = other;
    Ok(OtherLine {
        number,
        verdict: serde_json::from_value(verdict.into()).with_context(|| format!("job {number}"))?,
        counts: result.counts,
        kernel: result.kernel,
        worker: result.worker.get(),
        epoch: result.epoch,
        states: result.states,
        elapsed_us: result.elapsed_us,
        reported_at_ms: result.reported_at,
    })
}
