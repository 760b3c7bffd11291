//! Option values that several commands share.

use std::error::Error;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::ensure;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use nqueens_coordinator::{Policy, Timing};
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::colours::RowSets;
use nqueens_kernel::engine::Kernel;
use nqueens_kernel::plan::{Plan, PlanKind, fastest};
use nqueens_model::message::THREADS_MAX;

use crate::board::Board;
use crate::headings::{CHECKS, LIMITS};
use crate::machine::{default_threads, threads_max};

/// Reads one of `names`, which the help, the completions and the error of another text list.
pub(crate) fn one_of<T>(names: impl IntoIterator<Item = &'static str>) -> ValueParser
where
    T: FromStr<Err: Error + Send + Sync + 'static> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>()).into()
}

pub(crate) fn kernels() -> ValueParser {
    one_of::<Kernel>(Kernel::ALL.map(Kernel::name))
}

pub(crate) fn plans() -> ValueParser {
    one_of::<PlanKind>(PlanKind::ALL.map(PlanKind::name))
}

/// The engine, by default the fastest that this machine can run; an error if it can't run the one asked for.
pub(crate) fn runnable(kernel: Option<Kernel>) -> anyhow::Result<Kernel> {
    let Some(kernel) = kernel else { return Ok(Kernel::best()) };
    ensure!(
        kernel.is_available(),
        "this machine can't run the {kernel} kernel because it lacks {}; the fastest kernel that it can run is {}",
        kernel.lacks().join(", "),
        Kernel::best()
    );
    Ok(kernel)
}

/// The plan for a board of this size, by default the fastest of this engine for the processor, or where there is none of
/// devices.
pub(crate) fn plan_kind(asked: Option<PlanKind>, n: BoardSize, kernel: Option<Kernel>) -> PlanKind {
    if asked == Some(PlanKind::Colours) && n.get() < RowSets::N_MIN {
        eprintln!("nqueens: N = {n} is too small for row sets; plan colours counts without them");
    }
    asked.unwrap_or_else(|| fastest(n, kernel))
}

/// How a board is split into jobs.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Splitting {
    /// How to split the board into jobs [default: the fastest way]
    #[arg(long, value_parser = plans(), conflicts_with = "cells")]
    pub(crate) plan: Option<PlanKind>,

    /// Estimated states per job; an interruption or a dead worker loses less work when jobs are smaller [default: depends
    /// on N]
    #[arg(long, value_name = "STATES", value_parser = clap::value_parser!(u64).range(1..=1 << 62), help_heading = LIMITS)]
    job_states: Option<u64>,
}

impl Splitting {
    /// The plan for this engine. A board with blocked cells leaves no choice.
    pub(crate) fn plan(self, board: &Board, kernel: Option<Kernel>) -> Plan {
        let states = self.job_states;
        if let Some(cells) = board.cells {
            return states.map_or_else(|| Plan::of_cells(cells), |states| Plan::of_cells_with(cells, states));
        }
        let (n, kind) = (board.n, plan_kind(self.plan, board.n, kernel));
        states.map_or_else(|| Plan::new(n, kind), |states| Plan::with_states_per_job(n, kind, states))
    }
}

/// How totals are confirmed, and how large a plan may be.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct RunRules {
    /// Number of second counts and recounts that must agree before a total without a published count is confirmed
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Timing::default().checks_min, help_heading = CHECKS)]
    checks_min: u32,

    /// How many of them must be recounts by the coordinator: 60 find a share of 5 % of wrong results with 95 % probability
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Policy::default().recounts_min, help_heading = CHECKS)]
    recounts_min: u32,

    /// Confirm totals as if no counts were published: a rehearsal for boards beyond N = 27
    #[arg(long, help_heading = CHECKS)]
    unpublished: bool,

    /// Maximum number of jobs of a run; plans with more are refused, because each job is kept in memory
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = Timing::default().jobs_max, help_heading = LIMITS)]
    jobs_max: u32,
}

impl RunRules {
    pub(crate) fn timing(&self) -> Timing {
        Timing { jobs_max: self.jobs_max, checks_min: self.checks_min, ..Timing::default() }
    }

    /// Numbers of a coordinator that is to recount, or not.
    pub(crate) fn policy(&self, arbiter: bool) -> Policy {
        Policy { arbiter, recounts_min: self.recounts_min, published: !self.unpublished, ..Policy::default() }
    }
}

/// How many threads count.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Threads {
    /// Number of threads [default: one per processor]
    #[arg(short, long, value_parser = threads, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
}

impl Threads {
    pub(crate) fn number(self) -> NonZeroUsize {
        self.threads.unwrap_or_else(default_threads)
    }
}

/// Reads a number of threads, `1..=THREADS_MAX`.
pub(crate) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|&threads: &NonZeroUsize| threads <= threads_max());
    number.ok_or_else(|| format!("threads must be a whole number from 1 to {THREADS_MAX}, not '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_counts_are_limited() {
        assert_eq!(threads("4096").map(NonZeroUsize::get), Ok(4096));
        for text in ["0", "4097", "-1", "two", ""] {
            assert!(threads(text).unwrap_err().ends_with(&format!("not '{text}'")));
        }
    }
}
