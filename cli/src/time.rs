//! Durations and moments that a user gives.

use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use nqueens_fleet::process::run;
use tracing::{info, warn};

/// A hanging controller must not keep a worker from its work: then Slurm's own signal has to do.
const SQUEUE_TIMEOUT: Duration = Duration::from_secs(20);

/// Reads a duration above 0, such as `90s`, `5m`, `1h30m` or `2 days`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<SignedDuration>().ok().and_then(|duration| Duration::try_from(duration).ok());
    let duration = duration.filter(|duration| !duration.is_zero());
    duration
        .ok_or_else(|| format!("a duration is a number with a unit, such as 90s, 5m or 1h30m, not '{text}'"))
}

/// When a process has to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    Auto,
    After(Duration),
    At(Timestamp),
}

impl FromStr for TimeLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let after = || duration(text).ok().map(Self::After);
        after().or_else(|| moment(text).map(Self::At)).ok_or_else(|| {
            format!("a time limit is auto, a duration such as 90m or 2h, or a time such as 2026-12-24T18:00, not '{text}'")
        })
    }
}

impl TimeLimit {
    /// The time that is left; `None` without a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        let until = |end: Timestamp| {
            Duration::try_from(end.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO)
        };
        match self {
            Self::After(time) => Some(time),
            Self::At(end) => Some(until(end)),
            Self::Auto => {
                let end = slurm_end();
                if let Some(end) = end {
                    info!(%end, "time limit of the Slurm job");
                } else {
                    info!("no time limit found: --time-limit auto looks for that of a Slurm job");
                }
                end.map(until)
            }
        }
    }
}

/// A moment with its zone, or on this machine's clock.
fn moment(text: &str) -> Option<Timestamp> {
    let local =
        || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::system()).ok().map(|time| time.timestamp());
    text.parse().ok().or_else(local)
}

/// When Slurm ends the job that this process belongs to: by a variable from Slurm 23.02 on, else by `squeue`.
fn slurm_end() -> Option<Timestamp> {
    let variable = |name| std::env::var(name).ok();
    // The last task of an array has the array's own number, which stands for all its tasks in squeue.
    let task = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"));
    let job = task.map(|(array, task)| format!("{array}_{task}")).or_else(|| variable("SLURM_JOB_ID"))?;
    let told = variable("SLURM_JOB_END_TIME").and_then(|end| end.parse().ok());
    if let Some(end) = told.and_then(|seconds| Timestamp::from_second(seconds).ok()) {
        return Some(end);
    }
    let mut squeue = Command::new("squeue");
    squeue.args(["--noheader", "--jobs", &job, "--format", "%e"]);
    match run(&mut squeue, SQUEUE_TIMEOUT) {
        Ok(end) => moment(end.trim()),
        Err(error) => {
            warn!(%error, "squeue does not tell the time limit of this Slurm job");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_three_forms() {
        assert_eq!("auto".parse(), Ok(TimeLimit::Auto));
        assert_eq!("1h30m".parse(), Ok(TimeLimit::After(Duration::from_mins(90))));
        let second = Timestamp::from_second(1_800_000_000).unwrap();
        assert_eq!("2027-01-15T08:00:00Z".parse(), Ok(TimeLimit::At(second)));
        assert!(matches!("2027-01-15T08:00".parse(), Ok(TimeLimit::At(_))), "as squeue prints it");
        for text in ["", "0s", "-5m", "N/A", "5", "soon"] {
            assert!(text.parse::<TimeLimit>().unwrap_err().ends_with(&format!("not '{text}'")));
        }
        assert!(TimeLimit::At(second).left().is_some());
        assert_eq!("2001-01-01T00:00Z".parse::<TimeLimit>().unwrap().left(), Some(Duration::ZERO));
    }
}
