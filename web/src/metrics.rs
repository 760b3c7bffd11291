//! The coordinator's metrics in Prometheus' text format. `docs/web.md` lists them.

use std::collections::BTreeMap;
use std::ops::Add;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use nqueens_coordinator::Events;
use nqueens_coordinator::Sums;
use nqueens_coordinator::progress::{RunProgress, Snapshot};
use nqueens_kernel::counts::to_f64;
use nqueens_model::operator::{EventKind, Interval, RunState, WorkerStatus};
use prometheus::proto::MetricType::{COUNTER, GAUGE};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{TEXT_FORMAT, TextEncoder};

use crate::shared::PageState;

/// Runs that are over and machines with series of their own; those beyond them are in the sums.
const RUNS_OVER_MAX: usize = 20;
const MACHINES_MAX: usize = 1_000;

pub(crate) async fn metrics(State(shared): State<Arc<PageState>>) -> Response {
    let operator = &shared.operator;
    match operator.workers().await {
        Ok(workers) => {
            let (snapshot, events) = (operator.watch().borrow().clone(), operator.events().borrow().clone());
            let text = text(operator.build(), &snapshot, &workers, &events, (shared.refused)());
            ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

fn text(build: &str, snapshot: &Snapshot, workers: &[WorkerStatus], events: &Events, refused: u64) -> String {
    let build_help = "The program that answers here; always 1.";
    let mut families =
        vec![MetricSamples::gauge("nqueens_build_info", build_help).with(&[("version", build)], 1.0)];
    families.extend(of_runs(snapshot));
    families.extend(of_workers(snapshot, workers));
    if let Some(room) = snapshot.room {
        let free = "Bytes that the coordinator may still write to the disk with its database.";
        let reserve = "Free bytes below which no more jobs are leased.";
        families
            .push(MetricSamples::gauge("nqueens_disk_free_bytes", free).with(&[], to_f64(room.free_bytes)));
        families.push(
            MetricSamples::gauge("nqueens_disk_reserve_bytes", reserve).with(&[], to_f64(room.reserve_bytes)),
        );
    }
    families.push(of_events(events));
    let help = "Calls refused because their token is missing or wrong.";
    families
        .push(MetricSamples::new(COUNTER, "nqueens_refused_calls_total", help).with(&[], to_f64(refused)));
    let families: Vec<_> = families.into_iter().filter_map(MetricSamples::done).collect();
    TextEncoder::new().encode_to_string(&families).expect("families have names and samples")
}

/// What there is to tell of a thing of its kind: a metric's type, name, help and value.
type MetricDefinition<T> = (MetricType, &'static str, &'static str, fn(&T) -> Option<f64>);

const OF_A_RUN: [MetricDefinition<RunProgress>; 6] = [
    (GAUGE, "nqueens_run_progress_ratio", "Share of the estimated work that is done.", |run| {
        Some(run.share_done())
    }),
    (COUNTER, "nqueens_run_visited_states_total", "States visited by the jobs that are done.", |run| {
        Some(to_f64(run.sums.accepted.states))
    }),
    (COUNTER, "nqueens_run_thread_seconds_total", "Thread time spent on the jobs that are done.", |run| {
        Some(to_f64(run.sums.accepted.elapsed_us) / 1e6)
    }),
    (
        COUNTER,
        "nqueens_run_processor_seconds_total",
        "Processor time of all results of the run, also of second counts and of results that do not stand.",
        |run| Some(to_f64(run.sums.cpu_us) / 1e6),
    ),
    (
        GAUGE,
        "nqueens_run_states_per_second",
        "States visited per second, according to the latest results.",
        |run| Some(run.measured?.speed.states_per_s),
    ),
    (GAUGE, "nqueens_run_busy_threads", "Busy threads, according to the latest results.", |run| {
        Some(run.measured?.speed.threads)
    }),
];

/// An estimate of a run: the metric's name and unit, its help, and the numbers.
type Estimated = (&'static str, &'static str, &'static str, fn(&RunProgress) -> Option<Interval>);

const ESTIMATES: [Estimated; 2] = [
    (
        "nqueens_run_time_left",
        "_seconds",
        "Estimated time until all jobs are done, with the present number of threads",
        RunProgress::time_left_s,
    ),
    (
        "nqueens_run_estimated",
        "_solutions",
        "Estimated number of solutions of the whole board",
        RunProgress::estimated_total,
    ),
];

/// One number of an interval.
type IntervalBound = fn(Interval) -> f64;

fn of_runs(snapshot: &Snapshot) -> Vec<MetricSamples> {
    let (open, over): (Vec<_>, Vec<_>) = snapshot.runs.iter().partition(|run| run.state.is_open());
    let runs: Vec<_> = open.into_iter().chain(over.into_iter().take(RUNS_OVER_MAX)).collect();
    let names: Vec<_> = runs.iter().map(|run| (run.id.to_string(), run.plan.n().to_string())).collect();
    let each =
        || runs.iter().zip(&names).map(|(run, (id, n))| (*run, [("run", id.as_str()), ("n", n.as_str())]));
    let mut state =
        MetricSamples::gauge("nqueens_run_state", "1 for the current state of the run, 0 for the others.");
    let mut jobs = MetricSamples::gauge("nqueens_run_jobs", "Jobs of the run, by their state.");
    for (run, [id, n]) in each() {
        for one in RunState::ALL {
            let is = f64::from(u8::from(*one == run.state));
            state = state.with(&[id, n, ("state", one.name())], is);
        }
        if run.planned.is_some() {
            continue;
        }
        let Sums { done, leased, quarantined, .. } = run.sums;
        let ready = run.jobs - done - leased - quarantined;
        for (one, number) in
            [("ready", ready), ("leased", leased), ("done", done), ("quarantined", quarantined)]
        {
            jobs = jobs.with(&[id, n, ("state", one)], f64::from(number));
        }
    }
    let mut families = vec![state, jobs];
    families.extend(OF_A_RUN.map(|(kind, name, help, value)| {
        MetricSamples::new(kind, name, help).with_each(each().map(|(run, labels)| (labels, value(run))))
    }));
    let parts: [(_, _, IntervalBound); 3] = [
        ("", "best estimate", |found| found.value),
        ("_low", "lower end of the 95 % confidence interval", |found| found.low),
        ("_high", "upper end of the 95 % confidence interval", |found| found.high),
    ];
    for (name, unit, help, of) in ESTIMATES {
        families.extend(parts.map(|(end, which, part)| {
            let family = MetricSamples::gauge(&format!("{name}{end}{unit}"), &format!("{help}: {which}."));
            family.with_each(each().map(|(run, labels)| (labels, of(run).map(part))))
        }));
    }
    families
}

/// The present workers of one name and credential, with the results of those that were there before them: the series go on
/// when a worker is started again.
#[derive(Default)]
struct MachineSeries {
    workers: u64,
    threads: u64,
    silent_ms: Option<u64>,
    leases: u64,
    accepted: u64,
    states_per_s: Option<f64>,
}

impl MachineSeries {
    fn add(&mut self, worker: &WorkerStatus) {
        self.accepted += worker.accepted;
        if worker.present {
            self.workers += 1;
            self.threads += u64::from(worker.about.threads);
            self.silent_ms = self.silent_ms.into_iter().chain([worker.silent_ms]).min();
            self.leases += worker.leases;
            self.states_per_s = self.states_per_s.into_iter().chain(worker.states_per_s).reduce(f64::add);
        }
    }
}

const OF_A_MACHINE: [MetricDefinition<MachineSeries>; 4] = [
    (
        GAUGE,
        "nqueens_worker_silence_seconds",
        "Time since the last heartbeat of the machine's workers.",
        |machine| Some(to_f64(machine.silent_ms?) / 1e3),
    ),
    (GAUGE, "nqueens_worker_jobs_leased", "Jobs that the machine's workers hold.", |machine| {
        Some(to_f64(machine.leases))
    }),
    (
        COUNTER,
        "nqueens_worker_results_total",
        "Results accepted from the machine since the coordinator started.",
        |machine| Some(to_f64(machine.accepted)),
    ),
    (
        GAUGE,
        "nqueens_worker_states_per_second",
        "Pace of the machine while it counts, in visited states per second, all threads together.",
        |machine| machine.states_per_s,
    ),
];

fn of_workers(snapshot: &Snapshot, workers: &[WorkerStatus]) -> Vec<MetricSamples> {
    let mut machines = BTreeMap::<[(&str, &str); 2], MachineSeries>::new();
    for worker in workers {
        let labels = [("name", worker.about.name.as_str()), ("credential", worker.about.credential.as_str())];
        machines.entry(labels).or_default().add(worker);
    }
    machines.retain(|_, machine| machine.workers > 0);
    let all = |number: fn(&MachineSeries) -> u64| to_f64(machines.values().map(number).sum::<u64>());
    let (seen, threads) = (all(|machine| machine.workers), all(|machine| machine.threads));
    let busy = to_f64(snapshot.busy_workers as u128);
    let sum = |name, help, value| MetricSamples::gauge(name, help).with(&[], value);
    let mut families = vec![
        sum("nqueens_workers_seen", "Workers whose last two heartbeats are not missing.", seen),
        sum("nqueens_workers_busy", "Present workers that hold jobs.", busy),
        sum("nqueens_worker_threads_seen", "Counting threads of the present workers.", threads),
    ];
    let mut engines = BTreeMap::<[(&str, &str); 2], u64>::new();
    for worker in workers.iter().filter(|worker| worker.present) {
        let kernel = worker.about.kernels.first().map_or("", String::as_str);
        *engines.entry([("kernel", kernel), ("device", &worker.about.device)]).or_default() += 1;
    }
    let help = "Present workers by the engine in use and what it runs on.";
    let each = engines.iter().take(MACHINES_MAX).map(|(labels, number)| (*labels, Some(to_f64(*number))));
    families.push(MetricSamples::gauge("nqueens_workers_by_device", help).with_each(each));
    families.extend(OF_A_MACHINE.map(|(kind, name, help, value)| {
        let each = machines.iter().take(MACHINES_MAX).map(|(labels, machine)| (*labels, value(machine)));
        MetricSamples::new(kind, name, help).with_each(each)
    }));
    families
}

fn of_events(events: &Events) -> MetricSamples {
    let help = "Time of the last event of this kind, in seconds since 1970; 0 if none is kept.";
    let mut family = MetricSamples::gauge("nqueens_last_event_timestamp_seconds", help);
    for kind in EventKind::ALL {
        let last = events.iter().rev().find(|event| event.kind == *kind);
        let at = last.map_or(0, |event| event.at);
        family = family.with(&[("kind", kind.name())], to_f64(at.unsigned_abs()) / 1e3);
    }
    family
}

/// A metric with all its samples.
struct MetricSamples {
    family: MetricFamily,
    samples: Vec<Metric>,
}

impl MetricSamples {
    fn gauge(name: &str, help: &str) -> Self {
        Self::new(GAUGE, name, help)
    }

    fn new(kind: MetricType, name: &str, help: &str) -> Self {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        Self { family, samples: Vec::new() }
    }

    /// With a sample for each that has a value.
    fn with_each<'a>(self, samples: impl Iterator<Item = ([(&'a str, &'a str); 2], Option<f64>)>) -> Self {
        let known = samples.filter_map(|(labels, value)| Some((labels, value?)));
        known.fold(self, |family, (labels, value)| family.with(&labels, value))
    }

    fn with(mut self, labels: &[(&str, &str)], value: f64) -> Self {
        let label = |(name, value): &(&str, &str)| {
            let mut label = LabelPair::default();
            label.set_name((*name).to_owned());
            label.set_value((*value).to_owned());
            label
        };
        let mut sample = Metric::from_label(labels.iter().map(label).collect());
        if self.family.get_field_type() == COUNTER {
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

    /// Nothing if there are no samples.
    fn done(mut self) -> Option<MetricFamily> {
        let is_empty = self.samples.is_empty();
        self.family.set_metric(self.samples);
        (!is_empty).then_some(self.family)
    }
}
