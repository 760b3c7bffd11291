//! A coordinator from the outside: workers and operators over real sockets, the ledger by plain SQL on its file.

mod answers;
mod cells;
mod common;
mod confirming;
mod credentials;
mod lies;
mod operator;
mod parts;
mod planning;
mod service;
