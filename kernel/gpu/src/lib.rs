//! Counting on GPUs, through OpenCL: depth-first search on boards, and colours. The only crate that talks to a driver.
//!
//! [`devices`] finds what there is; the library is loaded at run time, so the program starts without it. [`engine`] makes
//! an [`Engine`](nqueens_kernel::engine::Engine) of a device. Where it counts boards it shares no code with the engines for
//! CPUs, and is a family of its own.
//!
//! * `search.cl` is the program for boards: one lane a task, and a lane that is done takes the next. `masks` brings a board
//!   into the form that it wants, `split` cuts boards into tasks on several threads, `guess` tells how large they are, and
//!   `engine` keeps the device busy, adds up, and notices what was left out or counted wrong.
//! * `multiply.cl` is the program for colours: it joins lists of placements with a tree of others, and multiplies the counts.
//!   `walk` cuts a tree into chunks, `products` keeps the device busy, and counts some cells and sums again.
//! * `device` is OpenCL, behind the small traits of `runner` and `products`, which tests replace by devices that fail.
//!   `dialect.cl` stands before both programs. The script `gate` judges their machine code for NVIDIA's GPUs; `.ci/run` runs it.

#![deny(unsafe_op_in_unsafe_fn)]

mod canary;
mod device;
mod engine;
mod guess;
mod masks;
mod products;
mod runner;
mod split;
mod walk;

pub use device::{Device, Found, NoDevice, devices, engine};

/// The engine's name, and that of its family where it counts boards.
pub const NAME: &str = "opencl";
