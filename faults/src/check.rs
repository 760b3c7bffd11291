//! The checks after each round, and at the end.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::cluster::{Cluster, nqueens};
use crate::ledger::{Ledger, Stored};
use crate::recording_proxy::{Acknowledged, Counts, Token};

/// The result of the undisturbed run.
pub(crate) struct Reference {
    total: String,
    jobs: Vec<Counts>,
}

impl Reference {
    /// Counts every job by the fastest engine there is, in one process.
    pub(crate) fn count(program: &Path, folder: &Path, board: &str) -> Self {
        let outcome = nqueens(program, folder, &format!("run {board} --db reference.db --json"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let ledger = runtime.block_on(Ledger::read(&folder.join("reference.db")));
        let [run] = &ledger.runs[..] else { panic!("one run") };
        let mut jobs: Vec<_> = ledger.results.iter().map(|result| (result.token[1], result.counts)).collect();
        jobs.sort_unstable();
        Self {
            total: run.total.clone().expect("it is done"),
            jobs: jobs.into_iter().map(|(_, counts)| counts).collect(),
        }
    }

    pub(crate) fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// What the job of this number finds.
    pub(crate) fn job(&self, number: u64) -> Counts {
        self.jobs[usize::try_from(number).expect("small")]
    }

    pub(crate) fn total(&self) -> &str {
        &self.total
    }
}

impl Ledger {
    /// Whatever is counted is counted right, and once; whatever was accepted is there, and nothing was dropped but of jobs that
    /// are done.
    pub(crate) fn check<'a>(
        &self,
        reference: &Reference,
        acknowledged: impl IntoIterator<Item = (&'a (Token, bool), &'a Acknowledged)>,
    ) {
        let mut counted = HashSet::new();
        for Stored { token, counts, .. } in self.results.iter().filter(|result| result.accepted) {
            let [run, job, ..] = *token;
            assert!(counted.insert((run, job)), "job {run:x}/{job} is counted twice");
            assert_eq!(*counts, reference.job(job), "job {run:x}/{job}");
        }
        for run in &self.runs {
            let counted = counted.iter().filter(|(of, _)| *of == run.id).count();
            match (&*run.state, &run.total) {
                ("done", Some(total)) => {
                    assert_eq!(
                        (total, counted),
                        (&reference.total, reference.jobs.len()),
                        "run {:x}",
                        run.id
                    );
                }
                ("active", None) => {}
                // Cut while it was being submitted: it is forgotten at the next start.
                ("planning", None) => assert_eq!(counted, 0, "run {:x}", run.id),
                other => panic!("run {:x} is {other:?}", run.id),
            }
        }
        let stored: HashMap<_, _> =
            self.results.iter().map(|result| ((result.token, result.accepted), result.counts)).collect();
        for (name, Acknowledged { counts, .. }) in acknowledged {
            let ([run, job, ..], is_accepted) = *name;
            let is_dropped = !is_accepted && !stored.contains_key(name) && counted.contains(&(run, job));
            assert!(is_dropped || stored.get(name) == Some(counts), "{name:?} was acknowledged");
        }
    }
}

/// Holds the cluster's ledger against everything that is known.
pub(crate) fn check(cluster: &Cluster, reference: &Reference) -> Ledger {
    assert_eq!(cluster.recording_proxy.findings(), Vec::<String>::new(), "of what the coordinator said");
    // First the one, then the other: what comes in between is in the ledger alone.
    let acknowledged = cluster.recording_proxy.acknowledged();
    let ledger = cluster.runtime.block_on(Ledger::examine(&cluster.database()));
    ledger.check(reference, &acknowledged);
    ledger
}

/// At the end, when all is counted: by the program's own means too.
pub(crate) fn check_evidence(cluster: &Cluster, ledger: &Ledger) {
    let database = cluster.database();
    let database = database.display();
    let doctor = cluster.nqueens(&format!("doctor --db {database}"));
    assert_eq!(doctor.code, 0, "{}", doctor.stdout);
    for run in &ledger.runs {
        let export = cluster.nqueens(&format!("export {:012x} --db {database} --format ledger", run.id));
        assert_eq!(export.code, 0, "{}", export.stderr);
        std::fs::write(cluster.scratch("run.ledger"), export.stdout).expect("a file");
        let verified = cluster.nqueens("verify run.ledger --sample 30 --seed 1");
        assert_eq!(verified.code, 0, "{}", verified.stdout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RunRow;

    type Change = dyn Fn(&mut Ledger);

    const TOKENS: [Token; 2] = [[1, 0, 1], [1, 1, 3]];

    fn ledger() -> Ledger {
        let result = |at: usize| Stored { token: TOKENS[at], counts: [0, 0, 0, at as u64], accepted: true };
        let run = RunRow { id: 1, state: "done".to_owned(), total: Some("1".to_owned()) };
        Ledger { runs: vec![run], results: vec![result(0), result(1)], lapses: 0 }
    }

    /// What is found when a ledger is held against a run of two jobs, which find nothing and one solution, and of which
    /// the second was acknowledged.
    fn finding(change: impl Fn(&mut Ledger)) -> Option<String> {
        let reference = Reference { total: "1".to_owned(), jobs: vec![[0; 4], [0, 0, 0, 1]] };
        let acknowledged = ((TOKENS[1], true), Acknowledged { counts: [0, 0, 0, 1], mark: None });
        let mut ledger = ledger();
        change(&mut ledger);
        let check = || ledger.check(&reference, [(&acknowledged.0, &acknowledged.1)]);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).err()?;
        Some(*panic.downcast::<String>().expect("words"))
    }

    #[test]
    fn whatever_is_wrong_is_found() {
        assert_eq!(finding(|_| {}), None);
        let changes: [(&Change, &str); 6] = [
            (&|ledger| ledger.results[0].counts[2] = 1, "job 1/0"),
            (
                &|ledger| ledger.results[0] = Stored { token: [1, 1, 9], ..ledger.results[1] },
                "job 1/1 is counted twice",
            ),
            (&|ledger| ledger.results.truncate(1), "run 1"),
            (&|ledger| ledger.runs[0].total = Some("2".to_owned()), "run 1"),
            (&|ledger| ledger.runs[0].state = "failed".to_owned(), "run 1 is (\"failed\""),
            (&|ledger| ledger.results[1].token[2] = 4, "([1, 1, 3], true) was acknowledged"),
        ];
        for (change, expected) in changes {
            let found = finding(change).expect("a finding");
            assert!(found.contains(expected), "{found}");
        }
    }
}
