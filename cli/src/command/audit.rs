//! `nqueens audit`: counts jobs of a database again.

use std::process::ExitCode;

use clap::Args;
use nqueens_coordinator::Reader;
use nqueens_evidence::sample::Claim;
use nqueens_model::id::RunId;

use super::finding_lines::print_run;
use super::sampling::{Interrupt, Population, SampleDraw, SamplingOptions};
use super::source::LedgerSource;
use crate::exit::INTERRUPTED;
use crate::output::Json;
use crate::runtime::block_on;

/// Counts a random sample of a run's accepted jobs again, and states the confidence that this gives.
///
/// Another engine counts the mirror images of the jobs. The run need not be done, and the database is not changed. The exit
/// code is 1 if a count differs.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens audit --db nqueens-16.db --sample 300")]
pub(crate) struct AuditCommand {
    #[command(flatten)]
    source: LedgerSource,

    /// Number of jobs to count again
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    sample: u32,

    #[command(flatten)]
    sampling: SamplingOptions,

    #[command(flatten)]
    json: Json,
}

impl AuditCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::listen()?;
        let mut draw = self.sampling.draw(self.sample)?;
        let Some(population) = block_on(self.accepted(&mut draw, &interrupt))? else {
            eprintln!("nqueens: interrupted before all results were read; nothing was verified");
            return Ok(ExitCode::from(INTERRUPTED));
        };
        draw.recount(&population, &interrupt, self.json)
    }

    /// Offers every accepted result to the sample; `None` if it was interrupted.
    async fn accepted(
        &self,
        draw: &mut SampleDraw,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<Population>> {
        self.source
            .read(async |reader, run| {
                print_run(self.json, (run.id, &run.plan.subject()), run.plan.kind(), run.jobs.into())?;
                offer_all(reader, run.id, draw, interrupt).await
            })
            .await
    }
}

async fn offer_all(
    reader: &Reader,
    id: RunId,
    draw: &mut SampleDraw,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Population>> {
    let mut population = Population::default();
    let mut next = 0;
    loop {
        let rows = reader.ledger(id, next).await?;
        let Some(last) = rows.last() else { return Ok(Some(population)) };
        next = last.number + 1;
        for row in rows {
            let number = row.number;
            let Some(result) = row.accepted else { continue };
            let (worker, counts, kernel) = (result.worker.get(), result.counts, result.kernel);
            population.jobs += 1;
            population.workers.entry(worker).or_insert((result.worker_name, 0)).1 += 1;
            draw.sample.offer(number, || Claim { number, job: row.job, counts, kernel, worker });
        }
        if interrupt.control().is_stopped() {
            return Ok(None);
        }
    }
}
