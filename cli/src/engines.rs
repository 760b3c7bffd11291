//! The engines that this program counts with.

use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use nqueens_gpu::{Device, Found, NoDevice};
use nqueens_kernel::engine::{Engine, Factory, cpu};
use nqueens_model::name;
use nqueens_worker::Crew;
use tracing::error;

/// Where all commands have their engines from: those for the processor by name, that of a device by the [name](engine_name)
/// of its number.
pub(crate) const ENGINES: &Factory = &make;

fn make(name: &str) -> Option<Box<dyn Engine>> {
    let number = name.strip_prefix(nqueens_gpu::NAME).and_then(|rest| rest.strip_prefix('-'));
    let Some(number) = number else { return cpu(name) };
    let device = opencl().ok()?.devices.get(number.parse::<usize>().ok()?)?;
    nqueens_gpu::engine(*device, host_threads())
        .inspect_err(|fault| error!(engine = name, device = device.name(), %fault, "a device can't be used"))
        .ok()
}

/// Threads that make work for a device. They wait for it most of the time.
fn host_threads() -> usize {
    available_parallelism().map_or(1, |threads| threads.get().div_ceil(2)).min(8)
}

/// What OpenCL has on this machine, looked for once; a device's number is its place.
pub(crate) fn opencl() -> Result<&'static Found, &'static NoDevice> {
    static FOUND: OnceLock<Result<Found, NoDevice>> = OnceLock::new();
    FOUND.get_or_init(nqueens_gpu::devices).as_ref()
}

/// What the factory calls the engine of a device.
pub(crate) fn engine_name(number: usize) -> String {
    format!("{}-{number}", nqueens_gpu::NAME)
}

/// A thread that keeps a device busy, if that passes its self-test.
pub(crate) fn device_crew(number: usize, device: Device) -> Result<Crew, String> {
    let kernel = nqueens_gpu::NAME.parse().expect("a name");
    // If there is no engine for it its driver knows why.
    let fault = Arc::new(OnceLock::new());
    let known = Arc::clone(&fault);
    let engine = move |_: &str| {
        let engine = nqueens_gpu::engine(device, host_threads());
        engine.map_err(|fault| known.set(fault.to_string())).ok()
    };
    let about = about(&device.name(), &device.driver());
    let crew = Crew::of_device(&engine, &engine_name(number), kernel, about);
    crew.map_err(|reason| fault.get().cloned().unwrap_or(reason))
}

/// A device and its driver, as others are told of them. A long name is cut, not the driver's version, with some room for the
/// number of equal devices.
fn about(name: &str, driver: &str) -> String {
    let driver = format!(", driver {driver}");
    let room = name::LENGTH_MAX.saturating_sub(driver.len() + "99 x ".len());
    format!("{}{driver}", name[..name.floor_char_boundary(room)].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_leaves_room_for_the_driver() {
        assert_eq!(about("NVIDIA H200", "550.54.15"), "NVIDIA H200, driver 550.54.15");
        let pocl = about("pthread-Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "3.1+debian");
        assert_eq!(pocl, "pthread-Intel(R) Xeon(R) Platinum 8481C, driver 3.1+debian");
        assert_eq!(about("any", &"9".repeat(80)), format!(", driver {}", "9".repeat(80)));
    }
}
