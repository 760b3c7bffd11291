//! What this process may use of its machine: threads and memory, and who says so.

mod control_group;
mod scheduler;

use std::num::NonZeroUsize;

use nqueens_model::message::THREADS_MAX;
use procfs::{Current, Meminfo};
use rustix::process::{Resource, getrlimit};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    /// Where it comes from, for people.
    pub(crate) source: String,
    /// Bytes that everything under it may take together.
    pub(crate) max: u64,
    /// Bytes of them that this process may still take.
    pub(crate) free: u64,
}

/// All limits on the memory of this process, the machine's own first.
pub(crate) fn memory_limits() -> Vec<MemoryLimit> {
    let mut limits = Vec::new();
    if let Ok(memory) = Meminfo::current() {
        let free = memory.mem_available.unwrap_or(memory.mem_free);
        limits.push(MemoryLimit { source: "this machine".to_owned(), max: memory.mem_total, free });
    }
    limits.extend(control_group::memory_limits());
    let mut without_use = |source: &str, max: Option<u64>| {
        limits.extend(max.map(|max| MemoryLimit { source: source.to_owned(), max, free: max }));
    };
    without_use("ulimit -v", getrlimit(Resource::As).current);
    if let Some((source, max)) = scheduler::memory() {
        without_use(source, Some(max));
    }
    limits
}

/// Bytes that this process can still get: the least that a limit leaves.
pub(crate) fn free_memory() -> u64 {
    memory_limits().iter().map(|limit| limit.free).min().unwrap_or(0)
}

/// Workers of this job that share the node with this process, itself among them, as far as Slurm says.
pub(crate) fn workers_on_node() -> NonZeroUsize {
    scheduler::tasks_on_node().unwrap_or(NonZeroUsize::MIN)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadLimit {
    /// Where it comes from, for people.
    pub(crate) source: &'static str,
    /// Threads that may run at once.
    pub(crate) max: NonZeroUsize,
}

pub(crate) fn thread_limits() -> Vec<ThreadLimit> {
    let system = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let system = ThreadLimit { source: "processors, affinity and CPU quota", max: system };
    std::iter::once(system).chain(scheduler::threads()).collect()
}

/// As many threads as this process may run at once.
pub(crate) fn default_threads() -> NonZeroUsize {
    let least = thread_limits().into_iter().map(|limit| limit.max).min().unwrap_or(NonZeroUsize::MIN);
    least.min(threads_max())
}

/// The most threads that a worker may have.
pub(crate) fn threads_max() -> NonZeroUsize {
    usize::try_from(THREADS_MAX).ok().and_then(NonZeroUsize::new).expect("a few thousand")
}
