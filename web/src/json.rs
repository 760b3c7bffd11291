//! Runs, workers and events as JSON, for the command line's `--json` and the web page.

use nqueens_evidence::confidence::share_met;
use nqueens_model::operator::{
    Event, Interval, Missing, Progress, RunStatus, Standing, TotalEstimate, WorkerStatus,
};
use serde_json::{Value, json};

/// A run. Counts are decimal strings, for they outgrow 2^53.
pub fn run(run: &RunStatus) -> Value {
    let (outcome, standing) = (run.outcome.as_ref(), run.standing());
    let missing = |standing: &Standing| standing.missing().iter().map(Missing::to_string).collect::<Vec<_>>();
    let estimate = outcome.and_then(|outcome| outcome.grounds).map(|grounds| {
        let TotalEstimate { seed, strata, value, reach } = grounds.estimate;
        json!({
            "seed": seed.to_string(),
            "strata": strata,
            "value": value.to_string(),
            "reach": reach.to_string(),
            "checks_wanted": grounds.checks_wanted,
            "recounts_wanted": grounds.recounts_wanted,
        })
    });
    // The solutions of a variant are not sorted into orbits.
    let orbits = outcome.filter(|_| run.plan.variant().is_none()).map(|outcome| outcome.totals);
    let mut json = progress(&run.progress);
    let more = json!({
        "subject": run.plan.subject(),
        "cells": run.plan.cells().map(|cells| cells.to_string()),
        "plan": run.plan.kind().name(),
        "priority": run.priority,
        "replicate": f64::from(run.replicate_ppm) / 1e4,
        "fingerprint": run.fingerprint.map(|fingerprint| fingerprint.to_string()),
        "total": outcome.map(|outcome| outcome.total.to_string()),
        "count2": orbits.map(|orbits| orbits.count2.to_string()),
        "count4": orbits.map(|orbits| orbits.count4.to_string()),
        "count8": orbits.map(|orbits| orbits.count8.to_string()),
        "unique": orbits.and_then(|orbits| orbits.unique(run.progress.n).ok()).map(|unique| unique.to_string()),
        "check": outcome.map(|outcome| outcome.checked.name()),
        "confirmed": standing.as_ref().map(Standing::is_confirmed),
        "standing": standing.as_ref().map(Standing::to_string),
        "missing": standing.as_ref().map(missing),
        "estimate": estimate,
        "recounts": {
            "agreed": run.recounts.agreed,
            "differing": run.recounts.differing,
            "parts": run.parts_estimate(),
            "share_found": share_met(run.recounts.agreed),
            "elapsed_us": run.recounts.elapsed_us,
        },
        "reason": run.reason,
        "created_at_ms": run.created_at,
        "started_at_ms": run.started_at,
        "finished_at_ms": run.finished_at,
    });
    let (Value::Object(all), Value::Object(more)) = (&mut json, more) else {
        unreachable!("both are objects")
    };
    all.extend(more);
    json
}

/// How far a run is.
pub fn progress(progress: &Progress) -> Value {
    let in_numbers = |Interval { value, low, high }| json!({ "value": value, "low": low, "high": high });
    let in_decimals = |Interval { value, low, high }| {
        let [value, low, high] = [value, low, high].map(|number: f64| format!("{number:.0}"));
        json!({ "value": value, "low": low, "high": high })
    };
    let checks = progress.checks;
    json!({
        "id": progress.run.to_string(),
        "n": progress.n.get(),
        "state": progress.state.name(),
        "jobs": progress.jobs,
        "planned": progress.planned,
        "done": progress.done,
        "leased": progress.leased,
        "quarantined": progress.quarantined,
        "share": progress.share_done,
        "states": progress.states.to_string(),
        "estimated_states": progress.estimated_states.to_string(),
        "estimated_total": progress.estimated_total.map(in_decimals),
        "threads": progress.speed.map(|speed| speed.threads),
        "states_per_s": progress.speed.map(|speed| speed.states_per_s),
        "time_left_s": progress.time_left_s.map(in_numbers),
        "busy_workers": progress.workers,
        "checks": {
            "open": checks.open, "agreed": checks.agreed, "settled": checks.settled, "unmade": checks.unmade,
            "confirmed": checks.confirmed, "recounted": checks.recounted,
        },
    })
}

/// A worker.
pub fn worker(worker: &WorkerStatus) -> Value {
    json!({
        "id": worker.id.get(),
        "name": worker.name,
        "credential": worker.credential.as_str(),
        "build": worker.build,
        "kernels": worker.kernels,
        "device": worker.device,
        "threads": worker.threads,
        "present": worker.present,
        "registered_at_ms": worker.registered_at,
        "silent_ms": worker.silent_ms,
        "leases": worker.leases,
        "states_per_s": worker.states_per_s,
        "accepted": worker.accepted,
        "draining": worker.draining,
        "checks_passed": worker.checks_passed,
        "checks_failed": worker.checks_failed,
        "distrusted": worker.distrusted,
    })
}

/// An event.
pub fn event(event: &Event) -> Value {
    json!({
        "number": event.number,
        "at_ms": event.at,
        "kind": event.kind.name(),
        "problem": event.kind.is_problem(),
        "run": event.run.map(|run| run.to_string()),
        "worker": event.worker.map(nqueens_model::id::WorkerId::get),
        "text": event.text,
    })
}
