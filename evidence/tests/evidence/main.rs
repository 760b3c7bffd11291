//! Ledgers and recounts from the outside.

mod hostile;
mod ledger;
mod recount;
