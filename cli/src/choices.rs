//! Option values that several commands share.

use std::error::Error;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::ensure;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser, ValueParserFactory};
use nqueens_coordinator::{Confirming, Timing};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::names::UnknownName;
use nqueens_kernel::plan::{Plan, PlanKind, fastest};
use nqueens_model::message::THREADS_MAX;

use crate::headings::{CHECKS, LIMITS};
use crate::machine::threads_max;

/// The name of leaving the choice to the program.
pub(crate) const AUTO: &str = "auto";

/// Reads one of `names`, which the help, the completions and the error of another text list.
pub(crate) fn one_of<T>(names: impl Iterator<Item = &'static str>) -> ValueParser
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(|name| name.parse::<T>()).into()
}

/// One of several by name, or leaving the choice to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice<T> {
    Auto,
    Given(T),
}

/// An engine for the processor, or the one for devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EngineName {
    Cpu(Kernel),
    /// Devices, and no thread of the processor.
    OpenCl,
}

/// What is to count on one machine.
pub(crate) type EngineChoice = Choice<EngineName>;

/// Which engine for the processor is to count.
pub(crate) type KernelChoice = Choice<Kernel>;

/// How a board is to be split into jobs.
pub(crate) type PlanChoice = Choice<PlanKind>;

pub(crate) trait Named:
    FromStr<Err: Error + Send + Sync> + Copy + fmt::Display + Send + Sync + 'static
{
    fn names() -> impl Iterator<Item = &'static str>;
}

impl Named for Kernel {
    fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::name)
    }
}

impl Named for EngineName {
    fn names() -> impl Iterator<Item = &'static str> {
        Kernel::names().chain([nqueens_gpu::NAME])
    }
}

impl FromStr for EngineName {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == nqueens_gpu::NAME { Ok(Self::OpenCl) } else { text.parse().map(Self::Cpu) }
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(kernel) => kernel.fmt(f),
            Self::OpenCl => f.pad(nqueens_gpu::NAME),
        }
    }
}

impl EngineChoice {
    /// The choice for the processor; `None` if devices alone are to count.
    pub(crate) fn cpu(self) -> Option<KernelChoice> {
        match self {
            Self::Auto => Some(KernelChoice::Auto),
            Self::Given(EngineName::Cpu(kernel)) => Some(KernelChoice::Given(kernel)),
            Self::Given(EngineName::OpenCl) => None,
        }
    }
}

impl Named for PlanKind {
    fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::name)
    }
}

impl<T: Named> Choice<T> {
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(AUTO).chain(T::names())
    }

    pub(crate) fn given(self) -> Option<T> {
        if let Self::Given(it) = self { Some(it) } else { None }
    }
}

impl<T: Named> ValueParserFactory for Choice<T> {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        one_of::<Self>(Self::names())
    }
}

impl<T: Named> FromStr for Choice<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == AUTO { Ok(Self::Auto) } else { text.parse().map(Self::Given) }
    }
}

impl<T: Named> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad(AUTO),
            Self::Given(it) => it.fmt(f),
        }
    }
}

impl KernelChoice {
    /// The engine, by default the fastest that this machine can run; an error if it can't run the one asked for.
    pub(crate) fn resolve(self) -> anyhow::Result<Kernel> {
        let Self::Given(kernel) = self else { return Ok(Kernel::best()) };
        ensure!(
            kernel.is_available(),
            "this machine can't run the {kernel} kernel because it lacks {}; the fastest kernel that it can run is {}",
            kernel.lacks().join(", "),
            Kernel::best()
        );
        Ok(kernel)
    }
}

impl PlanChoice {
    /// The plan for a board of this size, by default the fastest of this engine for the processor, or where there is none of
    /// devices.
    pub(crate) fn resolve(self, n: BoardSize, kernel: Option<Kernel>) -> PlanKind {
        if self == Self::Given(PlanKind::Colours) && n.get() < RowSets::N_MIN {
            eprintln!("nqueens: N = {n} is too small for row sets; plan border is used instead");
        }
        self.given().unwrap_or_else(|| fastest(n, kernel))
    }

    /// The plan, with jobs of about so many states or of a size that suits it. A board with blocked cells leaves no choice.
    pub(crate) fn cut(
        self,
        n: BoardSize,
        cells: Option<Cells>,
        kernel: Option<Kernel>,
        states_per_job: Option<u64>,
    ) -> Plan {
        if let Some(cells) = cells {
            let suitable = || Plan::of_cells(cells);
            return states_per_job.map_or_else(suitable, |states| Plan::of_cells_with(cells, states));
        }
        let kind = self.resolve(n, kernel);
        states_per_job.map_or_else(|| Plan::new(n, kind), |states| Plan::with_states_per_job(n, kind, states))
    }
}

/// The engine to choose the plan for; `None`: GPUs. Threads beside GPUs have a say only if they are fastest by `colours`: a
/// GPU counts that as well, and many threads may count more of it.
pub(crate) fn suited(n: BoardSize, kernel: Option<Kernel>, has_devices: bool) -> Option<Kernel> {
    kernel.filter(|kernel| !has_devices || fastest(n, Some(*kernel)) == PlanKind::Colours)
}

/// How large a plan may be.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct JobsMax {
    /// Maximum number of jobs of a run; plans with more are refused, because each job is kept in memory
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Timing::default().jobs_max, help_heading = LIMITS)]
    pub(crate) jobs_max: u32,
}

/// How totals are confirmed.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ConfirmingOptions {
    /// Number of second counts and recounts that must agree before a total without a published count is confirmed
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Confirming::default().checks_min, help_heading = CHECKS)]
    checks_min: u32,

    /// How many of them must be recounts by the coordinator: 60 find a share of 5 % of wrong results with 95 % probability
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Confirming::default().recounts_min, help_heading = CHECKS)]
    recounts_min: u32,

    /// Confirm totals as if no counts were published: a rehearsal for boards beyond N = 27
    #[arg(long, help_heading = CHECKS)]
    unpublished: bool,
}

impl From<ConfirmingOptions> for Confirming {
    fn from(options: ConfirmingOptions) -> Self {
        let ConfirmingOptions { checks_min, recounts_min, unpublished } = options;
        Self { checks_min, recounts_min, published: !unpublished }
    }
}

/// Reads a number of threads, `1..=THREADS_MAX`.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|&threads: &NonZeroUsize| threads <= threads_max());
    number.ok_or_else(|| format!("threads must be a whole number from 1 to {THREADS_MAX}, not '{text}'"))
}

/// Reads a finite number from 0 on.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("it must be a number of at least 0, not '{text}'"))
}

#[cfg(test)]
mod tests {
    use nqueens_model::kernel::KernelName;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for name in KernelChoice::names() {
            assert_eq!(name.parse::<KernelChoice>().unwrap().to_string(), name);
        }
        for name in EngineChoice::names() {
            assert_eq!(name.parse::<EngineChoice>().unwrap().to_string(), name);
        }
        assert_eq!(nqueens_gpu::NAME, KernelName::DEVICE);
        for name in PlanChoice::names() {
            assert_eq!(name.parse::<PlanChoice>().unwrap().to_string(), name);
        }
        assert_eq!(KernelChoice::Auto.resolve().unwrap(), Kernel::best());
    }

    #[test]
    fn the_plan_suits_devices_where_they_count() {
        let plan = |n, kernel| PlanChoice::Auto.resolve(BoardSize::new(n).unwrap(), kernel);
        assert_eq!([19, 20].map(|n| plan(n, None)), [PlanKind::Border, PlanKind::Colours]);
        assert_eq!(plan(20, Some(Kernel::Scalar)), PlanKind::Border);
        // Beside threads, that count 19 by `colours` if they can multiply.
        let beside = |n, kernel| {
            let n = BoardSize::new(n).unwrap();
            PlanChoice::Auto.resolve(n, suited(n, Some(kernel), true))
        };
        assert_eq!(
            [14, 19, 20].map(|n| beside(n, Kernel::Avx2)),
            [PlanKind::Border, PlanKind::Colours, PlanKind::Colours]
        );
        assert_eq!([19, 20].map(|n| beside(n, Kernel::Scalar)), [PlanKind::Border, PlanKind::Colours]);
        let alone = BoardSize::new(19).unwrap();
        assert_eq!(suited(alone, Some(Kernel::Scalar), false), Some(Kernel::Scalar));
        let asked_for = PlanChoice::Given(PlanKind::Rows).resolve(BoardSize::new(20).unwrap(), None);
        assert_eq!(asked_for, PlanKind::Rows);
    }

    #[test]
    fn thread_counts_are_limited() {
        assert_eq!(threads("4096").map(NonZeroUsize::get), Ok(4096));
        for text in ["0", "4097", "-1", "two", ""] {
            assert!(threads(text).unwrap_err().ends_with(&format!("not '{text}'")));
        }
    }
}
