//! `nqueens submit`: plans a run on a coordinator.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_kernel::engine::Kernel;
use nqueens_model::operator::{RunState, RunStatus, Submission, WorkerStatus};
use nqueens_proto::random_bytes;

use crate::board::Board;
use crate::choices::Splitting;
use crate::client::OperatorClient;
use crate::exit::INTERRUPTED;
use crate::headings::CHECKS;
use crate::output::{Json, print_line};
use crate::progress::{Bar, PICTURE_EVERY};
use crate::runtime::block_on;
use crate::signals::{signals, stopped};
use crate::target::Contact;

/// Plans a run on a coordinator and prints its id.
///
/// Large plans take minutes: the id comes first, and the command ends when all jobs are stored. Ctrl-C ends the command
/// earlier; the coordinator plans on. 'nqueens cancel' ends the planning, and nothing of it is kept.
///
/// With --cells the run counts a board with given queens and blocked cells.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens submit 18 --coordinator http://head:7327")]
pub(crate) struct SubmitCommand {
    #[command(flatten)]
    board: Board,

    #[command(flatten)]
    splitting: Splitting,

    /// Priority among active runs; the highest goes first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i32,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    contact: Contact,

    /// Minimum percentage of results that a second machine counts again; 0 for none
    #[arg(long, value_name = "PERCENT", value_parser = ppm, default_value = "1", help_heading = CHECKS)]
    replicate: u32,
}

impl SubmitCommand {
    pub(crate) fn execute(self) -> anyhow::Result<ExitCode> {
        self.board.check()?;
        block_on(async {
            let mut client = self.contact.client()?;
            let kernel = prevailing(&client.workers().await?);
            let plan = self.splitting.plan(&self.board, Some(kernel));
            let (request, priority, replicate_ppm) = (random_bytes(), self.priority, self.replicate);
            let submission = Submission { request, plan, priority, replicate_ppm };
            let run = client.submit(submission).await?;
            let id = run.progress.run;
            // Before the id is out: whoever has it may interrupt.
            let told = signals(None).context("listening for signals")?;
            if !self.json.json {
                print_line(id)?;
            }
            let run = tokio::select! {
                run = self.follow(&mut client, run) => run?,
                () = stopped(told) => {
                    eprintln!(
                        "interrupted; the coordinator goes on planning run {id}: 'nqueens status {id}' shows how far it \
                         is, 'nqueens cancel {id}' cancels it"
                    );
                    return Ok(ExitCode::from(INTERRUPTED));
                }
            };
            if self.json.json {
                print_line(nqueens_coordinator::json::run(&run))?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Waits until all jobs of a run are stored.
    async fn follow(&self, client: &mut OperatorClient, mut run: RunStatus) -> anyhow::Result<RunStatus> {
        let bar = (!self.json.json).then(Bar::new);
        while run.progress.state == RunState::Planning {
            if let Some(bar) = &bar {
                bar.draw(&run.progress);
            }
            tokio::time::sleep(PICTURE_EVERY).await;
            run = client.run(run.progress.run).await?;
        }
        Ok(run)
    }
}

fn ppm(text: &str) -> Result<u32, String> {
    let percent = text.parse().ok().filter(|percent: &f64| (0.0..=100.0).contains(percent));
    let percent = percent.ok_or_else(|| format!("a percentage is a number from 0 to 100, not '{text}'"))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1,000,000")]
    Ok((1e4 * percent).round() as u32)
}

/// The engine that most threads of the coordinator's workers count with; while there are none, the fastest that there
/// is.
fn prevailing(workers: &[WorkerStatus]) -> Kernel {
    let mut threads = BTreeMap::<Kernel, u64>::new();
    for worker in workers.iter().filter(|worker| worker.present) {
        let in_use = worker.kernels.first().and_then(|name| name.parse().ok());
        if let Some(kernel) = in_use {
            *threads.entry(kernel).or_default() += u64::from(worker.threads);
        }
    }
    let most = threads.into_iter().max_by_key(|&(_, threads)| threads);
    most.map_or(Kernel::ALL[Kernel::ALL.len() - 1], |(kernel, _)| kernel)
}

#[cfg(test)]
mod tests {
    use nqueens_model::credential::Credential;
    use nqueens_model::id::WorkerId;

    use super::*;

    #[test]
    fn the_prevailing_engine_is_that_of_most_threads() {
        let worker = |kernel: &str, threads| WorkerStatus {
            id: WorkerId::new(1).expect("a name"),
            name: "test".to_owned(),
            credential: Credential::shared(),
            build: "test".to_owned(),
            kernels: vec![kernel.to_owned(), "reference".to_owned()],
            device: String::new(),
            threads,
            present: true,
            registered_at: 0,
            silent_ms: 0,
            leases: 0,
            states_per_s: None,
            accepted: 0,
            draining: false,
            checks_passed: 0,
            checks_failed: 0,
            distrusted: None,
        };
        let fleet = [worker("avx512", 64), worker("avx2", 48), worker("avx2", 48), worker("quantum", 1000)];
        assert_eq!(prevailing(&fleet), Kernel::Avx2);
        assert_eq!(prevailing(&fleet[..2]), Kernel::Avx512);
        assert_eq!(prevailing(&[]), Kernel::Avx512);
    }
}
