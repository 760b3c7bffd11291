//! The memory limit of the counting.

use std::num::NonZeroUsize;

use anyhow::bail;
use bytesize::ByteSize;
use clap::Args;
use nqueens_worker::MemoryMax;
use tracing::warn;

use crate::headings::LIMITS;
use crate::machine::{free_memory, memory_limits, workers_on_node};

/// What a worker takes beside tables, in bytes: its process, ...
const PROCESS: u64 = 32 << 20;

/// ... and each thread that multiplies colours up to N = 24, however small its tables are. Larger boards need more
/// (`RowSets::memory_least`): then some threads wait, so that most workers, which never meet these, lose none ...
const THREAD: u64 = 48 << 20;

/// ... but one thread has room for N = 26.
const ALONE: u64 = 164 << 20;

/// The memory that multiplied colours may take.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Memory {
    /// Memory for plan colours, for example 500MB or 8GiB. A soft limit; less memory is slower [default: half of what the
    /// machine, its control groups and the batch system leave to this process: see nqueens doctor]
    #[arg(long, value_name = "SIZE", value_parser = table_memory, help_heading = LIMITS)]
    memory: Option<ByteSize>,
}

pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "a size is a number with a unit, such as 500MB or 8GiB".to_owned())
}

fn table_memory(text: &str) -> Result<ByteSize, String> {
    let size = size(text)?;
    if size < ByteSize::mb(1) { Err(format!("{size} is too little: give 1MB or more")) } else { Ok(size) }
}

/// Half of the memory that this process can still get: programs need some beside their tables.
pub(crate) fn default_memory() -> u64 {
    free_memory() / 2
}

impl Memory {
    /// Threads of a worker, `wanted` or fewer, and what these may take, so that the system does not kill it for its memory.
    /// What an operator says holds.
    pub(crate) fn of_worker(self, wanted: NonZeroUsize) -> anyhow::Result<(NonZeroUsize, MemoryMax)> {
        let limit = memory_limits().into_iter().min_by_key(|limit| limit.free);
        let Some((limit, None)) = limit.map(|limit| (limit, self.memory)) else {
            return Ok((wanted, self.of_run()));
        };
        let free = limit.free / workers_on_node().get() as u64;
        let (source, left) = (limit.source, ByteSize(free));
        let most = usize::try_from(free.saturating_sub(PROCESS) / THREAD)?;
        let Some(threads) = NonZeroUsize::new(most.min(wanted.get())) else {
            let least = ByteSize(PROCESS + THREAD);
            bail!(
                "{source} leaves {left}, and a worker takes up to {least}; with --memory it starts all the same"
            );
        };
        if threads < wanted {
            warn!("{source} leaves {left}: {threads} threads count in place of {wanted}");
        }
        let all = free - PROCESS;
        let tables = (free / 2).min(all.saturating_sub(ALONE.max(THREAD * threads.get() as u64)));
        Ok((threads, MemoryMax { tables, all }))
    }

    /// What the threads of a run in this process may take.
    pub(crate) fn of_run(self) -> MemoryMax {
        let free = memory_limits().iter().map(|limit| limit.free).min().unwrap_or(u64::MAX);
        MemoryMax {
            tables: self.bytes(),
            all: (free / workers_on_node().get() as u64).saturating_sub(PROCESS),
        }
    }

    /// By default a fair part for each of the workers that Slurm says are on this node.
    pub(crate) fn bytes(self) -> u64 {
        self.memory.map_or_else(|| default_memory() / workers_on_node().get() as u64, |size| size.0)
    }
}
