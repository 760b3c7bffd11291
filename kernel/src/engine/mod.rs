//! Counting engines behind one small interface.
//!
//! Every engine counts the completions of [`Subproblem`]s; they differ in speed alone. `reference` is the slow,
//! obvious one that all others are held equal to. [`Kernel`] lists the engines for CPUs. A process is given a
//! [`Factory`], which may have others as well.

mod block;
mod products;
mod reference;
mod scalar;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use strum::{Display, EnumString, IntoStaticStr, VariantNames};

pub use self::products::{MaskLists, ProductCounter, ProductPart, ProductWork, Tree, TreeStep};
use crate::names::UnknownName;
use crate::plan::kind::PlanKind;
use crate::subproblem::Subproblem;

/// What counting one subproblem gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Completions of the subproblem.
    pub completions: u64,
    /// Partial boards visited on the way: the measure of work.
    pub states: u64,
}

/// Whoever asked for the count no longer wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("counting was stopped")]
pub struct Stopped;

/// The line between an engine at work and whoever waits for it; shared between their threads.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    states: AtomicU64,
}

impl Control {
    /// Asks the engine to give up; it does within 100 ms.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// States visited so far by all the counting under this control, for a look from outside.
    pub fn states(&self) -> u64 {
        self.states.load(Ordering::Relaxed)
    }

    /// An engine's regular report, every few million states at least: `states` more were visited.
    /// [`Stopped`] tells it to give up.
    #[inline]
    pub fn advance(&self, states: u64) -> Result<(), Stopped> {
        self.states.fetch_add(states, Ordering::Relaxed);
        if self.is_stopped() { Err(Stopped) } else { Ok(()) }
    }
}

/// How a [fault](Engine::fault) begins if counts were found to be wrong.
pub const COUNTS_WRONG: &str = "the device counts wrong";

/// A counting engine, with whatever buffers it keeps from one subproblem to the next. One a thread.
pub trait Engine: Send {
    /// Counts the completions of `problem`; exactly, or not at all when stopped.
    fn count(&mut self, problem: &Subproblem, control: &Control) -> Result<Tally, Stopped>;

    /// Most subproblems that it counts together, and as many as it needs to be at its fastest; at least 1.
    fn batch_max(&self) -> usize {
        1
    }

    /// Counts up to [`batch_max`](Self::batch_max) problems, which may be of boards of different sizes, each into its
    /// tally; exactly, or not at all when stopped. There are as many tallies as problems.
    fn count_batch(
        &mut self,
        problems: &[Subproblem],
        tallies: &mut [Tally],
        control: &Control,
    ) -> Result<(), Stopped> {
        for (problem, tally) in problems.iter().zip(tallies) {
            *tally = self.count(problem, control)?;
        }
        Ok(())
    }

    /// The kernel by whose instructions its thread multiplies colours; `None` if their solutions are searched one at a time.
    fn isa(&self) -> Option<Kernel> {
        None
    }

    /// Those who multiply colours in its place, side by side: asked for once, by its thread. Empty if nobody does.
    fn product_counters(&mut self) -> Vec<Box<dyn ProductCounter>> {
        Vec::new()
    }

    /// Why it can't count any more, if it has [`Stopped`] though nobody asked for it: its device is lost, or counts wrong,
    /// and then the reason begins with [`COUNTS_WRONG`].
    fn fault(&self) -> Option<&str> {
        None
    }

    /// Whether jobs of the edge class are to be counted by the classic search that tests every solution for its
    /// rotations, instead of by this engine's pure counting (see [`Job::units`](crate::job::Job::units)).
    fn leaf_test(&self) -> bool {
        false
    }
}

/// Makes engines by their names, one for each thread that asks; `None` if there is none of this name or this machine can't
/// run it. What it has made once it can make again.
pub type Factory = dyn Fn(&str) -> Option<Box<dyn Engine>> + Send + Sync;

/// The [`Factory`] of the engines for CPUs, by the names of [`Kernel`].
pub fn cpu(name: &str) -> Option<Box<dyn Engine>> {
    name.parse::<Kernel>().ok()?.engine()
}

/// Counts the states of one search and reports them to its [`Control`] in regular steps.
pub(crate) struct Meter<'a> {
    control: &'a Control,
    states: u64,
    reported: u64,
}

impl<'a> Meter<'a> {
    /// States between two reports: a few milliseconds of work.
    const STEP: u64 = 1 << 20;

    pub(crate) fn new(control: &'a Control) -> Self {
        Self { control, states: 0, reported: 0 }
    }

    /// Counts `states` more; now and then reports them, and is [`Stopped`] if nobody wants them any longer.
    #[inline]
    pub(crate) fn add(&mut self, states: u64) -> Result<(), Stopped> {
        self.states += states;
        if self.states - self.reported >= Self::STEP { self.report() } else { Ok(()) }
    }

    /// For a search whose states take long: [`Stopped`] if nobody wants them any longer.
    pub(crate) fn ask(&self) -> Result<(), Stopped> {
        if self.control.is_stopped() { Err(Stopped) } else { Ok(()) }
    }

    #[cold]
    fn report(&mut self) -> Result<(), Stopped> {
        let new = self.states - self.reported;
        self.reported = self.states;
        self.control.advance(new)
    }

    /// Reports the rest and tells how many states there were in all.
    pub(crate) fn finish(mut self) -> Result<u64, Stopped> {
        self.report()?;
        Ok(self.states)
    }
}

/// The engines for CPUs by name, slowest first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Display, EnumString, IntoStaticStr, VariantNames,
)]
#[strum(serialize_all = "snake_case", parse_err_ty = UnknownName, parse_err_fn = unknown)]
pub enum Kernel {
    /// The classic symmetry search with its test at the leaves, written to be read.
    Reference,
    /// Plain code with a mask a row and a look ahead.
    Scalar,
    /// Block depth-first search in plain code, for any CPU.
    Portable,
    /// Block depth-first search on AVX2.
    Avx2,
    /// Block depth-first search on AVX-512.
    Avx512,
}

impl Kernel {
    /// All engines, slowest first.
    pub const ALL: [Self; 5] = [Self::Reference, Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512];

    /// The name used on the command line, the wire and in the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The CPU features that the engine and its multiplication are compiled for; empty if any CPU runs it.
    pub const fn needs(self) -> &'static [&'static str] {
        match self {
            Self::Reference | Self::Scalar | Self::Portable => &[],
            Self::Avx2 => &["avx2", "bmi1", "bmi2", "lzcnt", "popcnt"],
            Self::Avx512 => &[
                "avx512f",
                "avx512bw",
                "avx512vl",
                "avx512bitalg",
                "avx512vbmi",
                "gfni",
                "avx512vbmi2",
                "popcnt",
                "avx2",
                "bmi1",
                "bmi2",
                "lzcnt",
            ],
        }
    }

    /// Those of [`needs`](Self::needs) that this machine has not.
    pub fn lacks(self) -> Vec<&'static str> {
        self.needs().iter().copied().filter(|feature| !cpu_has(feature)).collect()
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        self.lacks().is_empty()
    }

    /// The family of its counts in runs of a plan. Engines of one family are one search, compiled for several kinds of CPU;
    /// an error in it is in all of them.
    pub const fn family(self, plan: PlanKind) -> &'static str {
        match (self, plan) {
            (Self::Reference | Self::Scalar, PlanKind::Colours) => "colour-search",
            (Self::Reference, _) => "classic-rows",
            (Self::Scalar, _) => "row-masks",
            (
                Self::Portable | Self::Avx2 | Self::Avx512,
                PlanKind::Rows | PlanKind::Border | PlanKind::Cells,
            ) => "block-search",
            (Self::Portable | Self::Avx2 | Self::Avx512, PlanKind::Colours) => "colour-product",
        }
    }

    /// Whether it multiplies colours; else it searches their solutions.
    pub fn multiplies(self) -> bool {
        self >= Self::Portable
    }

    /// The fastest engine that this machine can run.
    pub fn best() -> Self {
        *Self::ALL.iter().rev().find(|kernel| kernel.is_available()).expect("the reference runs everywhere")
    }

    /// A new engine; `None` if this machine can't run it.
    pub fn engine(self) -> Option<Box<dyn Engine>> {
        match self {
            Self::Reference => Some(Box::new(reference::Reference)),
            Self::Scalar => Some(Box::<scalar::Scalar>::default()),
            Self::Portable => Some(block::portable()),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => block::avx2(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => block::avx512(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => None,
        }
    }
}

/// Whether the processor has a feature that some engine needs.
#[cfg(target_arch = "x86_64")]
fn cpu_has(feature: &str) -> bool {
    match feature {
        "avx2" => is_x86_feature_detected!("avx2"),
        "avx512bitalg" => is_x86_feature_detected!("avx512bitalg"),
        "avx512vbmi" => is_x86_feature_detected!("avx512vbmi"),
        "gfni" => is_x86_feature_detected!("gfni"),
        "avx512bw" => is_x86_feature_detected!("avx512bw"),
        "avx512f" => is_x86_feature_detected!("avx512f"),
        "avx512vbmi2" => is_x86_feature_detected!("avx512vbmi2"),
        "avx512vl" => is_x86_feature_detected!("avx512vl"),
        "bmi1" => is_x86_feature_detected!("bmi1"),
        "bmi2" => is_x86_feature_detected!("bmi2"),
        "lzcnt" => is_x86_feature_detected!("lzcnt"),
        "popcnt" => is_x86_feature_detected!("popcnt"),
        _ => unreachable!("nothing needs {feature}"),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_has(_feature: &str) -> bool {
    false
}

fn unknown(name: &str) -> UnknownName {
    UnknownName::new("kernel", name, Kernel::VARIANTS)
}
