//! Runtimes for asynchronous work.

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

/// Runs a short conversation with a database or a coordinator on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    started(&mut Builder::new_current_thread())?.block_on(future)
}

/// A runtime for serving others, on one thread a core.
pub(crate) fn for_service() -> anyhow::Result<Runtime> {
    started(&mut Builder::new_multi_thread())
}

/// A runtime on two threads, which leaves the cores to those that count.
pub(crate) fn beside_counting() -> anyhow::Result<Runtime> {
    started(Builder::new_multi_thread().worker_threads(2))
}

fn started(builder: &mut Builder) -> anyhow::Result<Runtime> {
    builder.enable_all().build().context("starting the runtime")
}
