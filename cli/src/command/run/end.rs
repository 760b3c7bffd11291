//! What `nqueens run` prints when the run is done.

use std::io;
use std::time::Duration;

use nqueens_model::operator::{Outcome, RunStatus, span};
use serde_json::{Value, json};

use crate::output::{Json, local_time, print_line, quantity, thousands};

/// How far a run was when this process took it up.
#[derive(Clone, Copy, Debug)]
pub(super) enum TakenUp {
    /// Just planned.
    New,
    /// This share of its work was done.
    Resumed(f64),
    /// All was done.
    Done,
}

/// A run that is done.
pub(super) struct RunEnd {
    pub(super) run: RunStatus,
    pub(super) taken_up: TakenUp,
    /// What this process counts with.
    pub(super) kernel: String,
    pub(super) threads: usize,
}

impl RunEnd {
    pub(super) fn print(&self, json: Json) -> io::Result<()> {
        let outcome = self.run.outcome.as_ref().expect("a run that is done has a result");
        let unique = outcome.totals.unique(self.run.progress.n).expect("checked when the run was done");
        if json.json { print_line(self.json(outcome, unique)) } else { self.print_text(outcome, unique) }
    }

    fn json(&self, Outcome { totals, total, checked, .. }: &Outcome, unique: u128) -> Value {
        let run = &self.run;
        let of_orbits = |count: u128| run.plan.variant().is_none().then(|| count.to_string());
        json!({
            "n": run.progress.n.get(),
            "subject": run.plan.subject(),
            "cells": run.plan.cells().map(|cells| cells.to_string()),
            "total": total.to_string(),
            "unique": of_orbits(unique),
            "count2": of_orbits(totals.count2),
            "count4": of_orbits(totals.count4),
            "count8": of_orbits(totals.count8),
            "run": run.progress.run.to_string(),
            "plan": run.plan.kind().name(),
            "jobs": run.progress.jobs,
            "elapsed_s": run.took().map(|took| took.as_secs_f64()),
            "started_at_ms": run.started_at,
            "finished_at_ms": run.finished_at,
            "kernel": self.kernel,
            "check": checked.name(),
            "confirmed": run.standing().is_some_and(|standing| standing.is_confirmed()),
        })
    }

    fn print_text(&self, Outcome { totals, total, .. }: &Outcome, unique: u128) -> io::Result<()> {
        let rows = [
            ("COUNT2", totals.count2),
            ("COUNT4", totals.count4),
            ("COUNT8", totals.count8),
            ("UNIQUE", unique),
            ("TOTAL", *total),
        ];
        // The solutions of a variant are not sorted into orbits.
        let rows = if self.run.plan.variant().is_some() { &rows[4..] } else { &rows };
        let width = thousands(total).len();
        print_line(self.run.plan.subject())?;
        for &(name, count) in rows {
            print_line(format_args!("{name:<6}  {:>width$}", thousands(count)))?;
        }
        if let Some(standing) = self.run.standing() {
            print_line(standing)?;
        }
        print_line(self.how())
    }

    /// How long it took, on what, by which plan.
    fn how(&self) -> String {
        let took = duration(self.run.took().unwrap_or_default());
        let threads =
            if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        let (kernel, plan) = (&self.kernel, self.run.plan.kind());
        let what = match self.taken_up {
            TakenUp::New => format!("counted in {took} on {threads}, kernel {kernel}"),
            TakenUp::Resumed(share) => format!(
                "counted in {took} with interruptions, the last {:.1} % on {threads}, kernel {kernel}",
                100.0 * (1.0 - share)
            ),
            TakenUp::Done => {
                let when =
                    self.run.finished_at.map_or_else(String::new, |at| format!(" on {}", local_time(at)));
                format!("counted already{when}, in {took}")
            }
        };
        format!("{what}, plan {plan}, {} jobs", thousands(self.run.progress.jobs))
    }
}

/// `0.240 s`, `12.3 s`, `1m17s`.
fn duration(time: Duration) -> String {
    if time < Duration::from_mins(1) {
        format!("{} s", quantity(time.as_secs_f64()))
    } else {
        span(time.as_secs_f64())
    }
}
