#![no_main]

#[path = "../src/spool.rs"]
mod spool;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| spool::check(bytes));
