//! Counting on GPUs, through OpenCL: depth-first search on boards, and colours. The only crate that talks to a driver.
//!
//! [`devices`] finds what there is; the library is loaded at run time, so the program starts without it. [`engine`] makes
//! an [`Engine`](nqueens_kernel::engine::Engine) of a device. Where it counts boards it shares no code with the engines for
//! CPUs, and is a family of its own.
//!
//! * `search.cl` is the program for the device: one lane a task, and a lane that is done takes the next. The script `gate`
//!   judges its machine code for NVIDIA's GPUs; `.ci/run` runs it.
//! * `masks` brings a board into the form that it wants, `split` cuts boards into tasks on several threads, `guess` tells how
//!   large they are.
//! * `device` is OpenCL, behind the small trait of `runner`, which tests replace by devices that fail.
//! * `multiply.cl` compares placements of colours and multiplies the counts; `pairs` keeps it busy, and counts some of its sums
//!   again.
//! * `engine` keeps the device busy, adds up, and notices what was left out or counted wrong.
//! * `lanes` is for a benchmark: a device that is not there.

#![deny(unsafe_op_in_unsafe_fn)]

mod canary;
mod device;
mod engine;
mod guess;
#[doc(hidden)]
pub mod lanes;
mod masks;
mod pairs;
mod runner;
mod split;

pub use device::{Device, NoDevice, devices, engine};

/// The engine's name, and that of its family where it counts boards.
pub const NAME: &str = "opencl";
