//! `nqueens submit`: plans a run on a coordinator.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use nqueens_kernel::engine::Kernel;
use nqueens_model::operator::{RunState, RunStatus, Submission};
use nqueens_proto::random_bytes;

use crate::board::Board;
use crate::choices::Splitting;
use crate::client::OperatorClient;
use crate::exit::INTERRUPTED;
use crate::headings::CHECKS;
use crate::output::{Json, print_json, print_line};
use crate::progress::{PICTURE_EVERY, draw, text_bar};
use crate::runtime::block_on;
use crate::signals::{signals, stopped};
use crate::target::Contact;

/// Plans a run on a coordinator and prints its id.
///
/// Large plans take a while: the id comes first, and the command ends when all jobs are stored. Ctrl-C ends the command
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
        self.board.check();
        block_on(async {
            let mut client = self.contact.client()?;
            let workers = client.workers().await?;
            let present = workers.iter().filter(|worker| worker.present).map(|worker| &worker.about);
            let kernel =
                prevailing(present.filter_map(|it| Some((it.kernels.first()?.as_str(), it.threads))));
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
                print_json(run.view())?;
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    async fn follow(&self, client: &mut OperatorClient, mut run: RunStatus) -> anyhow::Result<RunStatus> {
        let bar = text_bar();
        while run.progress.state == RunState::Planning {
            if !self.json.json {
                draw(&bar, &run.progress);
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
fn prevailing<'a>(workers: impl Iterator<Item = (&'a str, u32)>) -> Kernel {
    let mut threads = BTreeMap::<Kernel, u64>::new();
    for (kernel, of_worker) in workers.filter_map(|(kernel, threads)| Some((kernel.parse().ok()?, threads))) {
        *threads.entry(kernel).or_default() += u64::from(of_worker);
    }
    let most = threads.into_iter().max_by_key(|&(_, threads)| threads);
    most.map_or(Kernel::ALL[Kernel::ALL.len() - 1], |(kernel, _)| kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prevailing_engine_is_that_of_most_threads() {
        let fleet = [("avx512", 64), ("avx2", 48), ("avx2", 48), ("quantum", 1000)];
        assert_eq!(prevailing(fleet.into_iter()), Kernel::Avx2);
        assert_eq!(prevailing(fleet.into_iter().take(2)), Kernel::Avx512);
        assert_eq!(prevailing([].into_iter()), Kernel::Avx512);
    }
}
