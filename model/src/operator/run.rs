//! Runs: what is submitted, their states, and everything known about one.

use std::time::Duration;

use nqueens_kernel::job::Job;
use nqueens_kernel::plan::{Fingerprint, Plan};
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

use super::{Interval, MachineName, Outcome, Progress, Standing, WallTime};
use crate::id::{RunId, WorkerId};
use crate::json;

/// A request for a run. The same one again is the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Drawn by the caller; it determines the run's id and the order of its jobs. 32 hexadecimal digits.
    #[serde(with = "hex::serde")]
    pub request: [u8; 16],
    /// How N is split into jobs.
    #[serde(flatten, with = "json::plan")]
    pub plan: Plan,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// At least this share of its results is counted by a second machine, in millionths; 0 for none.
    #[serde(deserialize_with = "json::share_ppm")]
    pub replicate_ppm: u32,
}

impl Submission {
    pub fn run(&self) -> RunId {
        RunId::from_random(self.bits(0))
    }

    /// Fixes the order of the run's jobs.
    pub fn seed(&self) -> u64 {
        self.bits(8)
    }

    fn bits(&self, from: usize) -> u64 {
        u64::from_be_bytes(self.request[from..from + 8].try_into().expect("8 bytes"))
    }
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RunState {
    /// Its jobs are being stored; none is handed out before all are.
    Planning,
    /// Hands out jobs.
    Active,
    /// Hands out nothing; takes results.
    Paused,
    /// Given up; results are set aside.
    Cancelled,
    /// All jobs done, all checks passed, has a total.
    Done,
    /// All jobs done, but a check did not pass: it has no total.
    Failed,
}

impl RunState {
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The state's name in the database and for people.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether there is still work: the run is neither done nor failed nor cancelled.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Planning | Self::Active | Self::Paused)
    }
}

/// A run in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunStatus {
    /// How far it is, with its name, plan and state.
    #[serde(flatten)]
    pub progress: Progress,
    /// Of the plan; `None` unless that was made to its end.
    #[serde(with = "json::optional_text")]
    pub fingerprint: Option<Fingerprint>,
    /// Among active runs, higher goes first.
    pub priority: i32,
    /// At least this share of its results is counted by a second machine, in millionths.
    pub replicate_ppm: u32,
    /// Which check it did not pass, if it failed.
    pub reason: Option<String>,
    #[serde(rename = "created_at_ms")]
    pub created_at: WallTime,
    /// When its first job was leased.
    #[serde(rename = "started_at_ms")]
    pub started_at: Option<WallTime>,
    #[serde(rename = "finished_at_ms")]
    pub finished_at: Option<WallTime>,
    #[serde(flatten)]
    pub outcome: Option<Outcome>,
    pub recounts: Recounts,
}

impl RunStatus {
    /// How far its total may be believed, once there is one.
    pub fn standing(&self) -> Option<Standing> {
        let checks = self.progress.checks;
        let (second_counts, open) = (checks.confirmed.into(), checks.open + checks.unmade);
        let outcome = self.outcome.as_ref();
        outcome.map(|outcome| Standing::new(outcome, second_counts, self.recounts.agreed.into(), open))
    }

    /// How long it waited for its first lease.
    pub fn waited(&self) -> Option<Duration> {
        Some(between(self.created_at, self.started_at?))
    }

    /// How long it was counted: from its first lease on. A board without jobs takes the time to plan it.
    pub fn took(&self) -> Option<Duration> {
        Some(between(self.started_at.unwrap_or(self.created_at), self.finished_at?))
    }

    /// For people and programs.
    pub fn view(self) -> RunView {
        let (plan, standing) = (self.progress.plan, self.standing());
        let unique = self.outcome.filter(|_| plan.cells().is_none());
        RunView {
            subject: plan.subject(),
            unique: unique
                .and_then(|outcome| outcome.totals.unique(plan.n()).ok())
                .map(|unique| unique.to_string()),
            confirmed: standing.as_ref().map(Standing::is_confirmed),
            standing: standing.as_ref().map(Standing::to_string),
            missing: standing.map(|standing| standing.missing().iter().map(ToString::to_string).collect()),
            run: self,
        }
    }

    /// About how many parts its jobs have; a small job is one part.
    pub fn parts_estimate(&self) -> u64 {
        u64::from(self.progress.jobs) * Job::parts_wanted(self.progress.plan.states_per_job())
    }
}

/// A run, with what follows from it: the same over HTTP, in the command line's `--json`, and on the page.
#[derive(Clone, Debug, Serialize)]
pub struct RunView {
    #[serde(flatten)]
    pub run: RunStatus,
    pub subject: String,
    /// Solutions that differ by more than a symmetry.
    pub unique: Option<String>,
    pub confirmed: Option<bool>,
    pub standing: Option<String>,
    /// What it lacks to be confirmed.
    pub missing: Option<Vec<String>>,
}

/// The run that is shown to one who did not choose: one that is counted, or else one that is not over, or else the latest. The
/// oldest come first.
pub fn foremost(runs: &[RunStatus]) -> Option<RunId> {
    let counted = runs.iter().find(|run| run.progress.is_counted());
    let open = || runs.iter().find(|run| run.progress.state.is_open());
    counted.or_else(open).or(runs.last()).map(|run| run.progress.run)
}

fn between(from: WallTime, to: WallTime) -> Duration {
    Duration::from_millis(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// What the coordinator has counted itself of a run, with an engine of another family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recounts {
    /// Parts that came to the same as in the accepted results; a small job is one part.
    pub agreed: u32,
    /// Parts that did not.
    pub differing: u32,
    /// Processor time for all of them, in microseconds.
    pub elapsed_us: u64,
}

/// Whose results are voided; or none, and the second counts that nobody made are asked for again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blamed {
    Job(u32),
    Worker(WorkerId),
    Unmade,
}

/// An operator's word on machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustChange {
    #[serde(flatten)]
    pub machines: MachineName,
    /// Whether they are trusted from now on.
    pub trusted: bool,
}

/// A span of a run's time, and how far the run was at its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    #[serde(rename = "at_ms")]
    pub at: WallTime,
    /// Share of the estimated work that was done, `0.0..=1.0`.
    pub share_done: f64,
    pub states_per_s: f64,
    pub total: Option<Interval>,
}

/// What a coordinator tells of one run alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    pub moments: Vec<Moment>,
    /// How many of its leased jobs are being counted, the others wait in their workers' queues; `None` if nobody can say.
    pub being_counted: Option<u32>,
}

/// A fleet, as it tells the coordinator again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// Its folder and host: whoever has the same is the same fleet.
    pub place: String,
    /// It was told to submit beside others.
    pub also: bool,
    /// Without another word from it for so long, it is gone.
    pub seconds: u32,
}

/// What a coordinator says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorStatus {
    pub build: String,
    /// Version of its conversation with workers.
    pub protocol_version: u32,
    /// The room on the disk with its database, if it watches it.
    pub disk: Option<DiskRoom>,
}

/// The room on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskRoom {
    /// Free space for the coordinator's user.
    pub free_bytes: u64,
    /// Below it no jobs are leased.
    pub reserve_bytes: u64,
    pub is_short: bool,
}

#[cfg(test)]
mod tests {
    use nqueens_kernel::board::BoardSize;
    use nqueens_kernel::counts::Totals;
    use nqueens_kernel::plan::PlanKind;

    use super::super::{CheckCounts, Checked, Grounds, Interval, Speed, TotalEstimate};
    use super::*;

    #[test]
    fn the_database_knows_the_states_by_these_names() {
        let names: Vec<_> = RunState::ALL.iter().map(|state| state.name()).collect();
        assert_eq!(names, ["planning", "active", "paused", "cancelled", "done", "failed"]);
        for state in RunState::ALL {
            assert_eq!(state.name().parse(), Ok(*state));
        }
    }
    /// Everything a run can have, and numbers that outgrow 2^53.
    fn full() -> RunStatus {
        let n = BoardSize::new(27).unwrap();
        let interval = Interval { value: 0.1, low: 1.0 / 3.0, high: f64::MAX };
        let estimate = TotalEstimate { seed: u64::MAX, strata: 1, value: u128::MAX, reach: 3 };
        RunStatus {
            progress: Progress {
                run: "0123456789ab".parse().unwrap(),
                plan: Plan::with_states_per_job(n, PlanKind::Border, 1_000_000_000),
                state: RunState::Active,
                jobs: u32::MAX,
                planned: Some(1),
                done: 2,
                leased: 3,
                quarantined: 4,
                share_done: 0.3,
                states: u128::MAX,
                estimated_states: u128::MAX - 1,
                estimated_total: Some(interval),
                speed: Some(Speed { threads: 0.7, states_per_s: 1e300 }),
                time_left_s: Some(interval),
                waits_for: Some("waiting for workers".to_owned()),
                checks: CheckCounts { open: 1, agreed: 2, settled: 3, unmade: 4, confirmed: 5, recounted: 6 },
                workers: Some(5),
            },
            fingerprint: Some(Fingerprint([0xa5; 32])),
            priority: i32::MIN,
            replicate_ppm: 1,
            reason: Some("\"\u{1f451}\"".to_owned()),
            created_at: 1,
            started_at: Some(2),
            finished_at: Some(i64::MAX),
            outcome: Some(Outcome {
                totals: Totals { count2: 1, count4: 2, count8: u128::MAX, solutions: 0 },
                total: u128::MAX,
                checked: Checked::Symmetric,
                grounds: Some(Grounds { estimate, checks_wanted: 300, recounts_wanted: 60 }),
            }),
            recounts: Recounts { agreed: 1, differing: 2, elapsed_us: u64::MAX },
        }
    }

    #[test]
    fn a_line_says_what_matters_in_120_characters() {
        let mut progress = full().progress;
        let left = Interval { value: 91.0, low: 85.0, high: 96.0 };
        (progress.share_done, progress.done, progress.jobs) = (0.4082, 455, 1_110);
        (progress.planned, progress.waits_for, progress.time_left_s) = (None, None, Some(left));
        progress.speed = Some(Speed { threads: 2.0, states_per_s: 112e9 });
        (progress.quarantined, progress.workers) = (0, Some(2));
        let line = progress.line();
        let expected = "N=27 40.8 %  455/1,110 jobs  112 G states/s  2 workers  \
                        1 min 31 s left (1 min 25 s..1 min 36 s)";
        assert_eq!(line, expected);
        (progress.done, progress.quarantined, progress.jobs) = (21_354, 12, 40_572);
        progress.workers = Some(10_000);
        progress.time_left_s = Some(left.map(|seconds| 1_000.0 * seconds));
        assert!(progress.line().len() < 120, "{}", progress.line());
        (progress.time_left_s, progress.waits_for) = (None, Some("adding up".to_owned()));
        assert!(progress.line().ends_with("10,000 workers  adding up"), "{}", progress.line());
        progress.planned = Some(300);
        assert_eq!(progress.line(), "N=27 planning: 300 of about 40,572 jobs stored");
    }

    #[test]
    fn json_is_read_as_it_was_written() {
        let full = full();
        let mut bare = RunStatus {
            fingerprint: None,
            reason: None,
            started_at: None,
            finished_at: None,
            ..full.clone()
        };
        bare.progress.planned = None;
        bare.progress.estimated_total = None;
        bare.progress.speed = None;
        bare.progress.time_left_s = None;
        bare.progress.waits_for = None;
        bare.progress.workers = None;
        let unconfirmed = full.outcome.map(|outcome| Outcome { grounds: None, ..outcome });
        let runs =
            [RunStatus { outcome: unconfirmed, ..bare.clone() }, RunStatus { outcome: None, ..bare }, full];
        for run in runs {
            let text = serde_json::to_string(&run).unwrap();
            assert_eq!(serde_json::from_str::<RunStatus>(&text).unwrap(), run, "{text}");
        }
        let mut unsorted = self::full();
        let none = Outcome { totals: Totals::default(), checked: Checked::None, ..unsorted.outcome.unwrap() };
        unsorted.outcome = Some(none);
        let json = serde_json::to_value(unsorted.clone().view()).unwrap();
        assert!(["count2", "count4", "count8"].iter().all(|name| json[name].is_null()), "{json}");
        assert_eq!(serde_json::from_value::<RunStatus>(json).unwrap(), unsorted);
        for blamed in [Blamed::Job(7), Blamed::Worker(WorkerId::new(7).unwrap()), Blamed::Unmade] {
            let text = serde_json::to_string(&blamed).unwrap();
            assert_eq!(serde_json::from_str::<Blamed>(&text).unwrap(), blamed, "{text}");
        }
    }

    #[test]
    fn a_misspelt_machine_is_not_all_machines() {
        let read = |text: &str| serde_json::from_str::<TrustChange>(text);
        for text in [
            r#"{"machine":"west","credential":null,"trusted":false}"#,
            r#"{"machine":"west","credential":"lab","trusted":true}"#,
            r#"{"machine":null,"credential":"lab","trusted":false}"#,
        ] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
        for wrong in [
            r#"{"machin":"west","credential":"lab","trusted":false}"#,
            r#"{"machine":7,"credential":"lab","trusted":false}"#,
            r#"{"machine":null,"credential":null,"trusted":false}"#,
        ] {
            read(wrong).expect_err(wrong);
        }
    }

    #[test]
    fn a_submission_that_makes_no_sense_is_refused() {
        let good = serde_json::json!({
            "request": "00112233445566778899aabbccddeeff", "n": 18, "plan": "border", "states_per_job": 1_000,
            "cells": null, "priority": -3, "replicate_ppm": 0,
        });
        let read = |changed: &str, to: serde_json::Value| {
            let mut changed_one = good.clone();
            changed_one[changed] = to;
            serde_json::from_value::<Submission>(changed_one)
        };
        assert_eq!(read("priority", 5.into()).unwrap().priority, 5);
        let wrong: [(&str, serde_json::Value); 8] = [
            ("request", "0011".into()),
            ("n", 0.into()),
            ("n", 1_000.into()),
            ("plan", "cells".into()),
            ("plan", "columns".into()),
            ("states_per_job", 0.into()),
            ("priority", (1_u64 << 31).into()),
            ("replicate_ppm", 1_000_001.into()),
        ];
        for (name, value) in wrong {
            let error = read(name, value.clone()).expect_err(name);
            assert!(error.is_data(), "{name} {value}: {error}");
        }
    }
}
