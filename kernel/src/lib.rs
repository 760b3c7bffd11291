//! Counting N-Queens solutions: boards, symmetry classes, plans of independent jobs, and the engines that count
//! them.
//!
//! This crate is pure: no I/O, no async, no clock, no logging. `docs/counting.md` tells the mathematics.

pub mod board;
mod border;
pub mod colours;
pub mod counts;
pub mod engine;
mod estimate;
pub mod halves;
pub mod isa;
pub mod job;
pub mod known;
pub mod ladder;
pub mod plan;
mod prefix;
pub mod random;
mod ranges;
mod rows;
pub mod sampling;
pub mod solution;
pub mod solver;
pub mod subproblem;
pub mod symmetric;
pub mod unit;
