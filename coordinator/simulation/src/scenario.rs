//! What one simulation is about: its size and its faults, all drawn from a seed, and the text that names it.

use std::fmt;
use std::str::FromStr;

use nqueens_kernel::random::Random;
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The share of a run whose results are all counted twice, in millionths.
pub(crate) const ALL: u32 = 1_000_000;

/// What can go wrong. Each happens now and then, and the more often the higher the rate that the seed gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Fault {
    Loss,
    /// A message takes long, up to minutes: others overtake it, and its sender has given it up by then.
    Delay,
    Duplicate,
    /// A worker and the coordinator can't reach each other for a while.
    Partition,
    /// A worker's process dies. Another begins on its spool.
    Death,
    /// A worker stops, and goes on later as if nothing had been.
    Freeze,
    Failure,
    /// A thread does not get on with a job.
    Hang,
    /// A change of a worker's spool fails.
    Spool,
    /// Machines count wrong, all jobs or one of a few: a minority, each in its own way; those of two credentials, or all, in the
    /// same way.
    Lie,
    /// Who lies reports results under tokens that he never got, or that others got.
    Forge,
    /// The coordinator's process dies; a commit on its way has reached the disk, or it has not.
    Crash,
    /// A transaction fails; all the same it has reached the disk, or it has not.
    Refusal,
    /// The coordinator's database is replaced by an older copy of it.
    Restore,
    /// The coordinator's clock leaps ahead: its process was stopped, or its machine.
    Leap,
    /// The coordinator's disk is short of room for a while.
    Disk,
    /// An operator pauses, resumes, cancels, opens quarantined jobs again, takes results back, distrusts a machine or trusts
    /// it again, and submits more.
    Operator,
    /// An operator or its owner asks a worker to go.
    Drain,
}

impl Fault {
    pub const ALL: &[Self] = Self::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One simulation; the same gives the same history on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) runs: u32,
    pub(crate) jobs: u32,
    /// At least this share of the results is counted twice, in millionths.
    pub(crate) replicate_ppm: u32,
    /// How long faults happen, in simulated seconds.
    pub(crate) seconds: u64,
    pub(crate) faults: Vec<Fault>,
}

impl Scenario {
    /// Most seeds have few workers and jobs, where the rare things meet; one in 20 has up to hundreds.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_large = random.permille(50);
        let mut logarithmic = |low: u64, high: u64| {
            let doublings = (high / low).ilog2() + 1;
            let base = low << random.below(u64::from(doublings));
            (base + random.below(base)).min(high)
        };
        let (workers_max, jobs_max) = if is_large { (300, 600) } else { (40, 160) };
        let workers = usize::try_from(logarithmic(1, workers_max)).expect("small");
        let jobs = u32::try_from(logarithmic(1, jobs_max)).expect("small");
        let runs = u32::try_from(logarithmic(1, 4)).expect("small");
        let seconds = logarithmic(30, 600);
        let faults = Fault::ALL.iter().copied().filter(|_| random.permille(600)).collect();
        let replicate_ppm = [0, 0, 10_000, 200_000, ALL, ALL][random.index(6)];
        Self { seed, workers, runs, jobs, replicate_ppm, seconds, faults }
    }

    /// The same with less of everything but faults, as it takes a few milliseconds.
    #[must_use]
    pub fn small(self) -> Self {
        let (workers, jobs) = (self.workers % 12 + 1, self.jobs % 40 + 1);
        Self { workers, jobs, runs: self.runs.min(2), seconds: self.seconds.min(120), ..self }
    }

    /// Less of one thing each, the largest cuts first.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        let mut simpler = Vec::new();
        for (from, to) in [(self.workers, self.workers / 2), (self.workers, self.workers.saturating_sub(1))] {
            if (1..from).contains(&to) {
                simpler.push(Self { workers: to, ..self.clone() });
            }
        }
        for (from, to) in [(self.jobs, self.jobs / 2), (self.jobs, self.jobs.saturating_sub(1))] {
            if (1..from).contains(&to) {
                simpler.push(Self { jobs: to, ..self.clone() });
            }
        }
        if self.runs > 1 {
            simpler.push(Self { runs: self.runs - 1, ..self.clone() });
        }
        if self.replicate_ppm > 0 {
            simpler.push(Self { replicate_ppm: 0, ..self.clone() });
        }
        if self.seconds > 1 {
            simpler.push(Self { seconds: self.seconds / 2, ..self.clone() });
        }
        for fault in &self.faults {
            let faults = self.faults.iter().copied().filter(|other| other != fault).collect();
            simpler.push(Self { faults, ..self.clone() });
        }
        // The same with other luck, which a smaller one may need.
        let others = (1..=20).map(|step| Self { seed: self.seed.wrapping_add(step << 32), ..self.clone() });
        let smaller = simpler.clone();
        simpler.extend(others.flat_map(|other| {
            smaller.iter().map(move |less| Self { seed: other.seed, ..less.clone() }).collect::<Vec<_>>()
        }));
        simpler
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, workers, runs, jobs, replicate_ppm, seconds, faults } = self;
        let faults: Vec<_> = faults.iter().map(|fault| fault.name()).collect();
        write!(f, "{seed} workers={workers} runs={runs} jobs={jobs} replicate={replicate_ppm} ")?;
        write!(f, "seconds={seconds} faults={}", faults.join(","))
    }
}

impl FromStr for Scenario {
    type Err = String;

    /// A seed alone, or all that [`Display`](fmt::Display) writes.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let seed = words.next().ok_or("the seed is missing")?;
        let mut scenario = Self::of(seed.parse().map_err(|_| format!("'{seed}' is no seed"))?);
        for word in words {
            let wrong = || format!("'{word}' is no part of a scenario");
            let (name, value) = word.split_once('=').ok_or_else(wrong)?;
            match name {
                "workers" => scenario.workers = value.parse().map_err(|_| wrong())?,
                "runs" => scenario.runs = value.parse().map_err(|_| wrong())?,
                "jobs" => scenario.jobs = value.parse().map_err(|_| wrong())?,
                "replicate" => scenario.replicate_ppm = value.parse().map_err(|_| wrong())?,
                "seconds" => scenario.seconds = value.parse().map_err(|_| wrong())?,
                "faults" => {
                    let names = value.split(',').filter(|name| !name.is_empty());
                    scenario.faults =
                        names.map(|name| name.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(scenario)
    }
}
