//! The crate from the outside.

mod cells;
mod colours;
mod engines;
mod jobs;
mod ladder;
mod parts;
mod plans;
mod sampling;
mod sequences;
mod sizes;
mod solution;
