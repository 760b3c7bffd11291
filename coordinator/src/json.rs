//! Runs and events as JSON: the fields of their structs, and what follows from them for people and programs. It is the same over
//! HTTP, in the command line's `--json`, and on the page.

use nqueens_evidence::confidence::share_met;
use nqueens_model::operator::{Event, Missing, RunStatus, Standing};
use serde_json::{Value, to_value};

/// A run.
pub fn run(run: &RunStatus) -> Value {
    let (plan, standing) = (run.progress.plan, run.standing());
    let missing = |standing: &Standing| standing.missing().iter().map(Missing::to_string).collect::<Vec<_>>();
    let is_whole = plan.cells().is_none();
    let unique = run.outcome.filter(|_| is_whole).and_then(|outcome| outcome.totals.unique(plan.n()).ok());
    let mut json = to_value(run).expect("its keys are text");
    json["subject"] = plan.subject().into();
    json["replicate"] = (f64::from(run.replicate_ppm) / 1e4).into();
    json["unique"] = unique.map(|unique| unique.to_string()).into();
    json["confirmed"] = standing.as_ref().map(Standing::is_confirmed).into();
    json["standing"] = standing.as_ref().map(Standing::to_string).into();
    json["missing"] = standing.as_ref().map(missing).into();
    json["recounts"]["parts"] = run.parts_estimate().into();
    json["recounts"]["share_found"] = share_met(run.recounts.agreed).into();
    if !is_whole {
        // With blocked cells solutions are not sorted into orbits.
        for name in ["count2", "count4", "count8"] {
            json[name] = Value::Null;
        }
    }
    json
}

/// An event.
pub fn event(event: &Event) -> Value {
    let mut json = to_value(event).expect("its keys are text");
    json["problem"] = event.kind.is_problem().into();
    json
}
