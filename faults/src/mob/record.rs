//! What the ledger says of those who reported results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sqlx::{query_as, query_scalar};

use crate::check::Reference;
use crate::ledger::{natural, open};
use crate::recording_proxy::Counts;

struct Reported {
    job: u64,
    counts: Counts,
    verdict: String,
    machine: Machine,
}

type Machine = (String, String);

/// Job, counts, verdict, credential and name.
type ResultRow = (i64, i64, i64, i64, i64, String, String, String);

/// A whole ledger, with lies.
pub(super) struct Record {
    /// State and total of each run.
    runs: Vec<(String, Option<String>)>,
    results: Vec<Reported>,
    /// An empty name stands for all machines of the credential.
    untrusted: BTreeSet<Machine>,
    /// What there is of jobs that are not confirmed.
    unconfirmed: Vec<String>,
    figures: BTreeMap<String, u64>,
}

pub(super) async fn results(path: &Path) -> i64 {
    query_scalar("SELECT count(*) FROM result").fetch_one(&mut open(path).await).await.expect("a number")
}

impl Record {
    pub(super) async fn read(path: &Path) -> Self {
        let mut db = open(path).await;
        let text = "SELECT state, total FROM run";
        let runs = query_as(text).fetch_all(&mut db).await.expect("runs");
        let text = "SELECT job, count2, count4, count8, solutions, verdict, credential, name
                    FROM result JOIN worker ON worker.id = worker";
        let rows: Vec<ResultRow> = query_as(text).fetch_all(&mut db).await.expect("results");
        let results = rows.into_iter().map(|row| Reported {
            job: natural(row.0),
            counts: [row.1, row.2, row.3, row.4].map(natural),
            verdict: row.5,
            machine: (row.6, row.7),
        });
        let text = "SELECT credential, name FROM machine WHERE distrusted IS NOT NULL";
        let untrusted: Vec<Machine> = query_as(text).fetch_all(&mut db).await.expect("machines");
        let text =
            "SELECT printf('job %x/%d: %s by %s of %s', result.run, result.job, verdict, name, credential)
                    FROM result JOIN worker ON worker.id = result.worker
                    JOIN job ON (job.run, number) = (result.run, result.job)
                    WHERE NOT confirmed AND recounted < 254 LIMIT 20";
        let unconfirmed: Vec<String> = query_scalar(text).fetch_all(&mut db).await.expect("jobs");
        let mut figures = BTreeMap::new();
        for text in [
            "SELECT 'runs', count(*) FROM run",
            "SELECT 'ledger: ' || verdict, count(*) FROM result GROUP BY verdict",
            "SELECT 'ledger: jobs counted by the coordinator', count(*) FROM result JOIN worker ON worker.id = result.worker
             WHERE credential = '(the coordinator)'",
            "SELECT 'ledger: second counts ' || outcome, count(*) FROM recheck GROUP BY outcome",
            "SELECT 'ledger: machines', count(*) FROM (SELECT DISTINCT credential, name FROM worker)",
            "SELECT 'ledger: untrusted ' || iif(name = '', 'credentials', 'machines'), count(*) FROM machine
             WHERE distrusted IS NOT NULL GROUP BY name = ''",
            "SELECT 'ledger: failed attempts', sum(failures) FROM job",
            "SELECT 'ledger: leases that ran out', sum(lapses) FROM job",
        ] {
            let rows: Vec<(String, i64)> =
                query_as(text).fetch_all(&mut db).await.expect("figures");
            figures.extend(rows.into_iter().map(|(what, times)| (what, natural(times))));
        }
        Self {
            runs,
            results: results.collect(),
            untrusted: untrusted.into_iter().collect(),
            unconfirmed,
            figures,
        }
    }

    /// Nothing that is wrong stands, everything is confirmed, who was wrong is untrusted, and nobody else.
    pub(super) fn check(&mut self, reference: &Reference, honest: &[&str]) {
        for (state, total) in &self.runs {
            assert_eq!((&**state, total.as_deref()), ("done", Some(reference.total())));
        }
        let is_untrusted = |(credential, name): &Machine| {
            [name.clone(), String::new()]
                .into_iter()
                .any(|name| self.untrusted.contains(&(credential.clone(), name)))
        };
        let (mut wrong, mut believed) = (0, 0);
        for Reported { job, counts, verdict, machine } in &self.results {
            if *counts == reference.job(*job) {
                continue;
            }
            wrong += 1;
            assert_ne!(verdict, "accepted", "{machine:?}: job {job}");
            assert!(!honest.contains(&&*machine.0), "{machine:?}: job {job}");
            if verdict == "voided" {
                believed += 1;
                assert!(is_untrusted(machine), "{machine:?} was believed a wrong count of job {job}");
            }
        }
        for (credential, name) in &self.untrusted {
            assert!(!honest.contains(&&**credential), "{name} of {credential}");
        }
        assert!(self.unconfirmed.is_empty(), "not confirmed: {:#?}", self.unconfirmed);
        self.figures.insert("ledger: wrong results".to_owned(), wrong);
        self.figures.insert("ledger: wrong results accepted at first, and put right".to_owned(), believed);
    }

    pub(super) fn figures(self) -> BTreeMap<String, u64> {
        self.figures
    }
}
