#![no_main]

#[path = "../src/ledger.rs"]
mod ledger;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ledger::check(bytes));
