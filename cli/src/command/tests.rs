//! Tests of all commands: their settings and their help.

use std::ffi::OsString;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::commands;
use crate::settings::Sources;

/// Lines of settings files, right and wrong.
fn line() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("threads"),
        Just("n"),
        Just("config"),
        Just("listen"),
        Just("job-states"),
        Just("no-such-key"),
    ];
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[ -~]{0,12}",
        any::<String>().prop_map(|text| format!("{text:?}")),
        Just("[1, 2]".to_owned()),
        Just("true".to_owned()),
    ];
    prop_oneof![
        (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        "\\[(run|worker|coordinator|nothing)\\]",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::with_cases(96) })]

    /// Whatever stands in a settings file, it is taken or refused, in a line that says which file it is.
    #[test]
    fn whatever_a_file_says_is_judged(lines in vec(line(), 0..6), raw in vec(any::<u8>(), 0..40), is_raw in 0..8) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.toml");
        std::fs::write(&path, if is_raw == 0 { raw } else { lines.join("\n").into_bytes() }).unwrap();
        let arguments: Vec<OsString> =
            vec!["nqueens".into(), "--config".into(), path.clone().into(), "config".into()];
        let judged = Sources::find(commands(), &arguments).and_then(|sources| sources.settings(&arguments, None));
        if let Err(error) = judged {
            let said = error.to_string();
            prop_assert!(said.contains("settings.toml"), "{said}");
        }
    }
}

#[test]
fn the_commands_are_well_formed() {
    commands().debug_assert();
}
