//! What `nqueens run` prints when the run is done.

use std::io;

use nqueens_coordinator::Effort;
use nqueens_model::kernel::KernelName;
use nqueens_model::operator::RunStatus;

use crate::output::{Json, counted, duration, local_time, print_json, print_line, thousands};

/// How far a run was when this process took it up.
#[derive(Clone, Copy, Debug)]
pub(super) enum TakenUp {
    New,
    /// This share of its work was done.
    Resumed(f64),
    Done,
}

pub(super) struct RunEnd {
    pub(super) run: RunStatus,
    pub(super) effort: Effort,
    pub(super) taken_up: TakenUp,
    /// Of this process.
    pub(super) threads: usize,
}

impl RunEnd {
    pub(super) fn print(&self, json: Json) -> io::Result<()> {
        if json.json {
            let mut line = serde_json::to_value(self.run.clone().view())?;
            line["elapsed_s"] = self.effort.counted().as_secs_f64().into();
            line["interrupted_s"] = self.effort.interrupted().as_secs_f64().into();
            line["kernel"] = self.kernels().into();
            return print_json(line);
        }
        let outcome = self.run.outcome.expect("a run that is done has a result");
        let width = thousands(outcome.total).len();
        print_line(self.run.progress.plan.subject())?;
        for (name, count) in outcome.counts(self.run.progress.plan.n()) {
            print_line(format_args!("{name:<6}  {:>width$}", thousands(count)))?;
        }
        if let Some(standing) = self.run.standing() {
            print_line(standing)?;
        }
        print_line(self.how())
    }

    /// The engines that counted; `None` for a board without jobs.
    fn kernels(&self) -> Option<String> {
        let names: Vec<_> = self.effort.kernels.iter().map(KernelName::as_str).collect();
        (!names.is_empty()).then(|| names.join(" + "))
    }

    /// How long it took, on what, by which plan.
    fn how(&self) -> String {
        let took = duration(self.effort.counted());
        let threads = counted(self.threads, "thread");
        let what = match self.taken_up {
            TakenUp::New => format!("counted in {took} on {threads}"),
            TakenUp::Resumed(share) => {
                // As `percent` has told it: what is not done is never nothing.
                let left = if share < 1.0 { (100.0 * (1.0 - share)).max(0.1) } else { 0.0 };
                format!("counted in {took}{}, the last {left:.1} % on {threads}", self.interruptions())
            }
            TakenUp::Done => {
                let when =
                    self.run.finished_at.map_or_else(String::new, |at| format!(" on {}", local_time(at)));
                format!("counted already{when}, in {took}{}", self.interruptions())
            }
        };
        let kernels = self.kernels().map_or_else(String::new, |kernels| format!(", kernel {kernels}"));
        let (plan, jobs) = (self.run.progress.plan.kind(), counted(self.run.progress.jobs, "job"));
        format!("{what}{kernels}, plan {plan}, {jobs}")
    }

    /// The time that the counting does not have in it, if any.
    fn interruptions(&self) -> String {
        let time = self.effort.interrupted();
        if time.is_zero() { String::new() } else { format!(" and interrupted for {}", duration(time)) }
    }
}
