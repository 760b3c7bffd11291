//! Runtimes for asynchronous work.

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

/// Runs a short conversation with a database or a coordinator on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    Builder::new_current_thread().enable_all().build().context("starting the runtime")?.block_on(future)
}

/// A runtime on two threads, which leaves the cores to those that count.
pub(crate) fn beside_counting() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().context("starting the runtime")
}
