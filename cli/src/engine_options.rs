//! Which engines and devices of this machine count.

use std::collections::BTreeSet;
use std::iter;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use nqueens_gpu::{Device, NoDevice};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{PlanKind, fastest};
use nqueens_worker::{Crew, WorkerError, prove, prove_device, proven_kernels};

use crate::engines::{ENGINES, device_crew, opencl};
use crate::memory::Memory;
use crate::output::speed;

#[derive(Clone, Debug, PartialEq, Eq)]
enum DeviceChoice {
    /// Each GPU that is measured to be faster than the threads beside it.
    Auto,
    All,
    These(BTreeSet<usize>),
}

/// What a command counts with.
#[derive(Clone, Debug, Args)]
pub(crate) struct EngineOptions {
    /// Counting engine, which must pass a self-test on small boards; opencl counts on devices alone [default: the fastest
    /// that passes]
    #[arg(long, value_parser = PossibleValuesParser::new(Kernel::ALL.map(Kernel::name).into_iter().chain([nqueens_gpu::NAME])))]
    kernel: Option<String>,

    /// OpenCL devices that count, too: auto (each GPU that is faster than all threads in a short test), all (each GPU), or
    /// numbers from 'nqueens doctor', such as 0,2. They count plans rows, border and colours [default: none; with --kernel
    /// opencl each GPU, or what there is]
    #[arg(long, value_name = "auto|all|LIST")]
    device: Option<DeviceChoice>,

    #[command(flatten)]
    pub(crate) memory: Memory,
}

/// Engines that have passed their test.
pub(crate) struct Engines {
    /// That for the processor; none where devices alone count.
    pub(crate) kernel: Option<Kernel>,
    /// Its threads, and one for each device.
    pub(crate) crews: Vec<Crew>,
}

impl Engines {
    /// The engine to choose the plan for; `None`: GPUs. Threads beside GPUs have a say only if they are fastest by `colours`:
    /// a GPU counts that as well, and many threads may count more of it.
    pub(crate) fn planned_for(&self, n: BoardSize) -> Option<Kernel> {
        if self.crews.len() > 1 { beside_gpus(n, self.kernel) } else { self.kernel }
    }

    pub(crate) fn names(&self) -> String {
        let names: BTreeSet<_> = self.crews.iter().map(|crew| &*crew.engine).collect();
        names.into_iter().collect::<Vec<_>>().join(" + ")
    }
}

fn beside_gpus(n: BoardSize, kernel: Option<Kernel>) -> Option<Kernel> {
    kernel.filter(|kernel| fastest(n, Some(*kernel)) == PlanKind::Colours)
}

/// The plan for a board if threads of an engine and GPUs count it.
pub(crate) fn plan_beside_gpus(asked: Option<PlanKind>, n: BoardSize) -> impl FnOnce(Kernel) -> PlanKind {
    move |kernel| asked.unwrap_or_else(|| fastest(n, beside_gpus(n, Some(kernel))))
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "all" => Ok(Self::All),
            _ => {
                let numbers = text.split(',').map(|number| number.trim().parse::<usize>());
                let numbers = numbers.collect::<Result<_, _>>();
                numbers
                    .map(Self::These)
                    .map_err(|_| "it must be auto, all, or numbers such as 0,2".to_owned())
            }
        }
    }
}

/// A choice of devices, for others to make.
pub(crate) fn device_choice(text: &str) -> Result<String, String> {
    text.parse::<DeviceChoice>().map(|_| text.to_owned())
}

impl EngineOptions {
    /// Tests the engines. One that was asked for must pass. What `--device auto` decides by the `plan` of such threads is told,
    /// in a line for each device.
    pub(crate) fn prove(
        &self,
        threads: NonZeroUsize,
        plan: impl FnOnce(Kernel) -> PlanKind,
        tell: impl Fn(&str),
    ) -> anyhow::Result<Engines> {
        let proof = match self.kernel.as_deref() {
            Some(nqueens_gpu::NAME) => return Ok(Engines { kernel: None, crews: self.devices_alone()? }),
            Some(kernel) => prove(ENGINES, kernel.parse()?).map_err(anyhow::Error::msg)?,
            None => proven_kernels(ENGINES).next().ok_or(WorkerError::NoEngine)?,
        };
        let beside = Crew::of_cpu(proof, threads);
        let devices = match self.asked_for()? {
            Some(devices) => proven_devices(devices)?,
            None if self.device == Some(DeviceChoice::Auto) => {
                let plan = plan(proof.kernel);
                let states_per_s = if numbered().is_ok_and(|found| !gpus(found).is_empty()) {
                    prove_device(ENGINES, proof.kernel.name(), plan).map_err(anyhow::Error::msg)?
                } else {
                    proof.states_per_s
                };
                faster(plan, Crew { states_per_s, ..beside.clone() }.speed(), tell)
            }
            None => Vec::new(),
        };
        Ok(Engines { kernel: Some(proof.kernel), crews: iter::once(beside).chain(devices).collect() })
    }

    /// Each GPU, or what there is, unless others are asked for.
    fn devices_alone(&self) -> anyhow::Result<Vec<Crew>> {
        if let Some(devices) = self.asked_for()? {
            return proven_devices(devices);
        }
        let all: Vec<_> = numbered()?.collect();
        let gpus = gpus(all.iter().copied());
        proven_devices(if gpus.is_empty() { all } else { gpus })
    }

    /// The devices that were asked for; `None` if the choice is the program's.
    fn asked_for(&self) -> anyhow::Result<Option<Vec<(usize, Device)>>> {
        Ok(match &self.device {
            None | Some(DeviceChoice::Auto) => None,
            Some(DeviceChoice::All) => {
                let gpus = gpus(numbered()?);
                ensure!(!gpus.is_empty(), "OpenCL has no GPU here; 'nqueens doctor' lists its devices");
                Some(gpus)
            }
            Some(DeviceChoice::These(numbers)) => {
                let all: Vec<_> = numbered()?.collect();
                if let Some(missing) = numbers.iter().find(|number| **number >= all.len()) {
                    bail!("there is no device {missing}: 'nqueens doctor' lists {}, from 0 on", all.len());
                }
                Some(numbers.iter().map(|number| all[*number]).collect())
            }
        })
    }
}

fn numbered() -> anyhow::Result<impl Iterator<Item = (usize, Device)>> {
    let found = opencl().map_err(|reason| anyhow::Error::new(reason.clone()))?;
    Ok(found.devices.iter().copied().enumerate())
}

fn gpus(devices: impl Iterator<Item = (usize, Device)>) -> Vec<(usize, Device)> {
    devices.filter(|(_, device)| !device.is_cpu()).collect()
}

/// The devices that `auto` takes. Where there is no OpenCL, or no device, it has nothing to tell.
fn faster(plan: PlanKind, threads: f64, tell: impl Fn(&str)) -> Vec<Crew> {
    if let Err(failed @ NoDevice::Failed(_)) = opencl() {
        tell(&failed.to_string());
    }
    let judge = |(number, device): (usize, Device)| {
        let judged = judge(device.is_cpu(), || device_crew(number, device, plan), threads);
        let decision = match &judged {
            Ok(crew) => format!("counts: {}", speeds(crew.speed(), threads)),
            Err(reason) => format!("is left alone: {reason}"),
        };
        tell(&format!("device {number} ({}) {decision}", device.name()));
        judged.ok()
    };
    numbered().into_iter().flatten().filter_map(judge).collect()
}

/// What `auto` makes of a device beside threads of this speed. It is taken if it passes its self-test, and counts faster than
/// all of them; the error says why not. Our own engines use a processor better: it is not even tested.
fn judge(is_cpu: bool, test: impl FnOnce() -> Result<Crew, String>, threads: f64) -> Result<Crew, String> {
    if is_cpu {
        return Err("it is a processor".to_owned());
    }
    let crew = test()?;
    if crew.speed() > threads { Ok(crew) } else { Err(speeds(crew.speed(), threads)) }
}

fn speeds(device: f64, threads: f64) -> String {
    format!("{}, and {} by all threads", speed(device), speed(threads))
}

fn proven_devices(devices: Vec<(usize, Device)>) -> anyhow::Result<Vec<Crew>> {
    let prove = |(number, device): (usize, Device)| {
        let crew = device_crew(number, device, PlanKind::Border);
        crew.map_err(|reason| anyhow!("device {number} ({}): {reason}", device.name()))
    };
    devices.into_iter().map(prove).collect()
}

#[cfg(test)]
mod tests {
    use nqueens_worker::Proof;

    use super::*;

    #[test]
    fn devices_are_chosen_by_word_or_number() {
        use DeviceChoice::{All, Auto, These};
        let choices = ["auto", "all", "0", "2,0, 15"].map(|text| text.parse::<DeviceChoice>().unwrap());
        assert_eq!(choices, [Auto, All, These([0].into()), These([0, 2, 15].into())]);
        for text in ["", "gpu", "1,,2", "-1", "1-3"] {
            text.parse::<DeviceChoice>().unwrap_err();
        }
    }

    fn device(states_per_s: f64) -> Crew {
        let proof = Proof { kernel: Kernel::Scalar, states_per_s };
        Crew::of_cpu(proof, NonZeroUsize::MIN)
    }

    #[test]
    fn the_plan_suits_devices_where_they_count() {
        let plan = |n, kernel: Option<Kernel>, devices| {
            let n = BoardSize::new(n).unwrap();
            let crews = vec![device(1.0); devices + usize::from(kernel.is_some())];
            fastest(n, Engines { kernel, crews }.planned_for(n))
        };
        assert_eq!([20, 21].map(|n| plan(n, None, 1)), [PlanKind::Border, PlanKind::Colours]);
        assert_eq!(plan(20, Some(Kernel::Scalar), 0), PlanKind::Border);
        // Beside threads, that count 20 by `colours` if they can multiply.
        assert_eq!(
            [14, 20, 21].map(|n| plan(n, Some(Kernel::Avx2), 1)),
            [PlanKind::Border, PlanKind::Colours, PlanKind::Colours]
        );
        let beside = [20, 21].map(|n| plan(n, Some(Kernel::Scalar), 1));
        assert_eq!(beside, [PlanKind::Border, PlanKind::Colours]);
    }

    #[test]
    fn auto_takes_what_passes_its_test_and_is_faster_than_all_threads() {
        let judge = |found: Result<f64, &str>| {
            let test = || found.map(device).map_err(str::to_owned);
            super::judge(false, test, 3e9).map(|crew| crew.states_per_s)
        };
        assert_eq!(judge(Ok(3.1e9)), Ok(3.1e9));
        assert_eq!(judge(Ok(3e9)), Err("3.00 G states/s, and 3.00 G states/s by all threads".to_owned()));
        assert_eq!(judge(Ok(1e6)), Err("1.00 M states/s, and 3.00 G states/s by all threads".to_owned()));
        assert_eq!(judge(Err("fell off the bus")), Err("fell off the bus".to_owned()));
    }

    #[test]
    fn auto_leaves_a_processor_alone_however_fast_and_does_not_test_it() {
        let judged = judge(true, || unreachable!("it costs time"), 1.0);
        assert_eq!(judged.map(|crew| crew.states_per_s), Err("it is a processor".to_owned()));
    }
}
