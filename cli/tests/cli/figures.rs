//! One figure, wherever it is told: metrics, page, status, log and lines of `watch`, at one moment.

use std::io::BufRead;

use nqueens_model::{PROGRESS, numbers};
use serde_json::Value;

use crate::Place;
use crate::http::{get, page_of};
use crate::page::shown;
use crate::processes::{Background, Coordinator, ended, eventually};

/// What one place tells of a run: nothing, where it does not know.
#[derive(Clone, Debug, Default, PartialEq)]
struct Figures {
    states_per_s: Option<f64>,
    /// Value, low end, high end.
    time_left_s: [Option<f64>; 3],
    workers: Option<f64>,
}

impl Figures {
    fn of_json(run: &Value) -> Self {
        Self {
            states_per_s: run["states_per_s"].as_f64(),
            time_left_s: ["value", "low", "high"].map(|end| run["time_left_s"][end].as_f64()),
            workers: run["busy_workers"].as_f64(),
        }
    }

    fn of_metrics(text: &str, run: &str) -> Self {
        let value = |name: &str| {
            let is_it = |line: &&str| line.starts_with(&format!("{name}{{")) && line.contains(run);
            text.lines().find(is_it).and_then(|line| line.rsplit(' ').next()?.parse().ok())
        };
        let time_left_s =
            ["", "_low", "_high"].map(|end| value(&format!("nqueens_run_time_left{end}_seconds")));
        Self { states_per_s: value("nqueens_run_states_per_second"), time_left_s, workers: None }
    }

    /// Of the last line about a run.
    fn of_log(log: &str, run: &str) -> Option<Self> {
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut lines = lines.filter(|line| line["target"] == PROGRESS && line["run"] == run);
        let line = lines.next_back()?;
        let value = |name: &str| line[name].as_f64();
        Some(Self {
            states_per_s: value("states_per_s"),
            time_left_s: ["time_left_s", "time_left_low_s", "time_left_high_s"].map(value),
            workers: value("workers"),
        })
    }

    /// As the log rounds them.
    fn rounded(&self) -> Self {
        let round = |number: Option<f64>| number.map(f64::round);
        let states_per_s = round(self.states_per_s);
        Self { states_per_s, time_left_s: self.time_left_s.map(round), workers: self.workers }
    }

    /// As `watch` writes them for people.
    fn told(&self) -> Option<[String; 3]> {
        let [Some(value), Some(low), Some(high)] = self.time_left_s else { return None };
        let [left, low, high] = [value, low, high].map(numbers::span);
        let (speed, workers) = (self.states_per_s?, self.workers?);
        Some([
            format!("  {left} left ({low}..{high})"),
            format!("  {}", numbers::speed(speed)),
            format!("  {}", numbers::counted(workers, "worker")),
        ])
    }
}

/// How many progress lines there are.
fn progress_lines(coordinator: &Coordinator) -> usize {
    coordinator.process.said().matches(PROGRESS).count()
}

#[test]
fn all_places_tell_the_same_of_a_run_and_nothing_of_one_that_waits() {
    let place = Place::new();
    // Results come in every few seconds, and meanwhile no figure changes.
    let options = "--sync-seconds 5 --progress-seconds 1";
    let coordinator = Coordinator::start(&place, &[("NQUEENS_LOG_FORMAT", "json")], options);
    let (page, at) = (page_of(&coordinator), format!("--coordinator {}", coordinator.url()));
    // Both outlast any test. A job of the first takes some seconds; the jobs of the second are larger than all that a worker asks for at once.
    let submit = |run: &str| coordinator.submit(&place, run);
    let counted = submit("20 --plan border --job-states 300000000 --priority 1");
    let waiting = submit("24 --plan rows --job-states 1000000000000");
    let _worker = coordinator.worker(&place, "west", &[]);
    let status = |run: &str| place.json(&format!("status {run} --json {at}"))["runs"][0].take();
    // A line for each run.
    let watch = |more: &str| -> [String; 2] {
        let mut watch =
            Background::start(&mut place.command(&format!("watch --plain --interval 0.2 {more} {at}")));
        let lines: Vec<_> = watch.stdout().lines().take(2).map(|line| line.expect("text")).collect();
        [&counted, &waiting]
            .map(|run| lines.iter().find(|line| line.contains(run)).expect("its line").clone())
    };
    let in_json =
        |lines: [String; 2]| lines.map(|line| Figures::of_json(&serde_json::from_str(&line).expect("JSON")));
    let everywhere = |run: &str, metrics: &str, picture: &Value| {
        let runs = picture["runs"].as_array().expect("a list");
        let on_page = runs.iter().find(|each| each["run"] == run).expect("it is shown");
        let log = Figures::of_log(&coordinator.process.said(), run).expect("a line a second");
        (Figures::of_metrics(metrics, run), Figures::of_json(on_page), log)
    };
    eventually("all places were asked between two reports", || {
        let before = Figures::of_json(&status(&counted));
        before.told()?;
        let lines = progress_lines(&coordinator);
        let (metrics, [picture, _]) = (get(&page, "/metrics").body, shown(&page, &counted));
        let (plain, lines_in_json) = (watch(""), in_json(watch("--json")));
        eventually("both have a line in the log", || {
            (progress_lines(&coordinator) >= lines + 2).then_some(())
        });
        let waits = Figures::of_json(&status(&waiting));
        let seen = [&counted, &waiting].map(|run| everywhere(run, &metrics, &picture));
        if Figures::of_json(&status(&counted)) != before {
            return None;
        }

        let [(metrics, on_page, log), others] = seen;
        assert_eq!(on_page, before, "the page");
        // JSON may be read with an error in the last digit.
        let rounded = Figures { workers: None, ..before.rounded() };
        assert_eq!(metrics.rounded(), rounded, "the metrics");
        assert_eq!(log, before.rounded(), "the log");
        assert_eq!(lines_in_json[0], before, "watch --json");
        for told in before.told().expect("looked at before") {
            assert!(plain[0].contains(&told), "{told}: {}", plain[0]);
        }
        assert_eq!(before.workers, Some(1.0));

        let nothing = Figures::default();
        assert_eq!((waits, lines_in_json[1].clone()), (nothing.clone(), nothing.clone()));
        assert_eq!(others, (nothing.clone(), nothing.clone(), nothing), "of the run that waits");
        assert!(plain[1].contains("  N=24 0.0 %  0/"), "{}", plain[1]);
        assert!(plain[1].ends_with(" jobs  waiting for workers"), "{}", plain[1]);
        Some(())
    });
    assert!(get(&page, "/metrics").body.contains("\nnqueens_workers_busy 1\n"), "of the whole cluster");
}

#[test]
fn a_worker_that_is_untrusted_and_gone_is_listed_and_not_seen() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let (page, at) = (page_of(&coordinator), format!("--coordinator {}", coordinator.url()));
    let run = coordinator.submit(&place, "8");
    let mut worker = coordinator.worker(&place, "west", &[]);
    let told = || {
        let (metrics, [picture, _]) = (get(&page, "/metrics").body, shown(&page, &run));
        let seen = metrics.lines().find_map(|line| line.strip_prefix("nqueens_workers_seen "));
        let seen = seen.and_then(|seen| seen.parse::<u64>().ok()).expect("a number");
        let [on_page, listed] =
            ["workers_seen", "workers_listed"].map(|key| picture[key].as_u64().expect(key));
        [seen, on_page, listed]
    };
    eventually("it is seen", || (told() == [1, 1, 1]).then_some(()));
    place.stdout(&format!("distrust west {at}"));
    ended(&mut worker);
    eventually("it is listed and not seen", || (told() == [0, 0, 1]).then_some(()));
}
