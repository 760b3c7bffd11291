//! The values that several commands take.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::ensure;
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser, ValueParserFactory};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::{Kernel, UnknownKernel};
use nqueens_kernel::halves::Orbits;
use nqueens_kernel::plan::{Plan, PlanKind, UnknownPlan, fastest};

/// The name of leaving the choice to the program.
pub(crate) const AUTO: &str = "auto";

/// More than any machine has; what is asked for beyond is a slip.
const THREADS_MAX: usize = 4096;

/// Reads one of `names`, which the help, the completions and the error of another text list.
pub(crate) fn one_of<T>(names: impl Iterator<Item = &'static str>) -> ValueParser
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(|name| name.parse::<T>()).into()
}

/// Which engine is to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KernelChoice {
    /// The fastest that this machine can run.
    Auto,
    /// This one.
    Kernel(Kernel),
}

impl KernelChoice {
    /// `auto` and the names of all engines.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(AUTO).chain(Kernel::ALL.map(Kernel::name))
    }

    /// The engine; an error if this machine can't run it.
    pub(crate) fn resolve(self) -> anyhow::Result<Kernel> {
        let Self::Kernel(kernel) = self else { return Ok(Kernel::best()) };
        ensure!(
            kernel.is_available(),
            "this machine can't run the {kernel} kernel, for which it lacks {}; the fastest that it can is {}",
            kernel.lacks().join(", "),
            Kernel::best()
        );
        Ok(kernel)
    }
}

impl ValueParserFactory for KernelChoice {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        one_of::<Self>(Self::names())
    }
}

impl FromStr for KernelChoice {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == AUTO { Ok(Self::Auto) } else { text.parse().map(Self::Kernel) }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad(AUTO),
            Self::Kernel(kernel) => kernel.fmt(f),
        }
    }
}

/// How a board is to be cut into jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanChoice {
    /// The fastest for the board.
    Auto,
    /// This one.
    Plan(PlanKind),
}

impl PlanChoice {
    /// `auto` and the names of all plans.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        std::iter::once(AUTO).chain(PlanKind::ALL.map(PlanKind::name))
    }

    /// The plan that was asked for by name.
    pub(crate) fn explicit(self) -> Option<PlanKind> {
        if let Self::Plan(kind) = self { Some(kind) } else { None }
    }

    /// The plan for a board of this size, to be counted by this engine.
    pub(crate) fn resolve(self, n: BoardSize, kernel: Kernel) -> PlanKind {
        let missing = match self.explicit() {
            Some(PlanKind::Halves) if n.get() < Orbits::N_MIN => "half boards",
            Some(PlanKind::Colours) if n.get() < RowSets::N_MIN => "row sets",
            _ => "",
        };
        if !missing.is_empty() {
            eprintln!("nqueens: N = {n} has no {missing} worth the name; the jobs are those of plan border");
        }
        self.explicit().unwrap_or_else(|| fastest(n, kernel))
    }

    /// How the board is cut, into jobs of about so many states or of a size that suits it.
    pub(crate) fn cut(self, n: BoardSize, kernel: Kernel, states_per_job: Option<u64>) -> Plan {
        let kind = self.resolve(n, kernel);
        states_per_job.map_or_else(|| Plan::new(n, kind), |states| Plan::with_states_per_job(n, kind, states))
    }
}

impl ValueParserFactory for PlanChoice {
    type Parser = ValueParser;

    fn value_parser() -> ValueParser {
        one_of::<Self>(Self::names())
    }
}

impl FromStr for PlanChoice {
    type Err = UnknownPlan;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == AUTO { Ok(Self::Auto) } else { text.parse().map(Self::Plan) }
    }
}

impl fmt::Display for PlanChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad(AUTO),
            Self::Plan(kind) => kind.fmt(f),
        }
    }
}

/// Reads a number of threads, `1..=4096`.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|&threads: &NonZeroUsize| threads.get() <= THREADS_MAX);
    number.ok_or_else(|| format!("threads must be a whole number from 1 to {THREADS_MAX}, not '{text}'"))
}

/// Reads a finite number from 0 on.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("it must be a number from 0 on, not '{text}'"))
}

/// As many threads as this process may run at once.
pub(crate) fn default_threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        for name in KernelChoice::names() {
            assert_eq!(name.parse::<KernelChoice>().unwrap().to_string(), name);
        }
        for name in PlanChoice::names() {
            assert_eq!(name.parse::<PlanChoice>().unwrap().to_string(), name);
        }
        assert_eq!(KernelChoice::Auto.resolve().unwrap(), Kernel::best());
    }

    #[test]
    fn thread_counts_are_limited() {
        assert_eq!(threads("4096").map(NonZeroUsize::get), Ok(4096));
        for text in ["0", "4097", "-1", "two", ""] {
            assert!(threads(text).unwrap_err().ends_with(&format!("not '{text}'")));
        }
    }
}
