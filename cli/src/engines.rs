//! The engines that this program counts with.

use nqueens_kernel::engine::{Factory, cpu};

/// Where all commands have their engines from.
pub(crate) const ENGINES: &Factory = &cpu;
