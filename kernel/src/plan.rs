//! Plans: how N becomes independent jobs of about equal work.
//!
//! A plan is nothing but N, its kind and the target size of a job; the jobs follow from these, in the same order
//! on every machine, and a fingerprint proves it.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::board::BoardSize;
use crate::job::{Class, Job};
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
    const STATES_PER_JOB_MIN: u64 = 100_000;
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

    /// A plan with jobs of about this many states each; a hint, from 1.
    pub fn with_states_per_job(n: BoardSize, kind: PlanKind, states_per_job: u64) -> Self {
        Self { n, kind, states_per_job: states_per_job.max(1) }
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
    pub fn jobs(&self) -> impl Iterator<Item = Job> + use<> {
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
    states: u64,
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
        group.states = group.states.saturating_add(prefix.states_estimate());
        let full = group.states >= self.plan.states_per_job || group.prefixes == Plan::PREFIXES_PER_JOB_MAX;
        full.then_some(width)
    }

    /// Closes the group of this width.
    fn close(&mut self, width: usize) -> Job {
        let (class, bound1) = self.key.expect("a group has a key");
        let mut bytes = std::mem::take(&mut self.open[width]).bytes;
        if !bytes.chunks_exact(width).is_sorted() {
            let mut prefixes: Vec<_> = bytes.chunks_exact(width).collect();
            prefixes.sort_unstable();
            bytes = prefixes.concat();
        }
        Job::new(self.plan.n, class, bound1, u8::try_from(width).expect("at most N + 4 queens"), bytes)
    }
}

impl<P: Iterator<Item = Prefix>> Iterator for Groups<P> {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
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

/// The SHA-256 of a plan and all its jobs: two plans with the same fingerprint are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    /// 64 lowercase hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
        let byte = |pair: &[u8]| u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).ok();
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(InvalidFingerprint) };
        let bytes: Option<Vec<u8>> = pairs.iter().map(|pair| byte(pair)).collect();
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(InvalidFingerprint)
    }
}

/// What was given is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidFingerprint;

impl fmt::Display for InvalidFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fingerprint is 64 lowercase hexadecimal digits")
    }
}

impl std::error::Error for InvalidFingerprint {}

/// Makes the fingerprint of a plan while its jobs pass by.
#[derive(Clone, Debug)]
pub struct Fingerprinter(Sha256);

impl Fingerprinter {
    /// Starts with what the plan is; its jobs follow, all of them in their order.
    pub fn new(plan: &Plan) -> Self {
        let Plan { n, kind, states_per_job } = plan;
        let head = format!("nqueens plan 1\nn {n}\nkind {kind}\nstates-per-job {states_per_job}\n");
        Self(Sha256::new_with_prefix(head))
    }

    /// The next job.
    pub fn add(&mut self, job: &Job) {
        let bytes = job.encode();
        let length = u32::try_from(bytes.len()).expect("an encoded job is a few kilobytes");
        self.0.update(job.class().name());
        self.0.update([job.bound1()]);
        self.0.update(length.to_be_bytes());
        self.0.update(bytes);
    }

    /// The fingerprint of the plan and the jobs that were added.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Totals;
    use crate::engine::{Control, Kernel};
    use crate::known::published;

    fn total(plan: Plan, kernel: Kernel) -> Totals {
        let mut engine = kernel.engine().unwrap();
        let control = Control::default();
        let leaf_test = engine.leaf_test();
        plan.jobs().flat_map(|job| job.units(leaf_test)).fold(Totals::default(), |totals, unit| {
            totals.checked_add(unit.solve(engine.as_mut(), &control).unwrap().counts).unwrap()
        })
    }

    fn board(n: u32) -> BoardSize {
        BoardSize::new(n).unwrap()
    }

    #[test]
    fn every_plan_finds_the_published_totals() {
        for n in BoardSize::MIN.up_to(board(12)) {
            for kind in PlanKind::ALL {
                assert_eq!(
                    total(Plan::new(n, kind), Kernel::Scalar),
                    published(n).unwrap().orbits,
                    "{kind} {n}"
                );
            }
        }
    }
}
