//! Which OpenCL devices count.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use clap::Args;
use nqueens_gpu::Device;
use nqueens_worker::Crew;

use crate::engines::{device_crew, devices};

/// Devices of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeviceChoice {
    /// No device.
    None,
    /// All that are not processors.
    All,
    /// Those of these numbers.
    These(BTreeSet<usize>),
}

/// The devices that a command counts with.
#[derive(Clone, Debug, Args)]
pub(crate) struct Devices {
    /// OpenCL devices that count, too: all (each GPU), none, or numbers from 'nqueens doctor', such as 0,2. They count plans
    /// rows, border and colours
    #[arg(long, value_name = "all|none|LIST", default_value_t = DeviceChoice::None)]
    pub(crate) device: DeviceChoice,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "all" => Ok(Self::All),
            _ => {
                let numbers = text.split(',').map(|number| number.trim().parse::<usize>());
                let numbers = numbers.collect::<Result<_, _>>();
                numbers
                    .map(Self::These)
                    .map_err(|_| "it must be all, none, or numbers such as 0,2".to_owned())
            }
        }
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::These(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(usize::to_string).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}

impl Devices {
    /// A thread for each device of the choice. Each must pass its self-test.
    pub(crate) fn crews(&self) -> anyhow::Result<Vec<Crew>> {
        let chosen = match &self.device {
            DeviceChoice::None => return Ok(Vec::new()),
            DeviceChoice::All => {
                let gpus: Vec<_> = numbered()?.filter(|(_, device)| !device.is_cpu()).collect();
                if gpus.is_empty() {
                    return Err(anyhow!("OpenCL has no GPU here; 'nqueens doctor' lists its devices"));
                }
                gpus
            }
            DeviceChoice::These(numbers) => {
                let all: Vec<_> = numbered()?.collect();
                let find = |number: &usize| {
                    all.get(*number).copied().with_context(|| {
                        format!(
                            "there is no device {number}: 'nqueens doctor' lists {}, from 0 on",
                            all.len()
                        )
                    })
                };
                numbers.iter().map(find).collect::<anyhow::Result<_>>()?
            }
        };
        prove(chosen)
    }

    /// The same where nothing but devices is to count: by default each GPU, or what there is.
    pub(crate) fn crews_alone(&self) -> anyhow::Result<Vec<Crew>> {
        if self.device != DeviceChoice::None {
            return self.crews();
        }
        let all: Vec<_> = numbered()?.collect();
        let gpus: Vec<_> = all.iter().copied().filter(|(_, device)| !device.is_cpu()).collect();
        prove(if gpus.is_empty() { all } else { gpus })
    }
}

fn numbered() -> anyhow::Result<impl Iterator<Item = (usize, Device)>> {
    Ok(devices().map_err(|reason| anyhow::Error::new(reason.clone()))?.iter().copied().enumerate())
}

fn prove(devices: Vec<(usize, Device)>) -> anyhow::Result<Vec<Crew>> {
    let prove = |(number, device): (usize, Device)| {
        device_crew(number, device).map_err(|reason| anyhow!("device {number} ({}): {reason}", device.name()))
    };
    devices.into_iter().map(prove).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_as_they_are_printed() {
        for text in ["none", "all", "0", "0,2,15"] {
            assert_eq!(text.parse::<DeviceChoice>().unwrap().to_string(), text);
        }
        for text in ["", "gpu", "1,,2", "-1", "1-3"] {
            text.parse::<DeviceChoice>().unwrap_err();
        }
    }
}
