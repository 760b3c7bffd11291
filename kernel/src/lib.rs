//! Counting N-Queens solutions: boards, symmetry classes, plans of independent jobs, and the engines that count them.
//!
//! This crate is pure: no I/O, no async, no clock, no logging. `docs/counting.md` has the mathematics.
//!
//! * [`board`] (sizes 1 to 31) and [`counts`] (64 bits per job, 128 bits per run, checked) are the basic types.
//! * [`plan`] cuts a board into [`job`]s: groups of prefixes, or a range of row sets. [`plan::fastest`]
//!   has the measurements by which `auto` selects a plan.
//! * A job falls into [`unit`](mod@unit)s. A thread counts them with its [`solver`], the one place that does: boards by an
//!   [`engine`], in batches as large as it takes, of one job or several; colours by the multiplication of
//!   [`colours`].
//! * A large job also has [parts](job::Job::parts), jobs themselves, which are counted again where all of it would take too
//!   long.
//! * A process has its engines from a [`Factory`](engine::Factory); that of the CPU is [`engine::cpu`].
//! * [`subproblem`] is the one question that every engine answers: open rows, with a mask of allowed columns each.
//! * [`known`] has the published counts, [`sequence`] the numbers under which the OEIS lists them.
//! * [`ladder`] keeps the classic algorithms as test oracles. [`symmetric`] counts symmetric solutions with a search
//!   of its own.
//! * [`estimate`](mod@estimate) guesses the work of a subproblem; [`sampling`] estimates a board's solutions and states by random descents.
//! * [`fingerprint`](plan::Plan::fingerprint) identifies a plan with all its jobs.
//! * [`cells`] are boards with given queens and blocked cells.

#![warn(missing_docs)]

pub mod board;
mod border;
pub mod cells;
pub mod colours;
pub mod counts;
pub mod engine;
pub mod estimate;
pub mod job;
pub mod known;
pub mod ladder;
pub mod names;
pub mod plan;
mod prefix;
pub mod random;
mod ranges;
mod rows;
pub mod sampling;
pub mod sequence;
pub mod solution;
pub mod solver;
pub mod subproblem;
pub mod symmetric;
pub mod unit;
