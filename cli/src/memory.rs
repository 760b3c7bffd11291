//! The memory limit of the counting.

use std::num::NonZeroUsize;

use anyhow::bail;
use bytesize::ByteSize;
use clap::Args;
use tracing::warn;

use crate::headings::LIMITS;
use crate::machine::{free_memory, memory_limits, workers_on_node};

/// What a worker takes beside tables, in bytes: its process, ...
const PROCESS: u64 = 32 << 20;

/// ... and each thread that multiplies colours up to N = 26, however small its tables are. Measured with tables of 1 MB: 9 MB at N = 22,
/// 14 MB at 24, 27 MB at 26. At N = 28 it is 500 MB: most workers never meet that, so it does not cost them threads.
const THREAD: u64 = 48 << 20;

/// The memory that multiplied colours may take.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Memory {
    /// Memory for plan colours, for example 500MB or 8GiB. A soft limit; less memory is slower [default: half of what the
    /// machine, its control groups and the batch system leave to this process: see nqueens doctor]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = LIMITS)]
    memory: Option<ByteSize>,
}

pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "a size is a number with a unit, such as 500MB or 8GiB".to_owned())
}

/// Half of the memory that this process can still get: programs need some beside their tables.
pub(crate) fn default_memory() -> u64 {
    free_memory() / 2
}

impl Memory {
    /// Threads of a worker, `wanted` or fewer, and bytes for their tables, so that the system does not kill it for its memory up
    /// to N = 26. What an operator says holds.
    pub(crate) fn of_worker(self, wanted: NonZeroUsize) -> anyhow::Result<(NonZeroUsize, u64)> {
        let limit = memory_limits().into_iter().min_by_key(|limit| limit.free);
        let Some((limit, None)) = limit.map(|limit| (limit, self.memory)) else {
            return Ok((wanted, self.bytes()));
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
        Ok((threads, (free / 2).min(free - PROCESS - THREAD * threads.get() as u64)))
    }

    /// By default a fair part for each of the workers that Slurm says are on this node.
    pub(crate) fn bytes(self) -> u64 {
        self.memory.map_or_else(|| default_memory() / workers_on_node().get() as u64, |size| size.0)
    }
}
