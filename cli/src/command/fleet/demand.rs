//! What the open runs of a coordinator can use.

use std::time::Duration;

use anyhow::Context;
use nqueens_fleet::state::Demand;
use nqueens_model::operator::{CheckCounts, Progress, RunState, RunStatus, WorkerStatus};
use tokio::time::timeout;

use crate::client::OperatorClient;

/// A coordinator that needs longer is away.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) async fn ask(client: &mut OperatorClient) -> anyhow::Result<Demand> {
    let asked = async {
        let runs = client.runs().await?;
        Ok(demand(&runs, &client.workers().await?))
    };
    timeout(PATIENCE, asked).await.context("the coordinator does not answer")?
}

fn demand(runs: &[RunStatus], workers: &[WorkerStatus]) -> Demand {
    let active = runs.iter().map(|run| &run.progress).filter(|progress| progress.state == RunState::Active);
    let open = active.map(|progress| {
        let counted = u64::from(progress.done) + u64::from(progress.quarantined);
        u64::from(progress.jobs).saturating_sub(counted) + u64::from(progress.checks.open)
    });
    let counts = |worker: &&WorkerStatus| worker.present && !worker.draining && worker.distrusted.is_none();
    Demand {
        open: open.sum(),
        done: runs.iter().map(|run| done(&run.progress)).sum(),
        threads: workers.iter().filter(counts).map(|worker| u64::from(worker.about.threads)).sum(),
    }
}

/// Jobs and second counts that are done.
fn done(progress: &Progress) -> u64 {
    let CheckCounts { agreed, settled, unmade, .. } = progress.checks;
    [progress.done, agreed, settled, unmade].map(u64::from).iter().sum()
}
