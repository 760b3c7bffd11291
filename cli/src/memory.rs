//! The memory limit of the counting.

use bytesize::ByteSize;
use clap::Args;
use sysinfo::{MemoryRefreshKind, RefreshKind, System};

/// The memory that joins of half boards and multiplied colours may take.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Memory {
    /// Memory for the plans halves and colours, for example 500MB or 8GiB. A soft limit; less memory is slower [default:
    /// half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<ByteSize>,
}

/// Reads a size in bytes.
pub(crate) fn size(text: &str) -> Result<ByteSize, String> {
    text.parse().map_err(|_| "a size is a number with a unit, such as 500MB or 8GiB".to_owned())
}

impl Memory {
    /// Bytes for all threads together.
    pub(crate) fn bytes(self) -> u64 {
        self.memory.map_or_else(|| free() / 2, |size| size.0)
    }
}

/// Memory that this process can get: what the machine has free, or what its control group has left.
pub(crate) fn free() -> u64 {
    let refresh = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(refresh);
    let group = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    system.available_memory().min(group)
}
