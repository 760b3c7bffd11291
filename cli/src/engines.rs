//! The engines that this program counts with.

use std::sync::OnceLock;
use std::thread::available_parallelism;

use nqueens_gpu::{Device, NoDevice};
use nqueens_kernel::engine::{Engine, Factory, cpu};
use nqueens_worker::Crew;
use tracing::error;

/// Where all commands have their engines from: those for the processor by name, that of a device by the [name](engine_name)
/// of its number.
pub(crate) const ENGINES: &Factory = &make;

fn make(name: &str) -> Option<Box<dyn Engine>> {
    let number = name.strip_prefix(nqueens_gpu::NAME).and_then(|rest| rest.strip_prefix('-'));
    let Some(number) = number else { return cpu(name) };
    let device = devices().ok()?.get(number.parse::<usize>().ok()?)?;
    // These wait for the device most of the time.
    let threads = available_parallelism().map_or(1, |threads| threads.get().div_ceil(2)).min(8);
    nqueens_gpu::engine(*device, threads)
        .inspect_err(|fault| error!(engine = name, device = device.name(), %fault, "a device can't be used"))
        .ok()
}

/// The devices of this machine, looked for once; a device's number is its place.
pub(crate) fn devices() -> Result<&'static [Device], &'static NoDevice> {
    static DEVICES: OnceLock<Result<Vec<Device>, NoDevice>> = OnceLock::new();
    DEVICES.get_or_init(nqueens_gpu::devices).as_deref()
}

/// What the factory calls the engine of a device.
pub(crate) fn engine_name(number: usize) -> String {
    format!("{}-{number}", nqueens_gpu::NAME)
}

/// A thread that keeps a device busy, if that passes its self-test.
pub(crate) fn device_crew(number: usize, device: Device) -> Result<Crew, String> {
    let about = format!("{}, driver {}", device.name(), device.driver());
    let kernel = nqueens_gpu::NAME.parse().expect("a name");
    Crew::of_device(ENGINES, &engine_name(number), kernel, about)
}
