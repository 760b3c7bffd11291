#![no_main]

#[path = "../../cli/src/exit.rs"]
#[allow(dead_code, reason = "what the program does with the settings")]
mod exit;
#[path = "../../cli/src/settings.rs"]
#[allow(dead_code, reason = "what the program does with the settings")]
mod reader;
#[path = "../src/settings.rs"]
mod settings;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| settings::check(bytes));
