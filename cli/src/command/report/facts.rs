//! Facts about a run, gathered in one pass through its ledger.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;

use anyhow::Context;
use nqueens_coordinator::{Effort, JobState, Reader, RunRow, Sums};
use nqueens_evidence::finding::{Check, CheckResult};
use nqueens_evidence::line::LedgerResult;
use nqueens_evidence::sample::Sample;
use nqueens_kernel::counts::to_f64;
use nqueens_kernel::engine::Kernel;
use nqueens_model::operator::{Moment, RunState, RunStatus, Worker};
use nqueens_web::MAP_CELLS;

use crate::ledger_file;
use crate::output::harmless;

pub(super) struct Facts {
    pub(super) run: RunStatus,
    /// What the exported ledger's checks say; of a run that is done.
    pub(super) findings: Option<Vec<(Check, CheckResult)>>,
    /// All results that stand.
    pub(super) work: WorkSums,
    /// All stored results: also second counts, and those that do not stand.
    pub(super) all: WorkSums,
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) builds: BTreeSet<String>,
    /// Devices of workers whose engine is none for processors.
    pub(super) devices: BTreeSet<String>,
    /// How its jobs stand, in groups of neighbours; for a map.
    pub(super) groups: Vec<[u32; 4]>,
    pub(super) moments: Vec<Moment>,
    pub(super) sums: Sums,
    pub(super) effort: Effort,
    /// Results that did not stand, by what became of them.
    pub(super) others: BTreeMap<&'static str, u64>,
    /// The database, as it was named; `None` for readers who have the exported ledger alone.
    pub(super) db: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkSums {
    pub(super) jobs: u64,
    pub(super) states: u128,
    /// Processor time; where it was not measured, time by the clock.
    cpu_us: u128,
    /// Results whose processor time was not measured.
    pub(super) unmeasured: u64,
}

/// The workers of one name.
#[derive(Clone, Debug, Default)]
pub(super) struct Host {
    pub(super) work: WorkSums,
    pub(super) kernels: BTreeSet<String>,
    /// Of its largest process.
    pub(super) threads: u32,
    /// Its processes: a worker that was started again is another one.
    pub(super) workers: BTreeSet<u64>,
}

impl WorkSums {
    fn add(&mut self, result: &LedgerResult) {
        self.jobs += 1;
        self.states += u128::from(result.states);
        self.cpu_us += u128::from(result.cpu_us.unwrap_or(result.elapsed_us));
        self.unmeasured += u64::from(result.cpu_us.is_none());
    }

    pub(super) fn core_hours(&self) -> f64 {
        to_f64(self.cpu_us) / 3.6e9
    }

    /// Of one processor.
    pub(super) fn states_per_s(&self) -> f64 {
        to_f64(self.states) * 1e6 / to_f64(self.cpu_us.max(1))
    }
}

impl Facts {
    /// Reads a run's ledger and, if the run is done, makes the checks.
    pub(super) async fn gather(reader: &Reader, run: &RunRow) -> anyhow::Result<Self> {
        let progress = reader.progress(slice::from_ref(run)).await?.remove(0);
        let mut facts = Self {
            run: progress.status(run.clone()),
            findings: None,
            work: WorkSums::default(),
            all: WorkSums::default(),
            hosts: BTreeMap::new(),
            builds: BTreeSet::new(),
            devices: BTreeSet::new(),
            groups: reader.job_state_histogram(run, MAP_CELLS).await?,
            moments: reader.history(run.id).await?,
            sums: progress.sums,
            effort: reader.effort(run).await?,
            others: BTreeMap::new(),
            db: None,
        };
        let workers = reader.workers().await?;
        let by_id: HashMap<_, _> = workers.iter().map(|worker| (worker.id.get(), worker)).collect();
        let mut next = 0;
        while let Some(rows) = reader.ledger(run.id, &mut next).await? {
            for other in reader.others(run.id, rows[0].number..next).await? {
                facts.all.add(&other.result);
                *facts.others.entry(other.verdict.into()).or_default() += 1;
            }
            for row in rows {
                if let Some(result) = &row.accepted {
                    facts.all.add(result);
                }
                // A result that is in quarantine counts for nothing.
                if let Some(result) = row.accepted.filter(|_| row.state == JobState::Done) {
                    let worker = by_id.get(&result.worker).context("a result of no worker")?;
                    facts.enter(&result, worker);
                }
            }
        }
        let counted: BTreeSet<_> = facts.hosts.values().flat_map(|host| &host.workers).collect();
        for worker in workers.iter().filter(|worker| counted.contains(&worker.id.get())) {
            facts.builds.insert(harmless(&worker.build));
            if worker.kernels.iter().any(|kernel| kernel.parse::<Kernel>().is_err()) {
                facts.devices.insert(harmless(&worker.device));
            }
        }
        if run.outcome.is_some() {
            let (report, _) = ledger_file::check(reader, run, Sample::new(0, 0), Arc::default()).await?;
            facts.findings = Some(report.findings);
        }
        Ok(facts)
    }

    fn enter(&mut self, result: &LedgerResult, worker: &Worker) {
        self.work.add(result);
        let host = self.hosts.entry(harmless(&worker.name)).or_default();
        host.work.add(result);
        host.kernels.insert(result.kernel.to_string());
        host.threads = host.threads.max(worker.threads);
        host.workers.insert(result.worker);
    }

    /// Hosts that worked most come first.
    pub(super) fn busiest_hosts(&self) -> Vec<(&str, &Host)> {
        let mut hosts: Vec<_> = self.hosts.iter().map(|(name, host)| (name.as_str(), host)).collect();
        hosts.sort_by_key(|(_, host)| Reverse(host.work.cpu_us));
        hosts
    }

    /// Whether a check did not pass, when the run's jobs were done or now.
    pub(super) fn is_in_doubt(&self) -> bool {
        let mut verdicts = self.findings.iter().flatten().map(|(_, verdict)| verdict);
        self.run.progress.state == RunState::Failed
            || verdicts.any(|verdict| matches!(verdict, CheckResult::Failed(_)))
    }
}
