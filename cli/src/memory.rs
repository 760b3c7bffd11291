//! The memory limit of the counting.

use bytesize::ByteSize;
use clap::Args;

use crate::headings::LIMITS;
use crate::machine::{free_memory, workers_on_node};

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
    /// By default a fair part for each of the workers that Slurm says are on this node.
    pub(crate) fn bytes(self) -> u64 {
        self.memory.map_or_else(|| default_memory() / workers_on_node().get() as u64, |size| size.0)
    }
}
