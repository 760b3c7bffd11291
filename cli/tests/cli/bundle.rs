//! `nqueens bundle`: one archive to publish, which `nqueens verify` takes.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::Place;

/// The files in an archive, unpacked by no code of this program's.
fn unpacked(place: &Place, archive: &str) -> BTreeMap<String, String> {
    let listed = place.program("tar").args(["-tf", archive]).output().expect("tar");
    assert!(listed.status.success(), "{listed:?}");
    assert!(place.program("tar").args(["-xf", archive]).status().expect("tar").success());
    let names = String::from_utf8(listed.stdout).expect("names");
    names.lines().map(|name| (name.to_owned(), fs::read_to_string(place.path(name)).expect("text"))).collect()
}

#[test]
fn a_bundle_has_all_there_is_to_publish() {
    let place = Place::new();
    let run = place.json("run 9 --plan border --json --threads 1 --kernel scalar --job-states 200");
    let said = place.stdout("bundle --db nqueens-9.db");
    let files = unpacked(&place, "nqueens-9.tar");
    let names = ["README.md", "bundle.json", "nqueens-9.ledger", "report.html"];
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        names.map(|name| format!("nqueens-9/{name}")).iter().collect::<Vec<_>>()
    );
    let ledger = &files["nqueens-9/nqueens-9.ledger"];
    assert_eq!(*ledger, place.run("export --db nqueens-9.db --format ledger").stdout);
    let last: Value = serde_json::from_str(ledger.lines().last().expect("a last line")).expect("JSON");
    let hash = last["chain"].as_str().expect("a hash");
    assert!(said.starts_with("nqueens-9.tar: check it with 'nqueens verify nqueens-9.tar'\n"), "{said}");
    assert!(said.ends_with(&format!(": {hash}\n")), "{said}");
    // It says when it was written.
    assert!(files["nqueens-9/report.html"].contains("<h1>N = 9: 352 solutions</h1>"));
    let report = place.stdout("report --db nqueens-9.db --format markdown");
    let read_me = &files["nqueens-9/README.md"];
    let before = |text: &str| text.split_once("To verify it:").expect("commands").0.to_owned();
    assert_eq!(before(read_me), before(&report));
    assert!(
        read_me.contains("\nnqueens verify nqueens-9.ledger ") && !read_me.contains("nqueens-9.db"),
        "{read_me}"
    );
    let about: Value = serde_json::from_str(&files["nqueens-9/bundle.json"]).expect("JSON");
    assert_eq!([&about["run"], &about["n"], &about["total"]], [&run["run"], &json!(9), &json!("352")]);
    let machine = &about["machines"][0];
    assert_eq!(
        [&machine["kernels"], &machine["threads"], &machine["processes"]],
        [&json!("scalar"), &json!(1), &json!(1)]
    );
    assert!(machine["build"].as_str().expect("text").starts_with(env!("CARGO_PKG_VERSION")), "{machine}");
    // What it says counts the same jobs.
    let again = about["count_it_again"].as_str().expect("a command").strip_prefix("nqueens ").expect("ours");
    place.stdout(&format!("{again} --db again.db"));
    let fingerprint = &place.json("status --db again.db --json")["runs"][0]["fingerprint"];
    assert_eq!(about["fingerprint"], *fingerprint);
    // A file that is there stays, unless it may go.
    assert!(place.failure("bundle --db nqueens-9.db").starts_with("nqueens-9.tar exists already"));
    assert_eq!(place.stdout("bundle --db nqueens-9.db --force"), said);
}

#[test]
fn the_ledger_in_a_bundle_is_verified() {
    let place = Place::new();
    place.stdout("run 8 --plan rows --kernel scalar");
    place.stdout("bundle --db nqueens-8.db --output b.tar");
    place.run("export --db nqueens-8.db --format ledger --output l.ledger");
    assert_eq!(place.stdout("verify b.tar"), place.stdout("verify l.ledger"));
    let sampled = place.stdout("verify b.tar --sample 3 --seed 1");
    assert_eq!(sampled, place.stdout("verify l.ledger --sample 3 --seed 1"));
    // Some other digit in a count.
    let good = fs::read(place.path("b.tar")).expect("the archive");
    let at = good.windows(10).position(|bytes| bytes == b"\"count8\":\"").expect("a count") + 10;
    let mut bad = good.clone();
    bad[at] = if bad[at] == b'7' { b'8' } else { b'7' };
    fs::write(place.path("bad.tar"), &bad).expect("written");
    let bad = place.run("verify bad.tar");
    assert_eq!(bad.code, 1, "{}", bad.stdout);
    assert!(bad.stdout.contains("FAILED"), "{}", bad.stdout);
}

#[test]
fn other_archives_are_refused() {
    let place = Place::new();
    place.stdout("run 6");
    place.stdout("bundle --db nqueens-6.db --output b.tar");
    assert!(place.program("tar").args(["-xf", "b.tar"]).status().expect("tar").success());
    fs::copy(place.path("nqueens-6/nqueens-6.ledger"), place.path("nqueens-6/other.ledger")).expect("copied");
    let pack = |name: &str, files: &[&str]| {
        let done = place
            .program("tar")
            .args(["--format=ustar", "-cf", name, "-C", "nqueens-6"])
            .args(files)
            .status();
        assert!(done.expect("tar").success());
    };
    pack("two.tar", &["nqueens-6.ledger", "other.ledger"]);
    pack("none.tar", &["report.html"]);
    pack("one.tar", &["report.html", "other.ledger"]);
    assert_eq!(place.failure("verify two.tar"), "two.tar: there are several ledgers in this archive");
    assert_eq!(place.failure("verify none.tar"), "none.tar: there is no ledger in this archive");
    assert!(place.stdout("verify one.tar").contains("published"));
    let whole = fs::read(place.path("b.tar")).expect("the archive");
    for length in [300, 700, 1500] {
        fs::write(place.path("cut.tar"), &whole[..length]).expect("written");
        let cut = place.run("verify cut.tar");
        assert_eq!(cut.code, 1, "{length}: {}", cut.stdout);
    }
}

#[test]
fn a_run_without_a_total_has_no_bundle() {
    let place = Place::new();
    place.stdout("run 6");
    place.sql(
        "nqueens-6.db",
        "INSERT INTO run (id, n, plan, states_per_job, jobs, fingerprint, seed, state, created_at)
             VALUES (7, 9, 'rows', 1, 0, zeroblob(32), 1, 'paused', 1)",
    );
    let said = place.failure("bundle 000000000007 --db nqueens-6.db");
    assert!(said.contains("has no total"), "{said}");
    assert!(!place.files().contains_key("nqueens-9.tar"));
}

#[test]
fn the_citation_is_of_this_version() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../CITATION.cff");
    let citation = fs::read_to_string(file).expect("the citation");
    for line in [
        "cff-version: 1.2.0",
        "title: nqueens",
        concat!("version: ", env!("CARGO_PKG_VERSION")),
        "  - MIT",
        "  - Apache-2.0",
    ] {
        assert!(citation.lines().any(|it| it == line), "{line}");
    }
    for key in ["message: ", "authors:"] {
        assert!(citation.lines().any(|line| line.starts_with(key)), "{key}");
    }
}
