//! Core-hours are the processor time of all results that were counted, whoever tells them.

use serde_json::Value;

use crate::Place;
use crate::http::{get, page_of};
use crate::page::shown;
use crate::processes::{Coordinator, OPERATOR_TOKEN, cpu_us, eventually};

/// A row's value in a report in Markdown.
fn hours(report: &str, name: &str) -> f64 {
    let row = report.lines().find_map(|line| line.strip_prefix(&format!("| {name} | "))).expect("a row");
    row.trim_end_matches(" |").parse().expect("hours")
}

/// Whether two numbers are the same but for what a report rounds away.
fn assert_like(one: f64, other: f64, what: &str) {
    assert!((one / other - 1.0).abs() < 0.01, "{what}: {one} and {other}");
}

#[test]
fn second_counts_are_in_the_core_hours() {
    let tokens = "lab token-for-the-lab-0123456789\nclub token-for-the-club-0123456789\n";
    let place = Place::new().with_file("workers.token", tokens).with_file("operator.token", OPERATOR_TOKEN);
    let options = "--worker-token-file workers.token --operator-token-file operator.token \
                   --public-page --sync-seconds 1";
    let coordinator = Coordinator::start(&place, &[], options);
    let (address, page) = (coordinator.address.clone(), page_of(&coordinator));
    let at = format!("--coordinator {} --operator-token-file operator.token", coordinator.url());
    let workers = ["lab", "club"].map(|name| {
        let token = format!("token-for-the-{name}-0123456789");
        coordinator.worker(&place, name, &[("NQUEENS_TOKEN", &token)])
    });
    eventually("both have tested their engines", || {
        let listed: Value = place.json(&format!("workers --json {at}"));
        listed["workers"].as_array().filter(|workers| workers.len() == 2).map(|_| ())
    });
    let before: f64 = workers.iter().map(cpu_us).sum();
    let submitted = place.stdout(&format!("submit 15 --plan rows --job-states 5000000 --replicate 100 {at}"));
    let run = submitted.trim_end();
    let watched = place.stdout(&format!("watch {run} --plain {at}"));
    assert!(watched.ends_with("TOTAL 2,279,184, equal to the published count\n"), "{watched}");
    let spent = workers.iter().map(cpu_us).sum::<f64>() - before;

    let sum = |of: &str| -> f64 {
        let query = format!("SELECT sum(cpu_us) FROM result WHERE {of}");
        place.ask("queens.db", &query)[0].parse().expect("a sum")
    };
    let (all, standing) = (sum("true"), sum("verdict = 'accepted'"));
    assert!(sum("verdict = 'duplicate'") > 0.0 && all > standing);
    assert!((0.5..1.1).contains(&(all / spent)), "{all} of the workers' {spent}");
    let report = place.stdout(&format!("report {run} --db queens.db"));
    assert_like(hours(&report, "Core-hours, with second counts"), all / 3.6e9, "all results");
    assert_like(hours(&report, "Core-hours, results that stand"), standing / 3.6e9, "results that stand");
    assert!(report.contains("| Second counts | "), "{report}");
    // Those that no worker makes are the coordinator's.
    let [jobs, agreed] = ["job", "recheck WHERE outcome = 'agreed'"].map(|of| -> u64 {
        place.ask("queens.db", &format!("SELECT count(*) FROM {of}"))[0].parse().expect("a number")
    });
    assert_eq!(agreed, jobs, "each job was counted twice");

    // A coordinator knows it from the results as they come, and from the database after a restart.
    let told = |page: &str| {
        let [picture, _] = shown(page, run);
        let metrics = get(page, "/metrics").body;
        let metric = metrics.lines().find(|line| line.starts_with("nqueens_run_processor_seconds_total{"));
        let seconds = metric.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        let run = &picture["runs"][0];
        [run["core_hours"].as_f64(), run["core_hours_standing"].as_f64(), seconds].map(Option::unwrap)
    };
    let before = told(&page);
    assert_like(before[0], all / 3.6e9, "the page's");
    assert_like(before[1], standing / 3.6e9, "the page's of results that stand");
    assert_like(before[2], all / 1e6, "the metric");
    drop(workers);
    assert_eq!(coordinator.stop().code, 0);
    let coordinator = Coordinator::start_at(&address, &place, &[], options);
    for (after, before) in told(&page_of(&coordinator)).into_iter().zip(before) {
        assert_like(after, before, "after a restart");
    }
}
