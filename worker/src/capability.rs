//! What coordinators are told about an engine.

use std::env::consts::ARCH;

use nqueens_kernel::plan::PlanKind;
use nqueens_model::kernel::{Capability, KernelName};

use crate::selftest::Proof;

/// What coordinators are told of an engine that so many threads count with.
pub(crate) fn capability(engine: Proof, threads: u32) -> Capability {
    let Proof { kernel, states_per_s } = engine;
    let device: Vec<_> = std::iter::once(ARCH).chain(kernel.needs().iter().copied()).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let states_per_s = (states_per_s * f64::from(threads)) as u64;
    Capability {
        family: KernelName::from(kernel).family(None, PlanKind::Border),
        device: device.join(" "),
        states_per_s: states_per_s.max(1),
    }
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::engine::Kernel;

    use super::*;

    #[test]
    fn every_engine_has_a_device_that_fits_the_wire() {
        for kernel in Kernel::ALL {
            let capability = capability(Proof { kernel, states_per_s: 0.5 }, 3);
            assert_eq!(
                (capability.states_per_s, capability.family.as_str()),
                (1, kernel.family(PlanKind::Border))
            );
            assert!((1..=64).contains(&capability.device.len()), "{}", capability.device);
        }
    }
}
