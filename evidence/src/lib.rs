//! What makes a total believable: the checks that every sum of a run has to pass, the ledger as one file that anybody can
//! check, and recounts of jobs by independent engines.
//!
//! Pure but for the reader and writer that it is given: no database, no network. `docs/ledger.md` has the format of the file
//! and tells what each check proves.

#![forbid(unsafe_code)]

mod book;
pub mod chain;
pub mod confidence;
pub mod finding;
pub mod line;
mod parts;
pub mod recount;
pub mod sample;
pub mod total;
pub mod verify;
