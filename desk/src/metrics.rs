//! The coordinator's metrics in Prometheus' text format. `docs/desk.md` lists them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use nqueens_coordinator::Events;
use nqueens_coordinator::progress::{RunProgress, Snapshot};
use nqueens_model::operator::{EventKind, Interval, RunState, WorkerStatus};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{TEXT_FORMAT, TextEncoder};

use crate::shared::Shared;

/// Runs that are over and workers with series of their own; those beyond them are in the sums.
const RUNS_OVER_MAX: usize = 20;
const WORKERS_MAX: usize = 1_000;

/// A worker that was heard of since so many milliseconds is there.
const SILENT_MAX_MS: u64 = 60_000;

pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let operator = &shared.operator;
    match operator.workers().await {
        Ok(workers) => {
            let (snapshot, events) = (operator.watch().borrow().clone(), operator.events().borrow().clone());
            let text = text(operator.build(), &snapshot, &workers, &events);
            ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

fn text(build: &str, snapshot: &Snapshot, workers: &[WorkerStatus], events: &Events) -> String {
    let mut families = vec![
        Family::gauge("nqueens_build_info", "The program that answers here; always 1.")
            .with(&[("version", build)], 1.0)
            .done(),
    ];
    families.extend(of_runs(snapshot));
    families.extend(of_workers(snapshot, workers));
    if let Some(room) = snapshot.room {
        let free = "Bytes that the coordinator may still write to the disk with its database.";
        let reserve = "Free bytes below which no more jobs are leased.";
        families.push(Family::gauge("nqueens_disk_free_bytes", free).with(&[], real(room.free)).done());
        families
            .push(Family::gauge("nqueens_disk_reserve_bytes", reserve).with(&[], real(room.reserve)).done());
    }
    families.push(of_events(events));
    families.retain(|family| !family.get_metric().is_empty());
    TextEncoder::new().encode_to_string(&families).expect("families have names and samples")
}

fn of_runs(snapshot: &Snapshot) -> Vec<MetricFamily> {
    let (open, over): (Vec<_>, Vec<_>) = snapshot.runs.iter().partition(|run| run.state.is_open());
    let runs: Vec<_> = open.into_iter().chain(over.into_iter().take(RUNS_OVER_MAX)).collect();
    let each = |family: Family, value: &dyn Fn(&RunProgress) -> Option<f64>| {
        runs.iter().fold(family, |family, run| match value(run) {
            Some(value) => family.with(&[("run", &run.id.to_string()), ("n", &run.n.to_string())], value),
            None => family,
        })
    };
    let interval = |name: &str, unit: &str, help: &str, of: &dyn Fn(&RunProgress) -> Option<Interval>| {
        let parts: [(_, _, Part); 3] = [
            ("", "best estimate", |found| found.value),
            ("_low", "lower end of the 95 % confidence interval", |found| found.low),
            ("_high", "upper end of the 95 % confidence interval", |found| found.high),
        ];
        parts.map(|(end, which, part)| {
            let family = Family::gauge(&format!("{name}{end}{unit}"), &format!("{help}: {which}."));
            each(family, &|run| of(run).map(part)).done()
        })
    };
    let left = "Estimated time until all jobs are done, with the present number of threads";
    let total = "Estimated number of solutions of the whole board";
    let mut families = vec![
        states(&runs),
        jobs(&runs),
        each(
            Family::gauge("nqueens_run_progress_ratio", "Share of the estimated work that is done."),
            &|run| Some(run.share_done()),
        )
        .done(),
        each(
            Family::counter("nqueens_run_visited_states_total", "States visited by the jobs that are done."),
            &|run| Some(whole(run.sums.states)),
        )
        .done(),
        each(
            Family::counter(
                "nqueens_run_thread_seconds_total",
                "Thread time spent on the jobs that are done.",
            ),
            &|run| Some(whole(run.sums.elapsed_us) / 1e6),
        )
        .done(),
        each(
            Family::gauge(
                "nqueens_run_states_per_second",
                "States visited per second, according to the latest results.",
            ),
            &|run| Some(run.measured?.speed.states_per_s),
        )
        .done(),
        each(
            Family::gauge("nqueens_run_busy_threads", "Busy threads, according to the latest results."),
            &|run| Some(run.measured?.speed.threads),
        )
        .done(),
    ];
    families.extend(interval("nqueens_run_time_left", "_seconds", left, &RunProgress::time_left_s));
    families.extend(interval("nqueens_run_estimated", "_solutions", total, &RunProgress::estimated_total));
    families
}

fn states(runs: &[&RunProgress]) -> MetricFamily {
    let mut family =
        Family::gauge("nqueens_run_state", "1 for the current state of the run, 0 for the others.");
    for run in runs {
        for state in RunState::ALL {
            let (id, n) = (run.id.to_string(), run.n.to_string());
            let is = f64::from(u8::from(*state == run.state));
            family = family.with(&[("run", &id), ("n", &n), ("state", state.name())], is);
        }
    }
    family.done()
}

fn jobs(runs: &[&RunProgress]) -> MetricFamily {
    let mut family = Family::gauge("nqueens_run_jobs", "Jobs of the run, by their state.");
    for run in runs {
        let sums = &run.sums;
        let ready = run.jobs - sums.done - sums.leased - sums.quarantined;
        let all = [
            ("ready", ready),
            ("leased", sums.leased),
            ("done", sums.done),
            ("quarantined", sums.quarantined),
        ];
        for (state, jobs) in all {
            let (id, n) = (run.id.to_string(), run.n.to_string());
            family = family.with(&[("run", &id), ("n", &n), ("state", state)], f64::from(jobs));
        }
    }
    family.done()
}

fn of_workers(snapshot: &Snapshot, workers: &[WorkerStatus]) -> Vec<MetricFamily> {
    let here = workers.iter().filter(|worker| worker.silent_ms <= SILENT_MAX_MS);
    let (seen, threads) =
        here.fold((0, 0), |(seen, threads), worker| (seen + 1, threads + u64::from(worker.threads)));
    let each = |family: Family, value: &dyn Fn(&WorkerStatus) -> Option<f64>| {
        let family = workers.iter().take(WORKERS_MAX).fold(family, |family, worker| match value(worker) {
            Some(value) => family.with(&[("worker", &worker.id.to_string()), ("name", &worker.name)], value),
            None => family,
        });
        family.done()
    };
    let sum = |name, help, value| Family::gauge(name, help).with(&[], value).done();
    vec![
        sum("nqueens_workers_seen", "Workers with a heartbeat in the last minute.", real(seen)),
        sum("nqueens_workers_busy", "Workers that hold jobs.", whole(snapshot.busy_workers as u128)),
        sum(
            "nqueens_worker_threads_seen",
            "Counting threads of the workers with a heartbeat in the last minute.",
            real(threads),
        ),
        each(
            Family::gauge("nqueens_worker_silence_seconds", "Time since the worker's last heartbeat."),
            &|worker| Some(real(worker.silent_ms) / 1e3),
        ),
        each(Family::gauge("nqueens_worker_jobs_leased", "Jobs that the worker holds."), &|worker| {
            Some(real(worker.leases))
        }),
        each(
            Family::counter("nqueens_worker_results_total", "Results accepted from the worker."),
            &|worker| Some(real(worker.accepted)),
        ),
        each(
            Family::gauge(
                "nqueens_worker_states_per_second",
                "Speed of the worker in estimated states per second, all threads together.",
            ),
            &|worker| worker.states_per_s,
        ),
    ]
}

fn of_events(events: &Events) -> MetricFamily {
    let help = "Time of the last event of this kind, in seconds since 1970; 0 if there is none in memory.";
    let mut family = Family::gauge("nqueens_last_event_timestamp_seconds", help);
    for kind in EventKind::ALL {
        let last = events.iter().rev().find(|event| event.kind == *kind);
        let at = last.map_or(0, |event| event.at);
        family = family.with(&[("kind", kind.name())], whole(at.unsigned_abs().into()) / 1e3);
    }
    family.done()
}

/// One number of an interval.
type Part = fn(Interval) -> f64;

/// A metric with all its samples.
struct Family {
    family: MetricFamily,
    samples: Vec<Metric>,
}

impl Family {
    fn gauge(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::GAUGE)
    }

    fn counter(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::COUNTER)
    }

    fn new(name: &str, help: &str, kind: MetricType) -> Self {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        Self { family, samples: Vec::new() }
    }

    /// With one more sample.
    fn with(mut self, labels: &[(&str, &str)], value: f64) -> Self {
        let label = |(name, value): &(&str, &str)| {
            let mut label = LabelPair::default();
            label.set_name((*name).to_owned());
            label.set_value((*value).to_owned());
            label
        };
        let mut sample = Metric::from_label(labels.iter().map(label).collect());
        if self.family.get_field_type() == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            sample.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            sample.set_gauge(gauge);
        }
        self.samples.push(sample);
        self
    }

    fn done(mut self) -> MetricFamily {
        self.family.set_metric(self.samples);
        self.family
    }
}

#[expect(clippy::cast_precision_loss, reason = "all numbers of Prometheus are doubles")]
fn whole(number: u128) -> f64 {
    number as f64
}

fn real(number: u64) -> f64 {
    whole(number.into())
}
