//! Threads that count by the same engine, and what coordinators are told of them.

use std::env::consts::ARCH;
use std::num::NonZeroUsize;

use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::PlanKind;
use nqueens_model::kernel::{Capability, Family, KernelName};
use nqueens_model::name;

use crate::selftest::Proof;

/// Threads that count by the same engine. Each job is counted by one crew.
#[derive(Clone, Debug)]
pub struct Crew {
    /// What the factory calls the engine. That of a device has the device's number in it.
    pub engine: String,
    /// What coordinators call it.
    pub kernel: KernelName,
    /// Its family where it counts boards.
    pub family: Family,
    /// What it runs on: an instruction set, or a device and its driver.
    pub device: String,
    pub threads: NonZeroUsize,
    /// States that one thread visits in a second.
    pub states_per_s: f64,
}

impl Crew {
    pub fn of_cpu(Proof { kernel, states_per_s }: Proof, threads: NonZeroUsize) -> Self {
        let device: Vec<_> = std::iter::once(ARCH).chain(kernel.needs().iter().copied()).collect();
        Self {
            engine: kernel.name().to_owned(),
            kernel: kernel.into(),
            family: kernel.family(PlanKind::Border).parse().expect("a name"),
            device: device.join(" "),
            threads,
            states_per_s,
        }
    }

    /// A thread that keeps a device busy, which has passed its [self-test](crate::prove_device) at this speed.
    pub fn of_device(engine: String, kernel: KernelName, device: String, states_per_s: f64) -> Self {
        Self { engine, kernel, family: kernel, device, threads: NonZeroUsize::MIN, states_per_s }
    }

    fn is_device(&self) -> bool {
        self.engine.parse::<Kernel>().is_err()
    }

    /// States that all its threads visit in a second.
    #[expect(clippy::cast_precision_loss, reason = "few threads")]
    pub fn speed(&self) -> f64 {
        self.states_per_s * self.threads.get() as f64
    }
}

pub(crate) fn threads(crews: &[Crew]) -> u32 {
    let threads = crews.iter().map(|crew| crew.threads.get()).sum::<usize>();
    u32::try_from(threads).unwrap_or(u32::MAX)
}

/// What crews count on: devices first, since there is room for 64 bytes, and the instruction sets of a processor may take all
/// of that. Equal devices are named once, with their number.
fn counts_on(crews: &[Crew]) -> String {
    let (devices, processors): (Vec<_>, Vec<_>) = crews.iter().partition(|crew| crew.is_device());
    let mut numbers: Vec<(&str, usize)> = Vec::new();
    for crew in devices.into_iter().chain(processors) {
        match numbers.iter_mut().find(|(device, _)| *device == crew.device) {
            Some((_, number)) => *number += 1,
            None => numbers.push((&crew.device, 1)),
        }
    }
    let named = |(device, number): (&str, usize)| {
        if number == 1 { device.to_owned() } else { format!("{number} x {device}") }
    };
    numbers.into_iter().map(named).collect::<Vec<_>>().join(" + ")
}

/// What coordinators are told of crews, of which the first has the engine in use for them.
pub(crate) fn capability(crews: &[Crew]) -> Capability {
    // Names of devices come from their drivers.
    let device = counts_on(crews).replace(|c: char| !name::is_printable(c), "?");
    let end = device.floor_char_boundary(name::LENGTH_MAX);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let states_per_s = crews.iter().map(Crew::speed).sum::<f64>() as u64;
    Capability {
        family: crews[0].family,
        device: device[..end].trim_end().to_owned(),
        states_per_s: states_per_s.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_coordinators_are_told_fits_the_wire() {
        const THREE: NonZeroUsize = NonZeroUsize::new(3).expect("not zero");
        for kernel in Kernel::ALL {
            let cpu = Crew::of_cpu(Proof { kernel, states_per_s: 0.5 }, THREE);
            let alone = capability(std::slice::from_ref(&cpu));
            assert_eq!((alone.states_per_s, alone.family.as_str()), (1, kernel.family(PlanKind::Border)));
            let gpu = |number: usize, device: &str| Crew {
                engine: format!("opencl-{number}"),
                device: device.to_owned(),
                threads: NonZeroUsize::MIN,
                states_per_s: 1e9,
                ..cpu.clone()
            };
            let long = format!("A very long device\u{ad}{}", "\u{e9}".repeat(60));
            let both = capability(&[cpu.clone(), gpu(0, &long)]);
            for capability in [&alone, &both] {
                assert_eq!(name::check(&capability.device), Ok(()), "{}", capability.device);
            }
            assert_eq!(both.states_per_s, 1_000_000_001);
            assert!(both.device.starts_with("A very long device?"), "{}", both.device);

            let h200 = "NVIDIA H200, driver 550.54.15";
            let told = |crews: &[Crew]| capability(crews).device;
            let processor = &cpu.device;
            assert!(told(&[cpu.clone(), gpu(0, h200)]).starts_with(&format!("{h200} + {ARCH}")));
            let two = told(&[gpu(0, h200), gpu(1, h200), cpu.clone()]);
            assert!(format!("2 x {h200} + {processor}").starts_with(&two) && two.len() > 40, "{two}");
            let mixed =
                told(&[cpu.clone(), gpu(0, "A, driver 1"), gpu(1, "B, driver 2"), gpu(2, "A, driver 1")]);
            assert!(mixed.starts_with(&format!("2 x A, driver 1 + B, driver 2 + {ARCH}")), "{mixed}");
        }
    }
}
