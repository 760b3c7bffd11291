//! Tokens that tell the owners of workers apart.

use serde_json::Value;

use crate::Place;
use crate::processes::{Coordinator, OPERATOR_TOKEN, eventually};

const LAB: &str = "token-for-the-lab-0123456789";
const CLUB: &str = "token-for-the-club-0123456789";

/// The credential of each worker, by its name.
fn credentials(place: &Place, at: &str) -> Vec<(String, String)> {
    let listed: Value = serde_json::from_str(&place.stdout(&format!("workers --json {at}"))).expect("JSON");
    let text = |worker: &Value, key: &str| worker[key].as_str().expect("text").to_owned();
    let workers = listed["workers"].as_array().expect("a list");
    workers.iter().map(|worker| (text(worker, "name"), text(worker, "credential"))).collect()
}

/// Waits until so many workers are there.
fn listed(place: &Place, at: &str, workers: usize) -> Vec<(String, String)> {
    eventually("they register", || Some(credentials(place, at)).filter(|listed| listed.len() == workers))
}

#[test]
fn each_owner_of_workers_has_a_token() {
    let tokens = format!("# Who has which.\n\nlab  {LAB}\n  club\t{CLUB}\n");
    let place = Place::new().with_file("workers.token", &tokens).with_file("operator.token", OPERATOR_TOKEN);
    let files = "--worker-token-file workers.token --operator-token-file operator.token";
    let coordinator = Coordinator::start(&place, &[], files);
    let at = format!("--coordinator {} --operator-token-file operator.token", coordinator.url());
    let mut lab = coordinator.worker(&place, "west", &[("NQUEENS_TOKEN", LAB)]);
    let before = listed(&place, &at, 1);
    let _club = coordinator.worker(&place, "east", &[("NQUEENS_TOKEN", CLUB)]);
    let mut both = listed(&place, &at, 2);
    both.sort();
    let named = |name: &str, of: &str| (name.to_owned(), of.to_owned());
    assert_eq!(
        (before, both),
        (vec![named("west", "lab")], vec![named("east", "club"), named("west", "lab")])
    );
    assert!(place.stdout(&format!("workers {at}")).contains("west of lab"));
    let no_one = place.failure(&format!("distrust east --credential lab {at}"));
    assert!(no_one.contains("no machine of the name east of lab is here"), "{no_one}");
    let no_one = place.failure(&format!("distrust --credential nosuch {at}"));
    assert!(no_one.contains("no machine of credential nosuch is here; 'nqueens workers --all'"), "{no_one}");
    let said = place.stdout(&format!("distrust --credential lab {at}"));
    assert_eq!(said, "every machine of lab is untrusted: it gets no more jobs\n");
    let sent_away = eventually("it is told", || (!lab.is_running()).then(|| lab.end()));
    assert!(sent_away.stderr.contains("nqueens distrust --undo --credential 'lab'"), "{}", sent_away.stderr);
    // The database knows it, too.
    for at in [&*at, "--db queens.db"] {
        let workers = place.stdout(&format!("workers {at}"));
        let [west, east] = ["west of lab", "east of club"].map(|name| {
            let line = workers.lines().find(|line| line.contains(name)).expect(name);
            line.contains("untrusted: an operator said so")
        });
        assert_eq!([west, east], [true, false], "{workers}");
    }
    let said = place.stdout(&format!("distrust --undo --credential lab {at} --json"));
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said, serde_json::json!({ "machine": null, "credential": "lab", "trusted": true }));
}

#[test]
fn a_file_of_tokens_that_tells_nobody_apart_is_refused() {
    let lines = [
        (format!("lab {LAB}\nclub {LAB}"), "two tokens are the same"),
        (format!("lab {LAB}\nlab {CLUB}"), "line 2: 'lab' is there twice; each token needs its own name"),
        (format!("lab {LAB}\n{CLUB}"), "line 2: a line has a name and a token"),
        ("lab short".to_owned(), "line 1: a token has 16 to 256 visible ASCII characters"),
        (format!("shared {LAB}"), "line 1: no credential may be called 'shared'"),
        (format!("lab {OPERATOR_TOKEN}"), "two tokens are the same"),
    ];
    for (text, reason) in lines {
        let place =
            Place::new().with_file("workers.token", &text).with_file("operator.token", OPERATOR_TOKEN);
        let options = "--worker-token-file workers.token --operator-token-file operator.token";
        let said = place.failure(&format!("coordinator --db queens.db --listen 127.0.0.1:0 {options}"));
        assert!(said.contains(reason), "{text}: {said}");
        assert!(!said.contains(LAB) && !said.contains(OPERATOR_TOKEN), "{said}");
    }
}
