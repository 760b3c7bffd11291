//! Workers, as far as leases go.

use std::collections::BTreeSet;

use nqueens_kernel::engine::Kernel;
use nqueens_model::id::JobId;

use super::{Machine, Millis};

/// A worker's process, as far as leases go.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Where it runs, as far as its name tells.
    pub machine: Machine,
    /// The engine that it counts with.
    pub kernel: Kernel,
    /// Its counting threads.
    pub threads: u32,
    /// When it was last heard of.
    pub seen: Option<Millis>,
    /// Measured speed of one thread, in estimated states a second.
    pub states_per_s: Option<f64>,
    /// Results accepted from it since the coordinator started.
    pub accepted: u64,
    /// An operator wants it to go.
    pub draining: bool,
    pub(super) jobs: BTreeSet<JobId>,
    /// Estimated work of its jobs, in states.
    pub(super) estimate: u128,
}

impl Worker {
    pub(super) fn new(machine: Machine, kernel: Kernel, threads: u32) -> Self {
        Self {
            machine,
            kernel,
            threads,
            seen: None,
            states_per_s: None,
            accepted: 0,
            draining: false,
            jobs: BTreeSet::new(),
            estimate: 0,
        }
    }

    /// Jobs leased to it.
    pub fn leases(&self) -> usize {
        self.jobs.len()
    }

    /// Learns from a result how fast it is.
    #[expect(clippy::cast_precision_loss, reason = "a speed")]
    pub(super) fn measure(&mut self, estimate: u64, elapsed_us: u64) {
        self.accepted += 1;
        let sample = estimate as f64 / (elapsed_us.max(1) as f64 / 1e6);
        let known = self.states_per_s.unwrap_or(sample);
        // A moving mean over some ten results.
        self.states_per_s = Some(known + 0.1 * (sample - known));
    }
}
