//! A ledger's lines in one pass, compared with the plan and with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use nqueens_kernel::counts::{Counts, Overflow, Totals};
use nqueens_kernel::job::{Job, Weight};
use nqueens_kernel::plan::{Fingerprinter, Plan};
use nqueens_model::message::EncodedJob;
use nqueens_model::numbers::thousands;
use nqueens_model::operator::WallTime;

use crate::finding::{Check, CheckResult};
use crate::line::{Header, JobLine, LedgerResult, OtherLine, OtherVerdict, WorkerLine};
use crate::sample::{Claim, Sample};

pub(crate) struct Book {
    pub(crate) header: Header,
    /// What is counted, in words.
    subject: String,
    /// The jobs that should stand there.
    plan: Box<dyn Iterator<Item = (Job, Weight)> + Send>,
    fingerprint: Fingerprinter,
    jobs: u64,
    /// The number that the next job should have.
    next: u64,
    found: Result<Totals, Overflow>,
    by_worker: BTreeMap<u64, OfWorker>,
    workers: BTreeMap<u64, WorkerLine>,
    latest: LatestJob,
    others: Others,
    faults: Faults,
}

/// What the results of a worker come to.
#[derive(Default)]
struct OfWorker {
    /// Those that stand.
    jobs: u64,
    sums: Totals,
    /// Threads that it must have had, and the job that says so.
    threads: (u128, u32),
}

/// What the clocks of a worker and of its coordinator may differ by, in microseconds: as coordinators have it.
const CLOCKS_DIFFER_US: u128 = 60_000_000;

/// The job that was read last, for the lines of its other results.
#[derive(Default)]
struct LatestJob {
    number: Option<u32>,
    worker: u64,
    /// Of the result that stands, and of those that stood before.
    counts: Vec<Counts>,
    /// Other workers that counted the same.
    confirmed_by: BTreeSet<u64>,
    /// Time of the other result above.
    other_ms: WallTime,
}

#[derive(Default)]
struct Others {
    voided: u64,
    /// How many jobs were counted by a worker and alike by such others. Whether these are on other machines is only known when
    /// the workers have been read.
    confirmed: BTreeMap<(u64, BTreeSet<u64>), u64>,
}

#[derive(Default)]
struct Faults {
    jobs: Flaw,
    plan: Flaw,
    bounds: Flaw,
    workers: Flaw,
    work: Flaw,
    others: Flaw,
}

/// The first of some things that are wrong, and how many more there are.
#[derive(Default)]
struct Flaw {
    first: Option<String>,
    more: u64,
}

impl Flaw {
    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.first.is_some() {
            self.more += 1;
        } else {
            self.first = Some(what());
        }
    }

    /// What is to be said: `passed` if nothing is wrong, and all was looked at.
    fn verdict(&self, complete: Result<(), &str>, passed: impl fmt::Display) -> CheckResult {
        match (&self.first, self.more, complete) {
            (None, _, Ok(())) => CheckResult::Passed(passed.to_string()),
            (None, _, Err(why)) => CheckResult::NotMade(why.to_owned()),
            (Some(first), 0, _) => CheckResult::Failed(first.clone()),
            (Some(first), more, _) => CheckResult::Failed(format!("{first}; and {more} more")),
        }
    }
}

impl Book {
    pub(crate) fn new(header: Header, plan: &Plan) -> Self {
        Self {
            subject: plan.subject(),
            plan: plan.weighed_jobs(),
            fingerprint: Fingerprinter::new(plan),
            jobs: 0,
            next: 0,
            found: Ok(Totals::default()),
            by_worker: BTreeMap::new(),
            workers: BTreeMap::new(),
            latest: LatestJob::default(),
            others: Others::default(),
            faults: Faults::default(),
            header,
        }
    }

    pub(crate) fn jobs(&self) -> u64 {
        self.jobs
    }

    pub(crate) fn found(&self) -> Result<Totals, Overflow> {
        self.found
    }

    pub(crate) fn into_workers(self) -> BTreeMap<u64, String> {
        self.workers.into_iter().map(|(id, worker)| (id, worker.name)).collect()
    }

    pub(crate) fn enter_job(&mut self, line: JobLine, sample: &mut Sample) {
        let JobLine { number, class, bound1, ref bytes, ref result } = line;
        if u64::from(number) != self.next {
            let next = self.next;
            self.faults.jobs.note(|| {
                format!("job {number} stands where job {next} should: one is missing, comes twice or is out of order")
            });
        }
        self.next = u64::from(number) + 1;
        self.jobs += 1;
        self.fingerprint.add_encoded(class, bound1, bytes);
        self.found = self.found.and_then(|found| found.checked_add(result.counts));
        let (worker, work) = (self.by_worker.entry(result.worker).or_default(), &mut self.faults.work);
        worker.jobs += 1;
        // If that overflows the sum of all jobs does, too, which is told.
        worker.sums = worker.sums.checked_add(result.counts).unwrap_or(worker.sums);
        // Some beginnings leave a row without a free cell: there is nothing to visit.
        if result.states == 0 && result.counts != Counts::default() {
            work.note(|| format!("job {number} was counted without visiting any state"));
        }
        let (at, end) = (result.reported_at_ms, self.header.finished_at_ms.unwrap_or(WallTime::MAX));
        if !(self.header.created_at_ms..=end).contains(&at) {
            work.note(|| format!("the result of job {number} did not come in the time of the run"));
        }
        let span_ms = at.saturating_sub(self.header.created_at_ms).max(0).unsigned_abs();
        let span_us = u128::from(span_ms) * 1_000 + CLOCKS_DIFFER_US;
        let threads = u128::from(result.elapsed_us).div_ceil(span_us);
        if threads > worker.threads.0 {
            worker.threads = (threads, number);
        }
        self.close_job();
        (self.latest.number, self.latest.worker) = (Some(number), result.worker);
        self.latest.counts.push(result.counts);
        // Where one job is out of place, it is not told of all that follow that they are not the plan's.
        if self.faults.jobs.first.is_none() {
            self.compare(&line);
        }
        let JobLine { bytes, result: LedgerResult { counts, kernel, worker, .. }, .. } = line;
        let n = self.header.n;
        let job = || EncodedJob { n, class, bound1, prefixes: bytes };
        sample.offer(number, || Claim { number, counts, kernel, worker, job: job() });
    }

    /// Holds a job in its place against the plan's.
    fn compare(&mut self, line: &JobLine) {
        let number = line.number;
        let Some((job, weight)) = self.plan.next() else {
            return self.faults.plan.note(|| format!("the plan has no job {number}"));
        };
        if (job.class(), job.bound1(), job.encode()) != (line.class, line.bound1, line.bytes.clone()) {
            return self.faults.plan.note(|| format!("job {number} is not the plan's"));
        }
        if !line.result.counts.within(weight.counts_max) {
            let (found, max) = (line.result.counts, weight.counts_max);
            self.faults.bounds.note(|| format!("job {number} has {found}, more than the possible {max}"));
        }
    }

    /// No more lines are of the job that was read last.
    fn close_job(&mut self) {
        let LatestJob { worker, confirmed_by, .. } = std::mem::take(&mut self.latest);
        if !confirmed_by.is_empty() {
            *self.others.confirmed.entry((worker, confirmed_by)).or_default() += 1;
        }
    }

    pub(crate) fn enter_other(&mut self, line: &OtherLine) {
        let (OtherLine { number, verdict, result }, latest) = (line, &mut self.latest);
        let Faults { work, others, .. } = &mut self.faults;
        if latest.number != Some(*number) {
            return others.note(|| format!("a result of job {number} does not stand below its job"));
        }
        if result.reported_at_ms < latest.other_ms.max(self.header.created_at_ms) {
            work.note(|| format!("a result of job {number} came before the one above it"));
        }
        latest.other_ms = result.reported_at_ms;
        match verdict {
            OtherVerdict::Voided => {
                self.others.voided += 1;
                latest.counts.push(result.counts);
            }
            OtherVerdict::Duplicate if !latest.counts.contains(&result.counts) => {
                others.note(|| {
                    format!(
                        "job {number} has a duplicate result {} that equals no other result",
                        result.counts
                    )
                });
            }
            OtherVerdict::Duplicate => {
                if result.counts == latest.counts[0] && result.worker != latest.worker {
                    latest.confirmed_by.insert(result.worker);
                }
            }
            OtherVerdict::Conflict if latest.counts.iter().all(|counts| *counts == result.counts) => {
                others.note(|| format!("job {number} has a conflicting result that equals the others"));
            }
            OtherVerdict::Conflict => {}
        }
    }

    pub(crate) fn enter_worker(&mut self, line: WorkerLine) {
        let (id, nothing) = (line.worker, OfWorker::default());
        let OfWorker { jobs, sums, threads: (threads, job) } = self.by_worker.get(&id).unwrap_or(&nothing);
        let Faults { work, workers, .. } = &mut self.faults;
        if *threads > line.threads.into() {
            work.note(|| {
                format!(
                    "the result of job {job} took more time than the threads of worker {id} had until then"
                )
            });
        }
        if *jobs != u64::from(line.jobs) {
            let said = line.jobs;
            workers.note(|| format!("worker {id} has {jobs} results, not {said}"));
        }
        if line.counts != *sums {
            workers.note(|| format!("the results of worker {id} have other sums than its line says"));
        }
        if self.workers.insert(id, line).is_some() {
            workers.note(|| format!("worker {id} is listed twice"));
        }
    }

    /// The checks on jobs and workers, all lines being read or not.
    pub(crate) fn findings(&mut self, complete: bool) -> [(Check, CheckResult); 7] {
        self.close_job();
        let jobs = self.header.jobs;
        let read = if complete { Ok(()) } else { Err("the file could not be read to its end") };
        if complete {
            let next = self.next;
            if next != u64::from(jobs) {
                self.faults
                    .jobs
                    .note(|| format!("the jobs end before job {next}, but the first line says {jobs}"));
            } else if self.faults.jobs.first.is_none() && self.plan.next().is_some() {
                self.faults.plan.note(|| format!("the plan has more than {jobs} jobs"));
            }
            for id in self.by_worker.keys().filter(|id| !self.workers.contains_key(id)) {
                self.faults.workers.note(|| format!("worker {id} has results and is not listed"));
            }
        }
        let in_order = read.and(match self.faults.jobs.first {
            None => Ok(()),
            Some(_) => Err("the jobs are not in order"),
        });
        let (stated, stored) = (self.header.fingerprint, self.fingerprint.clone().finish());
        let fingerprint = match read {
            Err(why) => CheckResult::NotMade(why.to_owned()),
            Ok(()) if stated == stored => CheckResult::Passed(stored.to_string()),
            Ok(()) => CheckResult::Failed(format!("the first line has {stated}, the jobs have {stored}")),
        };
        let (plan, states_per_job) = (self.header.plan, thousands(self.header.states_per_job));
        let subject = &self.subject;
        let made = format!(
            "computed again for {subject}, plan {plan}, {states_per_job} states per job: the same jobs"
        );
        let workers = format!("each result is from one of the {} listed workers", self.workers.len());
        let others = match self.others.voided {
            0 => "none was voided".to_owned(),
            voided => format!("{voided} results were voided, and their jobs counted again"),
        };
        [
            (
                Check::Jobs,
                self.faults.jobs.verdict(read, format_args!("{}, each once and in order", thousands(jobs))),
            ),
            (Check::Plan, self.faults.plan.verdict(in_order, made)),
            (Check::Fingerprint, fingerprint),
            (Check::Bounds, self.faults.bounds.verdict(in_order, "no job has more solutions than possible")),
            (Check::Workers, self.faults.workers.verdict(read, workers)),
            (Check::Work, self.faults.work.verdict(read, "times and states are plausible")),
            (Check::Others, self.faults.others.verdict(read, others)),
        ]
    }

    /// Second counts, which the owner of the run can have made up; `None` if the file has none.
    pub(crate) fn claims(&self) -> Option<String> {
        let credential = |worker: u64| self.workers.get(&worker).map(|line| &line.credential);
        let is_by_another = |(worker, others): &(u64, BTreeSet<u64>)| {
            let own = credential(*worker);
            others.iter().any(|other| credential(*other).is_some_and(|other| own != Some(other)))
        };
        let alike = self.others.confirmed.iter().filter(|(by, _)| is_by_another(by));
        let (alike, jobs): (u64, _) = (alike.map(|(_, jobs)| jobs).sum(), self.header.jobs);
        (alike > 0).then(|| {
            format!("by its owner's word, {alike} of {jobs} jobs were counted alike under another credential")
        })
    }
}
