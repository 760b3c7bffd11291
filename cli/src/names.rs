//! How an operator names a run or a worker.

use std::fmt::Display;
use std::str::FromStr;

use anyhow::bail;
use nqueens_model::id::{RunId, WorkerId};

const DIGITS: usize = 12;

/// A run id, or its first digits.
#[derive(Clone, Debug)]
pub(crate) struct RunPrefix(String);

impl FromStr for RunPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_one = (1..=DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let refused = || {
            format!("a run id has {DIGITS} hexadecimal digits, as 'nqueens status' shows them, not '{text}'")
        };
        if is_one { Ok(Self(text.to_lowercase())) } else { Err(refused()) }
    }
}

impl RunPrefix {
    /// The id, if all of it is given.
    pub(crate) fn whole(&self) -> Option<RunId> {
        self.0.parse().ok()
    }

    /// The only run whose id begins so.
    pub(crate) fn choose(&self, runs: impl Iterator<Item = RunId>) -> anyhow::Result<RunId> {
        let found: Vec<_> = runs.filter(|run| run.to_string().starts_with(&self.0)).collect();
        match found[..] {
            [run] => Ok(run),
            [] => bail!("there is no run {}... here; 'nqueens status' lists the runs", self.0),
            _ => bail!("{} begins the ids of {}: give more digits", self.0, listed(&found)),
        }
    }
}

/// A worker by its number or its name, as 'nqueens workers' lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkerChoice {
    Id(WorkerId),
    Name(String),
}

impl FromStr for WorkerChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<u64>() {
            Ok(number) => WorkerId::new(number).map(Self::Id).ok_or_else(|| {
                format!("a worker is a number or a name listed by 'nqueens workers', not '{text}'")
            }),
            Err(_) => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl WorkerChoice {
    pub(crate) fn choose<'a>(
        &self,
        workers: impl Iterator<Item = (WorkerId, &'a str)>,
    ) -> anyhow::Result<WorkerId> {
        let name = match self {
            Self::Id(id) => return Ok(*id),
            Self::Name(name) => name,
        };
        let found: Vec<_> = workers.filter(|(_, known)| known == name).map(|(id, _)| id).collect();
        match found[..] {
            [worker] => Ok(worker),
            [] => bail!("there is no worker {name} here; 'nqueens workers --all' lists the workers"),
            _ => bail!("{name} is the name of workers {}: give a number", listed(&found)),
        }
    }
}

fn listed(found: &[impl Display]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_chooses_one_run() {
        let runs = ["0123456789ab", "0129999999ab", "fedcba987654"].map(|run| run.parse::<RunId>().unwrap());
        let choose = |text: &str| {
            let chosen = text.parse::<RunPrefix>().unwrap().choose(runs.into_iter());
            chosen.map(|run| run.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(choose("0123"), Ok("0123456789ab".to_owned()));
        assert_eq!(choose("F"), Ok("fedcba987654".to_owned()));
        let ambiguous = "012 begins the ids of 0123456789ab, 0129999999ab: give more digits";
        assert_eq!(choose("012"), Err(ambiguous.to_owned()));
        assert!(choose("7").unwrap_err().starts_with("there is no run 7... here"));
        for wrong in ["", "0123456789abc", "run"] {
            assert!(wrong.parse::<RunPrefix>().unwrap_err().ends_with(&format!("not '{wrong}'")));
        }
    }

    #[test]
    fn a_worker_has_a_number_and_a_name() {
        let workers =
            [(7, "west"), (8, "east"), (9, "west")].map(|(id, name)| (WorkerId::new(id).unwrap(), name));
        let choose = |text: &str| {
            let chosen = text.parse::<WorkerChoice>().unwrap().choose(workers.into_iter());
            chosen.map(WorkerId::get).map_err(|error| error.to_string())
        };
        assert_eq!([choose("8"), choose("east"), choose("12")], [Ok(8), Ok(8), Ok(12)]);
        assert_eq!(choose("west"), Err("west is the name of workers 7, 9: give a number".to_owned()));
        assert!(choose("north").unwrap_err().contains("no worker north"));
        "0".parse::<WorkerChoice>().unwrap_err();
    }
}
