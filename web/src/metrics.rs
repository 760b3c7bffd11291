//! The coordinator's metrics in Prometheus' text format. `docs/web.md` lists them.

use std::collections::BTreeMap;
use std::ops::Add;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use nqueens_coordinator::Sums;
use nqueens_coordinator::progress::{RunProgress, Snapshot};
use nqueens_coordinator::{Error, Events};
use nqueens_kernel::counts::to_f64;
use nqueens_model::id::RunId;
use nqueens_model::operator::{EventKind, Interval, RunState, WorkerStatus};
use prometheus::{CounterVec, GaugeVec, Opts, Registry, TEXT_FORMAT, TextEncoder};

use crate::shared::PageState;

/// Runs that are over, failed ones and the latest, and machines with series of their own; those beyond them are in the sums.
const RUNS_OVER_MAX: usize = 20;
const MACHINES_MAX: usize = 1_000;

pub(crate) async fn metrics(State(shared): State<Arc<PageState>>) -> Response {
    let operator = &shared.operator;
    let read = async { Ok::<_, Arc<Error>>((operator.workers().await?, operator.runs().await?)) };
    match read.await {
        Ok((workers, mut runs)) => {
            runs.retain(|run| !run.progress.state.is_open());
            runs.reverse();
            // An alert rings for these.
            runs.sort_by_key(|run| run.progress.state != RunState::Failed);
            let over: Vec<_> = runs.iter().map(|run| run.progress.run).take(RUNS_OVER_MAX).collect();
            let (snapshot, events) = (operator.watch().borrow().clone(), operator.events().borrow().clone());
            let text = text(operator.build(), &snapshot, &over, &workers, &events, (shared.refused)());
            ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

fn text(
    build: &str,
    snapshot: &Snapshot,
    over: &[RunId],
    workers: &[WorkerStatus],
    events: &Events,
    refused: u64,
) -> String {
    let scrape = Scrape::default();
    let build = [([build], Some(1.0))];
    scrape.add("nqueens_build_info", "The program that answers here; always 1.", ["version"], build);
    scrape.add_runs(snapshot, over);
    scrape.add_workers(snapshot, workers);
    if let Some(room) = snapshot.room {
        let free = "Bytes that the coordinator may still write to the disk with its database.";
        let reserve = "Free bytes below which no more jobs are leased.";
        scrape.add_one("nqueens_disk_free_bytes", free, to_f64(room.free_bytes));
        scrape.add_one("nqueens_disk_reserve_bytes", reserve, to_f64(room.reserve_bytes));
    }
    let help = "Time of the last event of this kind, in seconds since 1970; 0 if none is kept.";
    let kinds = EventKind::ALL.iter().map(|kind| {
        let last = events.iter().rev().find(|event| event.kind == *kind);
        let at = last.map_or(0, |event| event.at);
        ([kind.name()], Some(to_f64(at.unsigned_abs()) / 1e3))
    });
    scrape.add("nqueens_last_event_timestamp_seconds", help, ["kind"], kinds);
    let help = "Calls refused because their token is missing or wrong.";
    scrape.add_one("nqueens_refused_calls_total", help, to_f64(refused));
    TextEncoder::new().encode_to_string(&scrape.0.gather()).expect("metrics have names and samples")
}

/// What there is to tell of a thing of its kind: a metric's name, help and value.
type MetricDefinition<T> = (&'static str, &'static str, fn(&T) -> Option<f64>);

const OF_A_RUN: [MetricDefinition<RunProgress>; 6] = [
    ("nqueens_run_progress_ratio", "Share of the estimated work that is done.", |run| Some(run.share_done())),
    ("nqueens_run_visited_states_total", "States visited by the jobs that are done.", |run| {
        Some(to_f64(run.sums.accepted.states))
    }),
    ("nqueens_run_thread_seconds_total", "Thread time spent on the jobs that are done.", |run| {
        Some(to_f64(run.sums.accepted.elapsed_us) / 1e6)
    }),
    (
        "nqueens_run_processor_seconds_total",
        "Processor time of all results of the run, also of second counts and of results that do not stand.",
        |run| Some(to_f64(run.sums.cpu_us) / 1e6),
    ),
    ("nqueens_run_states_per_second", "States visited per second, according to the latest results.", |run| {
        Some(run.measured?.speed.states_per_s)
    }),
    ("nqueens_run_busy_threads", "Busy threads, according to the latest results.", |run| {
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
        "nqueens_worker_silence_seconds",
        "Time since the last heartbeat of the machine's workers.",
        |machine| Some(to_f64(machine.silent_ms?) / 1e3),
    ),
    ("nqueens_worker_jobs_leased", "Jobs that the machine's workers hold.", |machine| {
        Some(to_f64(machine.leases))
    }),
    (
        "nqueens_worker_results_total",
        "Results accepted from the machine since the coordinator started.",
        |machine| Some(to_f64(machine.accepted)),
    ),
    (
        "nqueens_worker_states_per_second",
        "Pace of the machine while it counts, in visited states per second, all threads together.",
        |machine| machine.states_per_s,
    ),
];

/// The metrics at one moment.
#[derive(Default)]
struct Scrape(Registry);

impl Scrape {
    /// Adds a metric, with a sample for each that has a value. One that ends with `_total` is a counter.
    fn add<'a, const L: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; L],
        samples: impl IntoIterator<Item = ([&'a str; L], Option<f64>)>,
    ) {
        let options = Opts::new(name, help);
        let samples = samples.into_iter().filter_map(|(values, sample)| Some((values, sample?)));
        let added = if name.ends_with("_total") {
            let counters = CounterVec::new(options, &labels).expect("a name and labels");
            samples.for_each(|(values, sample)| counters.with_label_values(&values).inc_by(sample));
            self.0.register(Box::new(counters))
        } else {
            let gauges = GaugeVec::new(options, &labels).expect("a name and labels");
            samples.for_each(|(values, sample)| gauges.with_label_values(&values).set(sample));
            self.0.register(Box::new(gauges))
        };
        added.expect("each metric is added once");
    }

    fn add_one(&self, name: &str, help: &str, sample: f64) {
        self.add(name, help, [], [([], Some(sample))]);
    }

    fn add_runs(&self, snapshot: &Snapshot, over: &[RunId]) {
        let is_shown = |run: &&RunProgress| run.state.is_open() || over.contains(&run.id);
        let runs: Vec<_> = snapshot.runs.iter().filter(is_shown).collect();
        let names: Vec<_> = runs.iter().map(|run| (run.id.to_string(), run.plan.n().to_string())).collect();
        let each = || runs.iter().zip(&names).map(|(run, (id, n))| (*run, [id.as_str(), n.as_str()]));
        let states = each().flat_map(|(run, [id, n])| {
            let is = |one: RunState| f64::from(u8::from(one == run.state));
            RunState::ALL.iter().map(move |one| ([id, n, one.name()], Some(is(*one))))
        });
        let help = "1 for the current state of the run, 0 for the others.";
        self.add("nqueens_run_state", help, ["run", "n", "state"], states);
        let jobs = each().filter(|(run, _)| run.planned.is_none()).flat_map(|(run, [id, n])| {
            let Sums { done, leased, quarantined, .. } = run.sums;
            let ready = run.jobs - done - leased - quarantined;
            [("ready", ready), ("leased", leased), ("done", done), ("quarantined", quarantined)]
                .map(|(state, jobs)| ([id, n, state], Some(f64::from(jobs))))
        });
        self.add("nqueens_run_jobs", "Jobs of the run, by their state.", ["run", "n", "state"], jobs);
        for (name, help, value) in OF_A_RUN {
            self.add(name, help, ["run", "n"], each().map(|(run, labels)| (labels, value(run))));
        }
        let parts: [(_, _, IntervalBound); 3] = [
            ("", "best estimate", |found| found.value),
            ("_low", "lower end of the 95 % confidence interval", |found| found.low),
            ("_high", "upper end of the 95 % confidence interval", |found| found.high),
        ];
        for (name, unit, help, of) in ESTIMATES {
            for (end, which, part) in parts {
                let (name, help) = (format!("{name}{end}{unit}"), format!("{help}: {which}."));
                let samples = each().map(|(run, labels)| (labels, of(run).map(part)));
                self.add(&name, &help, ["run", "n"], samples);
            }
        }
    }

    fn add_workers(&self, snapshot: &Snapshot, workers: &[WorkerStatus]) {
        let mut machines = BTreeMap::<[&str; 2], MachineSeries>::new();
        for worker in workers {
            let labels = [worker.about.name.as_str(), worker.about.credential.as_str()];
            machines.entry(labels).or_default().add(worker);
        }
        machines.retain(|_, machine| machine.workers > 0);
        let all = |number: fn(&MachineSeries) -> u64| to_f64(machines.values().map(number).sum::<u64>());
        let (seen, threads) = (all(|machine| machine.workers), all(|machine| machine.threads));
        let busy = to_f64(snapshot.busy_workers as u128);
        self.add_one("nqueens_workers_seen", "Workers whose last two heartbeats are not missing.", seen);
        self.add_one("nqueens_workers_busy", "Present workers that hold jobs.", busy);
        self.add_one("nqueens_worker_threads_seen", "Counting threads of the present workers.", threads);
        let mut engines = BTreeMap::<[&str; 2], u64>::new();
        for worker in workers.iter().filter(|worker| worker.present) {
            let kernel = worker.about.kernels.first().map_or("", String::as_str);
            *engines.entry([kernel, &worker.about.device]).or_default() += 1;
        }
        let help = "Present workers by the engine in use and what it runs on.";
        let each = engines.iter().take(MACHINES_MAX).map(|(labels, number)| (*labels, Some(to_f64(*number))));
        self.add("nqueens_workers_by_device", help, ["kernel", "device"], each);
        for (name, help, value) in OF_A_MACHINE {
            let each = machines.iter().take(MACHINES_MAX).map(|(labels, machine)| (*labels, value(machine)));
            self.add(name, help, ["name", "credential"], each);
        }
    }
}
