//! A worker from the outside.

mod conversation;
mod hostile;
