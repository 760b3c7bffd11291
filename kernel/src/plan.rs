//! Plans: how N becomes independent jobs of about equal work.
//!
//! A plan is nothing but N, its kind and the target size of a job; the jobs follow from these, in the same order
//! on every machine, and a fingerprint proves it.

use std::fmt;
use std::str::FromStr;

use crate::board::BoardSize;
pub use crate::fingerprint::{Fingerprint, Fingerprinter, InvalidFingerprint};
use crate::job::{Class, Job, Weight};
use crate::prefix::Prefix;

/// The ways to cut a board into jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlanKind {
    /// The classic BOUND1/BOUND2 classes with their first rows placed.
    Rows,
    /// Canonical border configurations, with inner rows placed where one is too heavy.
    Border,
}

impl PlanKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Rows, Self::Border];

    /// The name used on the command line, the wire and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Border => "border",
        }
    }

    /// The classes that its jobs are of.
    pub const fn classes(self) -> &'static [Class] {
        match self {
            Self::Rows => &[Class::Corner, Class::Edge],
            Self::Border => &[Class::Border],
        }
    }
}

impl fmt::Display for PlanKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for PlanKind {
    type Err = UnknownPlan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| UnknownPlan(text.to_owned()))
    }
}

/// No plan has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPlan(String);

impl fmt::Display for UnknownPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown plan '{}'; known are: {}", self.0, PlanKind::ALL.map(PlanKind::name).join(", "))
    }
}

impl std::error::Error for UnknownPlan {}

/// How one N is cut into jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    n: BoardSize,
    kind: PlanKind,
    states_per_job: u64,
}

impl Plan {
    /// A job that any engine counts in about a second or less than a minute.
    const STATES_PER_JOB: u128 = 20_000_000_000;
    /// More jobs than this are a burden to whoever keeps them.
    const JOBS_MAX: u128 = 2_000_000;
    /// Fewer jobs than this show no progress and starve threads.
    const JOBS_MIN: u128 = 1_000;
    /// Smaller jobs than this cost more to keep than to count.
    const STATES_PER_JOB_MIN: u64 = 500_000;
    /// Prefixes a job: keeps its encoding to a few kilobytes.
    const PREFIXES_PER_JOB_MAX: usize = 1_000;

    /// A plan with jobs of a size that suits N.
    pub fn new(n: BoardSize, kind: PlanKind) -> Self {
        // The guess at a whole class is poor; from three queens on it is good enough.
        let prefixes = split_while(roots(n, kind), |prefix| prefix.queens.len() < 3);
        let total: u128 = prefixes.map(|prefix| u128::from(prefix.states_estimate())).sum();
        let jobs = (total / Self::STATES_PER_JOB).clamp(Self::JOBS_MIN, Self::JOBS_MAX);
        let states_per_job = u64::try_from(total / jobs).unwrap_or(u64::MAX);
        Self::with_states_per_job(n, kind, states_per_job.max(Self::STATES_PER_JOB_MIN))
    }

    /// A plan with jobs of about this many states each; a hint, in `1..2^63`.
    pub fn with_states_per_job(n: BoardSize, kind: PlanKind, states_per_job: u64) -> Self {
        Self { n, kind, states_per_job: states_per_job.clamp(1, i64::MAX.unsigned_abs()) }
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// The kind of its jobs.
    pub fn kind(&self) -> PlanKind {
        self.kind
    }

    /// The target size of a job, in estimated states.
    pub fn states_per_job(&self) -> u64 {
        self.states_per_job
    }

    /// Its jobs, made one by one: together they have every orbit of solutions once. Always the same in the same
    /// order. None for N < 4, where there is nothing to search.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + Send + use<> {
        self.weighed_jobs().map(|(job, _)| job)
    }

    /// Its jobs, each with its [weight](Job::weight).
    pub fn weighed_jobs(&self) -> impl Iterator<Item = (Job, Weight)> + Send + use<> {
        let heavy = self.states_per_job;
        let light = split_while(roots(self.n, self.kind), move |prefix| prefix.states_estimate() > heavy);
        Groups::new(*self, light)
    }

    /// The proof of which plan it is. Makes all jobs: [`Fingerprinter`] saves that to those who make them anyway.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut fingerprinter = Fingerprinter::new(self);
        for job in self.jobs() {
            fingerprinter.add(&job);
        }
        fingerprinter.finish()
    }
}

fn roots(n: BoardSize, kind: PlanKind) -> impl Iterator<Item = Prefix> {
    kind.classes().iter().flat_map(move |&class| Prefix::shortest(n, class))
}

/// These prefixes, or in place of one all that it splits into, for as long as `heavy` says so.
fn split_while(
    mut roots: impl Iterator<Item = Prefix>,
    heavy: impl Fn(&Prefix) -> bool,
) -> impl Iterator<Item = Prefix> {
    let mut stack = Vec::new();
    std::iter::from_fn(move || {
        loop {
            let prefix = stack.pop().or_else(|| roots.next())?;
            match if heavy(&prefix) { prefix.split() } else { None } {
                Some(parts) => stack.extend(parts.into_iter().rev()),
                None => return Some(prefix),
            }
        }
    })
}

/// Gathers the prefixes of one class, BOUND1 and width into jobs.
struct Groups<P: Iterator> {
    plan: Plan,
    prefixes: std::iter::Peekable<P>,
    /// Class and BOUND1 of the open groups.
    key: Option<(Class, u8)>,
    /// The open group of each width; empty ones hold no bytes.
    open: Vec<Group>,
}

/// Prefixes of one width, one after the other.
#[derive(Clone, Default)]
struct Group {
    bytes: Vec<u8>,
    prefixes: usize,
    weight: Weight,
}

impl<P: Iterator<Item = Prefix>> Groups<P> {
    fn new(plan: Plan, prefixes: P) -> Self {
        Self { plan, prefixes: prefixes.peekable(), key: None, open: Vec::new() }
    }

    /// Puts a prefix into its group, and gives the group's width if that is a job now.
    fn gather(&mut self, prefix: &Prefix) -> Option<usize> {
        let width = prefix.queens.len();
        if self.open.len() <= width {
            self.open.resize(width + 1, Group::default());
        }
        let group = &mut self.open[width];
        group.bytes.extend(&prefix.queens);
        group.prefixes += 1;
        group.weight = group.weight.plus(prefix.weight());
        let full =
            group.weight.states >= self.plan.states_per_job || group.prefixes == Plan::PREFIXES_PER_JOB_MAX;
        full.then_some(width)
    }

    /// Closes the group of this width.
    fn close(&mut self, width: usize) -> (Job, Weight) {
        let key = self.key.expect("a group has a key");
        let group = std::mem::take(&mut self.open[width]);
        let width = u8::try_from(width).expect("a queen a row, a corner's twice");
        (Job::new(self.plan.n, key, width, group.bytes), group.weight)
    }
}

impl<P: Iterator<Item = Prefix>> Iterator for Groups<P> {
    type Item = (Job, Weight);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = self.prefixes.peek().map(|prefix| (prefix.class, prefix.bound1));
            if key != self.key {
                if let Some(width) = self.open.iter().position(|group| group.prefixes > 0) {
                    return Some(self.close(width));
                }
                self.key = key;
            }
            let prefix = self.prefixes.next()?;
            if let Some(width) = self.gather(&prefix) {
                return Some(self.close(width));
            }
        }
    }
}
