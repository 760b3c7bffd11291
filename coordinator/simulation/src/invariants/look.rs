//! Looks at the whole ledger: between two transactions, and when all is over.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nqueens_kernel::counts::{Counts, Totals};
use nqueens_model::credential::Credential;
use nqueens_model::id::{JobId, RunId};
use nqueens_model::message::Verdict;
use nqueens_model::operator::RunState;
use nqueens_scheduler::{ChangedJob, CheckOutcome, Dispatch, JobState};

use super::Invariants;
use crate::job::truth;
use crate::ledger::{JobRow, Ledger, ResultRow, RunRow};
use crate::scenario::ALL;

impl Invariants {
    /// Between two transactions: the rules of the ledger, and that the scheduler has the same.
    pub(crate) fn look(&self, ledger: &Ledger, dispatch: &Dispatch) {
        for (job, counts) in &self.safe {
            let stored = ledger.job(*job).and_then(JobRow::accepted).map(|(_, row)| row.result.counts);
            assert_eq!(stored, Some(*counts), "job {job} was acknowledged");
        }
        let mut sums = BTreeMap::<RunId, (Totals, u32, [u32; 2], u32, u128)>::new();
        let mut leased = 0;
        for (job, row) in ledger.jobs() {
            if ledger.run(job.run).is_none() {
                assert_eq!(row.slot.state, JobState::Ready, "its run is being planned");
                continue;
            }
            Self::look_at_job(ledger, job, row);
            let (_, slot, lease): ChangedJob = dispatch.changed(job);
            assert_eq!((slot, lease), (row.slot, row.lease), "job {job} is stored as it is");
            let (found, done, checks, recounted, cpu_us) = sums.entry(job.run).or_default();
            *cpu_us += row.cpu_us();
            let accepted = row.accepted();
            if let Some((_, row)) = accepted.filter(|_| slot.state == JobState::Done) {
                *found = found.checked_add(row.result.counts).expect("small");
                *done += 1;
            }
            checks[0] += u32::from(row.is_checked_now());
            checks[1] += u32::from(row.is_unmade());
            *recounted += row.recounts();
            let leases: Vec<_> = dispatch.leases(job).collect();
            let leases_max = match slot.state {
                JobState::Leased => 8,
                JobState::Done | JobState::Quarantined if row.is_checked_now() => 1,
                _ => 0,
            };
            assert!(leases.len() <= leases_max, "job {job} is {slot:?} with {leases:?}");
            assert!(
                leases.iter().map(|(holder, _)| holder).collect::<BTreeSet<_>>().len() == leases.len(),
                "job {job} is leased twice to one worker"
            );
            leased += leases.len();
        }
        let held: usize = dispatch.workers().map(|(_, worker)| worker.leases()).sum();
        assert_eq!(held, leased, "every lease is somebody's");
        for run in dispatch.runs() {
            let has = run.sums();
            let expected = sums.get(&run.id()).copied().unwrap_or_default();
            let checks = [has.checks.open, has.checks.unmade];
            let has = (has.accepted.found, has.done, checks, has.checks.recounted, has.cpu_us);
            assert_eq!(has, expected, "run {}", run.id());
            let row = ledger.run(run.id()).expect("every run is stored");
            let recounts = (run.sums().differing, run.sums().recounts_us);
            assert_eq!(recounts, (row.differing, row.recounts_us.into()), "run {}", run.id());
            assert_eq!(Some(run.state()), row.state, "run {} is stored as it is", run.id());
            let is_done = run.state() == RunState::Done;
            assert!(
                !is_done || row.agreed == run.sums().checks.recounted,
                "run {} and its recounts",
                run.id()
            );
            let total = row.outcome.map(Ok);
            assert!(total.is_none_or(|total| total == ledger.total(run.id())), "run {}", run.id());
        }
        for (machine, stored) in ledger.reputations() {
            assert_eq!(dispatch.reputation(machine), *stored, "{machine}");
        }
    }

    /// The rules that `nqueens doctor` looks for.
    fn look_at_job(ledger: &Ledger, job: JobId, row: &JobRow) {
        let (state, accepted) = (row.slot.state, row.accepted());
        let is_disputed = state == JobState::Quarantined && row.is_checked_now();
        assert_eq!(
            state == JobState::Done || is_disputed,
            accepted.is_some(),
            "job {job} is {state:?} with {:?}",
            row.results
        );
        if let Some((at, accepted)) = accepted {
            for later in &row.results[at + 1..] {
                let agrees = later.result.counts == accepted.result.counts;
                let verdict = if agrees { Verdict::Duplicate } else { Verdict::Conflict };
                assert_eq!(later.verdict, Some(verdict), "job {job}");
            }
        }
        assert_eq!(is_disputed, row.conflict().is_some(), "job {job}");
        let mut credentials = HashMap::<Counts, BTreeSet<&Credential>>::new();
        let stands = |row: &&ResultRow| matches!(row.verdict, Some(Verdict::Accepted | Verdict::Duplicate));
        for row in row.results.iter().filter(stands) {
            credentials.entry(row.result.counts).or_default().insert(&ledger.machine(row.worker).credential);
        }
        assert!(
            !row.slot.confirmed || credentials.values().any(|credentials| credentials.len() > 1),
            "job {job} was confirmed by one credential"
        );
    }

    /// When all is over: every job of a run that is done has its result. What an honest machine counted is right, and so is
    /// what was recounted; what another credential has counted alike is, unless both tell the same lies. Nothing stands of
    /// anybody who is out, unless he came in again. As many were recounted as are promised.
    pub(crate) fn conclude(&self, ledger: &Ledger) {
        for run in ledger.runs().filter(|run| run.state == Some(RunState::Done)) {
            let RunRow { settings, jobs, outcome, .. } = run;
            assert_eq!(ledger.jobs_of(settings.id).count(), *jobs as usize);
            assert_eq!(ledger.total(settings.id).ok(), *outcome, "run {} and its total", settings.id);
            for (job, row) in ledger.jobs_of(settings.id) {
                let (_, accepted) = row.accepted().expect("a done run has all its results");
                let is_true = accepted.result.counts == truth(job);
                assert!(is_true || self.liars.contains(ledger.machine(accepted.worker)), "job {job}");
                assert!(is_true || row.slot.recounted == 0, "a lie about job {job} was recounted");
                assert!(
                    is_true || !row.slot.confirmed || self.conspire,
                    "a lie about job {job} is confirmed"
                );
                if settings.replicate_ppm == ALL && !self.conspire {
                    let last = row.checks.last().copied().flatten();
                    let is_own = ledger.machine(accepted.worker).credential.is_own();
                    assert!(last.is_some() || is_own, "job {job} was to be counted a second time");
                    assert!(
                        is_true || last == Some(CheckOutcome::Unmade),
                        "job {job} is wrong, and was counted a second time: {last:?}"
                    );
                }
            }
        }
    }

    pub(crate) fn open(ledger: &Ledger) -> String {
        let runs: Vec<_> = ledger.runs().map(|run| (run.settings.id, run.state, run.jobs)).collect();
        let jobs: Vec<_> = ledger.jobs().filter(|(_, row)| row.slot.state != JobState::Done).collect();
        let checks = ledger.jobs().filter(|(_, row)| row.is_checked_now()).count();
        format!("runs {runs:?}, jobs {:?}, {} of them, {checks} checks", jobs.first(), jobs.len())
    }
}
