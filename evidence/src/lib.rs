//! Evidence for a total: the checks that every sum of a run must pass, the ledger as one file that everyone can
//! check, and recounts of jobs by an independent engine.
//!
//! Pure, except for the reader and writer that it is given: no database, no network. `docs/ledger.md` has the format
//! of the file and says what each check proves.
//!
//! * `total` makes all checks on a sum. The coordinator calls it before it gives a run its total, `verify` calls it
//!   on a file.
//! * `line` and `chain` are the file: one JSON object per line, each with a hash over all before it.
//! * `book` compares the lines with the plan, which it computes anew, in one pass. `finding` names the checks and
//!   their outcomes, `verdict` is what follows from them.
//! * `estimate` estimates a total that nobody has published.
//! * `sample` draws jobs by hashes of a seed and their numbers, so that everyone draws the same.
//! * `recount` counts jobs again as mirror images, by an engine that shares no search with the first; `confidence`
//!   says what that proves.

#![forbid(unsafe_code)]

mod book;
pub mod chain;
pub mod confidence;
pub mod estimate;
pub mod finding;
pub mod line;
mod parts;
pub mod recount;
pub mod sample;
pub mod total;
pub mod verdict;
pub mod verify;
