//! The files of `nqueens certs`.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use crate::Place;

/// All files of a directory, with their modes and contents.
fn files(place: &Place, dir: &str) -> BTreeMap<String, (u32, String)> {
    let files = std::fs::read_dir(place.path(dir)).expect("a directory").map(|file| file.expect("a file"));
    let facts = files.map(|file| {
        let mode = file.metadata().expect("a file").permissions().mode() & 0o777;
        let name = file.file_name().into_string().expect("a name");
        (name, (mode, std::fs::read_to_string(file.path()).expect("text")))
    });
    facts.collect()
}

#[test]
fn keys_are_for_their_owner_and_nothing_is_replaced_unasked() {
    let place = Place::new();
    let made = place.stdout("certs --dir c --host head.example,10.0.0.7 --worker west,east --days 10");
    for line in [
        "every machine: --tls-ca",
        "nowhere: keep it here",
        "coordinator head.example 10.0.0.7",
        "worker, until",
    ] {
        assert!(made.contains(line), "{line}: {made}");
    }
    let first = files(&place, "c");
    let names: Vec<_> = first.keys().map(String::as_str).collect();
    let all = ["ca", "coordinator", "east", "operator", "west"]
        .map(|name| [format!("{name}.key"), format!("{name}.pem")]);
    assert_eq!(names, all.concat());
    for (name, (mode, text)) in &first {
        let is_key = name.rsplit_once('.').is_some_and(|(_, end)| end == "key");
        let (expected, kind) = if is_key { (0o600, "PRIVATE KEY") } else { (0o644, "CERTIFICATE") };
        assert_eq!(*mode, expected, "{name}");
        assert!(text.starts_with(&format!("-----BEGIN {kind}-----")), "{name}");
        assert!(!made.contains(text), "no key is printed");
    }
    assert_eq!(std::fs::metadata(place.path("c")).expect("it").permissions().mode() & 0o777, 0o700);

    let again = place.stdout("certs --dir c --host other.example --worker west,north");
    assert!(again.contains("kept existing files: coordinator.pem, west.pem, operator.pem"), "{again}");
    let second = files(&place, "c");
    assert!(first.iter().all(|(name, file)| second[name] == *file));
    assert!(second.contains_key("north.pem"));

    let renewed = place.stdout("certs renew --dir c --host other.example");
    assert!(renewed.contains("coordinator other.example, until"), "{renewed}");
    let third = files(&place, "c");
    for (name, file) in &second {
        assert_eq!(third[name] == *file, name.starts_with("ca."), "{name}: all but the authority is new");
    }

    std::fs::remove_file(place.path("c/west.key")).expect("it was there");
    let half = place.failure("certs renew --dir c");
    assert!(half.contains("c/west.pem exists but c/west.key does not; restore it"), "{half}");
    std::fs::remove_file(place.path("c/ca.key")).expect("it was there");
    let half = place.failure("certs --dir c");
    assert!(half.contains("c/ca.pem exists but c/ca.key does not"), "{half}");
}
