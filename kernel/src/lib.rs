//! Counting N-Queens solutions: boards, symmetry classes, plans of independent jobs, and the engines that count
//! them.
//!
//! This crate is pure: no I/O, no async, no clock, no logging. `docs/counting.md` tells the mathematics.

pub mod board;
pub mod counts;
pub mod engine;
pub mod known;
pub mod ladder;
pub mod solution;
pub mod subproblem;
