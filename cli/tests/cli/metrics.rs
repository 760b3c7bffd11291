//! The metrics, held against promtool, the alert rules, the dashboard and the document.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::http::{get, is_here, page_of};
use crate::processes::{Coordinator, eventually};
use crate::{Outcome, Place};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(path)).expect(path)
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|symbol: char| !symbol.is_ascii_alphanumeric() && symbol != '_');
    words.filter(|word| word.starts_with("nqueens_") && !word.ends_with('_')).collect()
}

/// A run at work for long enough that everything is measured.
fn scrape() -> String {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let page = page_of(&coordinator);
    let submit = format!("submit 18 --plan border --job-states 3000000 --coordinator {}", coordinator.url());
    place.stdout(&submit);
    let _worker = coordinator.worker_on(&place, "a\"quoted\\name\"", "spool", &[]);
    eventually("everything is measured", || {
        let answer = get(&page, "/metrics");
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/plain; version=0.0.4"));
        let all = ["nqueens_run_estimated_solutions{", "nqueens_run_states_per_second{"];
        all.iter().all(|metric| answer.body.contains(metric)).then_some(answer.body)
    })
}

#[test]
fn metrics_alerts_dashboard_and_document_speak_of_the_same() {
    let live = scrape();
    assert!(live.contains("name=\"a\\\"quoted\\\\name\\\"\""), "{live}");
    let samples: BTreeSet<_> = live
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| names(line).into_iter().next())
        .collect();
    assert_eq!(samples, names(&live), "every metric has a sample");
    let document = read("docs/web.md");
    assert_eq!(names(&document), samples, "docs/web.md lists the metrics, and no others");
    let (alerts, dashboard) = (read("deploy/prometheus/alerts.yml"), read("deploy/grafana/dashboard.json"));
    for text in [&alerts, &dashboard] {
        let unknown: Vec<_> = names(text).difference(&samples).copied().collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
    let dashboard: Value = serde_json::from_str(&dashboard).expect("JSON");
    for panel in dashboard["panels"].as_array().expect("a list") {
        assert!(panel["title"].is_string() && panel["targets"][0]["expr"].is_string(), "{panel}");
    }

    if is_here("promtool") {
        let place = Place::new().with_file("metrics.txt", &live);
        let file = std::fs::File::open(place.path("metrics.txt")).expect("just written");
        let checked =
            Outcome::of(Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::from(file)));
        assert_eq!((checked.code, &*checked.stdout, &*checked.stderr), (0, "", ""));
    }
}

#[test]
fn of_the_runs_that_are_over_the_latest_have_series() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let url = coordinator.url();
    let over = |_| {
        let run = place.stdout(&format!("submit 8 --coordinator {url}")).trim_end().to_owned();
        place.stdout(&format!("cancel {run} --yes --coordinator {url}"));
        run
    };
    let runs: Vec<_> = (0..22).map(over).collect();
    let told = get(&page_of(&coordinator), "/metrics").body;
    let is_told = |run: &String| {
        told.contains(&format!("nqueens_run_state{{n=\"8\",run=\"{run}\",state=\"cancelled\"}} 1\n"))
    };
    let first = runs.iter().position(is_told);
    assert_eq!((first, runs.iter().filter(|run| is_told(run)).count()), (Some(2), 20), "{told}");
}

#[test]
fn alerts_ring_when_they_should() {
    if !is_here("promtool") {
        return;
    }
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let folder = Path::new(ROOT).join("deploy/prometheus");
        let outcome = Outcome::of(Command::new("promtool").args(arguments).current_dir(folder));
        assert_eq!(outcome.code, 0, "{arguments:?}: {}{}", outcome.stdout, outcome.stderr);
    }
}
