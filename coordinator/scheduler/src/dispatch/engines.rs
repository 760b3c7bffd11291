//! The engines that a worker counts by.

use std::iter;

use nqueens_kernel::plan::PlanKind;
use nqueens_model::kernel::{Family, KernelName};
use nqueens_model::message::Registration;

/// The engine in use, and one beside it: devices and threads count jobs of the same worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Engines {
    first: KernelName,
    /// What the first is said to be of.
    said: Option<Family>,
    /// That of devices beside threads, or the other way round.
    beside: Option<KernelName>,
}

impl Engines {
    /// Of all engines that a worker offers, those of devices are in use.
    pub(super) fn of(worker: &Registration) -> Self {
        let first = worker.kernels[0];
        let beside = worker.kernels.iter().find(|kernel| is_device(kernel) != is_device(&first)).copied();
        Self { first, said: worker.capability.as_ref().map(|capability| capability.family), beside }
    }

    /// The family of what it counts by one of them, in runs of a plan.
    pub(super) fn family(&self, kernel: KernelName, plan: PlanKind) -> Family {
        kernel.family(self.said.filter(|_| kernel == self.first), plan)
    }

    /// Whether no engine that may count for it, in runs of a plan, is of this family.
    pub(super) fn are_independent_of(&self, family: Family, plan: PlanKind) -> bool {
        iter::once(self.first).chain(self.beside).all(|kernel| self.family(kernel, plan) != family)
    }
}

fn is_device(kernel: &KernelName) -> bool {
    kernel.as_str() == KernelName::DEVICE
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::engine::Kernel;

    use super::super::tests::registration;
    use super::*;

    fn engines(kernels: &[&str]) -> Engines {
        let kernels = kernels.iter().map(|name| name.parse().expect("a name")).collect();
        Engines::of(&Registration { kernels, ..registration("host", "scalar", 4) })
    }

    #[test]
    fn a_device_beside_threads_is_independent_of_neither() {
        let [mixed, device, threads] =
            [&["avx2", "opencl", "scalar"][..], &["opencl"], &["avx2", "portable"]].map(engines);
        let boards = KernelName::from(Kernel::Avx2).family(None, PlanKind::Border);
        let of_device: KernelName = KernelName::DEVICE.parse().expect("a name");
        let independent =
            |family, plan| [mixed, device, threads].map(|these| these.are_independent_of(family, plan));
        for plan in [PlanKind::Rows, PlanKind::Border, PlanKind::Cells] {
            assert_eq!(independent(boards, plan), [false, true, false], "{plan}");
            assert_eq!(independent(of_device, plan), [false, false, true], "{plan}");
            assert_eq!(independent("row-masks".parse().expect("a name"), plan), [true; 3], "{plan}");
        }
        // All of them multiply colours of the same lists, by the same code.
        let products = KernelName::from(Kernel::Avx2).family(None, PlanKind::Colours);
        assert_eq!(independent(products, PlanKind::Colours), [false; 3]);
    }
}
