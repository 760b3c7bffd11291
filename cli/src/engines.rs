//! The engines that this program counts with.

use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::thread::{self, available_parallelism};
use std::time::Duration;

use anyhow::Context;
use nqueens_fleet::process::run;
use nqueens_gpu::{Device, Found, NoDevice};
use nqueens_kernel::engine::{Engine, Factory, cpu};
use nqueens_kernel::plan::PlanKind;
use nqueens_kernel::solver::Solver;
use nqueens_model::name;
use nqueens_worker::{Crew, prove_device};
use tracing::error;

/// Where all commands have their engines from: those for the processor by name, that of a device by the [name](engine_name)
/// of its number.
pub(crate) const ENGINES: &Factory = &make;

/// A driver that takes longer to find its devices, or to compile and test, is left alone.
const TRIAL_MAX: Duration = Duration::from_mins(2);

fn make(name: &str) -> Option<Box<dyn Engine>> {
    let number = name.strip_prefix(nqueens_gpu::NAME).and_then(|rest| rest.strip_prefix('-'));
    let Some(number) = number else { return cpu(name) };
    let device = opencl().ok()?.devices.get(number.parse::<usize>().ok()?)?;
    nqueens_gpu::engine(*device, host_threads())
        .inspect_err(|fault| error!(engine = name, device = device.name(), %fault, "a device can't be used"))
        .ok()
}

/// A solver with the engine of this name, and memory for its tables.
pub(crate) fn solver(engine: &str, memory_max: u64) -> anyhow::Result<Solver> {
    let engine = ENGINES(engine).with_context(|| format!("this machine can't run the {engine} kernel"))?;
    Ok(Solver::new(engine, memory_max))
}

/// What becomes of each of these on a thread of its own.
pub(crate) fn on_threads<What: Send, T: Send>(
    all: impl Iterator<Item = What>,
    work: impl Fn(What) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let work = &work;
    thread::scope(|scope| {
        let started: Vec<_> = all.map(|what| scope.spawn(move || work(what))).collect();
        started.into_iter().map(|thread| thread.join().expect("a counting thread panicked")).collect()
    })
}

/// Threads that make work for a device. They wait for it most of the time.
fn host_threads() -> usize {
    available_parallelism().map_or(1, |threads| threads.get().div_ceil(2)).min(8)
}

/// What OpenCL has on this machine, looked for once; a device's number is its place.
pub(crate) fn opencl() -> Result<&'static Found, &'static NoDevice> {
    static FOUND: OnceLock<Result<Found, NoDevice>> = OnceLock::new();
    let found = || child(None).map_err(NoDevice::Failed).and_then(|_| nqueens_gpu::devices());
    FOUND.get_or_init(found).as_ref()
}

/// What the factory calls the engine of a device.
fn engine_name(number: usize) -> String {
    format!("{}-{number}", nqueens_gpu::NAME)
}

/// A thread that keeps a device busy, if that passes its self-test; its speed is by this plan.
pub(crate) fn device_crew(number: usize, device: Device, plan: PlanKind) -> Result<Crew, String> {
    let said = child(Some((number, plan)))?;
    let tested = serde_json::from_str::<Result<f64, String>>(&said);
    let states_per_s = tested.map_err(|_| "its test came to nothing".to_owned()).flatten()?;
    let (kernel, about) =
        (nqueens_gpu::NAME.parse().expect("a name"), about(&device.name(), &device.driver()));
    Ok(Crew::of_device(engine_name(number), kernel, about, states_per_s))
}

/// What a process of its own says that finds the devices, or [tests](try_device) one: a driver may crash, or hang.
fn child(test: Option<(usize, PlanKind)>) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let what =
        test.map_or("--try-device".to_owned(), |(number, plan)| format!("--try-device={number},{plan}"));
    let said = run(Command::new(program).args(["doctor", &what]), TRIAL_MAX);
    said.map_err(|failed| format!("a driver fails in a process of its own: {failed}"))
}

/// In that process: the speed of a device by a plan, `0,border`, or why it fails its test. Nothing is said of one that is not
/// there.
pub(crate) fn try_device(test: Option<&str>) -> Option<Result<f64, String>> {
    // Why there is none, whoever asks finds out himself.
    let found = nqueens_gpu::devices().ok()?;
    let (number, plan) = test?.split_once(',')?;
    let (number, plan) = (number.parse::<usize>().ok()?, plan.parse().ok()?);
    let device = *found.devices.get(number)?;
    // If there is no engine for it its driver knows why.
    let fault = Arc::new(OnceLock::new());
    let known = Arc::clone(&fault);
    let engine = move |_: &str| {
        let engine = nqueens_gpu::engine(device, host_threads());
        engine.map_err(|fault| known.set(fault.to_string())).ok()
    };
    let tested = prove_device(&engine, &engine_name(number), plan);
    Some(tested.map_err(|reason| fault.get().cloned().unwrap_or(reason)))
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
