//! All checks that are possible on an exported ledger, from the file alone.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use nqueens_kernel::counts::SymmetricCounts;
use nqueens_kernel::engine::{Control, Stopped};
use nqueens_kernel::plan::Plan;
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_model::operator::{Checked, Grounds, Missing, Outcome, Standing};

use crate::book::Book;
use crate::chain::ChainReader;
use crate::confidence::share_met;
use crate::estimate::{STRATA, estimate_total};
use crate::finding::{Check, CheckResult};
use crate::line::{ChecksLine, FORMAT, Header, Line, TotalLine};
use crate::sample::Sample;
use crate::total::{Doubt, conclude};

/// Second counts that confirm a total, of as many jobs: if 1 % of the results were wrong, 300 random ones
/// would all be right in one case of twenty.
pub const CHECKS_MIN: u32 = 300;

/// So many of them must be recounts.
pub const RECOUNTS_MIN: u32 = 60;

/// Of an estimate, where the file has none.
const SEED: u64 = 1;

/// A file that was checked.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its first line, if that could be read.
    pub header: Option<Header>,
    /// All checks.
    pub findings: Vec<(Check, CheckResult)>,
    /// Jobs of each worker, by number, with its name.
    pub workers: BTreeMap<u64, (String, u64)>,
    /// Jobs that were read.
    pub jobs: u64,
    /// A total that no published count confirms.
    pub counted: Option<CountedTotal>,
}

/// A total that no published count confirms, and what else does.
#[derive(Clone, Debug)]
pub struct CountedTotal {
    outcome: Outcome,
    /// Second counts under another credential, as the file tells.
    second_counts: u64,
    /// Recounts by the coordinator, as the file tells.
    recounts: u64,
}

impl CountedTotal {
    /// Whether it is confirmed, if somebody who is trusted has counted so many of its jobs again.
    pub fn verdict(&self, recounted: u64) -> CheckResult {
        let standing = Standing::new(&self.outcome, self.second_counts, self.recounts.max(recounted), 0);
        let is_off = |missing: &Missing| matches!(missing, Missing::Agreement(_));
        let told = standing.to_string();
        if standing.is_confirmed() {
            CheckResult::Passed(told)
        } else if standing.missing().iter().any(is_off) {
            CheckResult::Failed(told)
        } else {
            CheckResult::NotMade(told)
        }
    }
}

impl Report {
    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        let counted = self.counted.as_ref().map(|counted| counted.verdict(0));
        let mut verdicts = self.findings.iter().map(|(_, verdict)| verdict).chain(&counted);
        !verdicts.any(|verdict| matches!(verdict, CheckResult::Failed(_)))
    }

    fn add(&mut self, check: Check, verdict: CheckResult) {
        self.findings.push((check, verdict));
    }
}

/// No report.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It was no longer wanted.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Reads a ledger from its first line to its last and makes every check. In memory there is never more than a line, the
/// workers and the sample, to which every job is offered.
pub fn verify(input: impl BufRead, sample: &mut Sample, control: &Control) -> Result<Report, Unread> {
    let mut lines = ChainReader::new(input);
    let mut report = Report::default();
    let header = match header(lines.next_line()?) {
        Ok(header) => header,
        Err(why) => {
            report.add(Check::Form, CheckResult::Failed(why));
            return Ok(report);
        }
    };
    let Some(plan) = header.plan() else {
        let why = "line 1: a plan cells has a board of N rows, and no other has one";
        report.add(Check::Form, CheckResult::Failed(why.to_owned()));
        return Ok(report);
    };
    let mut book = Book::new(header, &plan);
    let last = read(&mut lines, &mut book, sample, control)?;
    let form = match &last {
        Ok(_) => CheckResult::Passed(format!("{} lines of format {}", lines.lines(), book.header.format)),
        Err(why) => CheckResult::Failed(why.clone()),
    };
    report.add(Check::Form, form);
    report.add(Check::Chain, chain(&lines, last.is_ok()));
    report.findings.extend(book.findings(last.is_ok()));
    let told = last.as_ref().ok().and_then(|last| recounts(&last.checks));
    report.findings.extend(told.map(|told| (Check::Recounts, CheckResult::NotMade(told))));
    let is_whole = |(check, verdict): &(Check, CheckResult)| {
        !matches!(check, Check::Jobs | Check::Plan) || matches!(verdict, CheckResult::Passed(_))
    };
    let why_not = match &last {
        Err(_) => Some("the file could not be read to its end"),
        // The search for symmetric solutions takes hours for the largest boards: nobody shall have to wait that long for a
        // file without all jobs.
        Ok(_) if !report.findings.iter().all(is_whole) => Some("the jobs are not the plan's"),
        Ok(_) => None,
    };
    match (last, why_not) {
        (Ok(last), None) => {
            // Those of a variant are not looked for.
            let symmetric =
                plan.variant().is_none().then(|| symmetric_counts(plan.n(), control)).transpose()?;
            let (findings, outcome) = sums(&book, &plan, &last, symmetric);
            report.findings.extend(findings);
            if let Some(outcome) = outcome {
                confirm(&mut report, &book, &plan, &last, outcome, control)?;
            }
        }
        (_, why) => report.findings.extend(
            [Check::Sums, Check::Orbits, Check::Symmetric, Check::Published, Check::Total]
                .map(|check| (check, CheckResult::NotMade(why.unwrap_or_default().to_owned()))),
        ),
    }
    report.header = Some(book.header.clone());
    report.jobs = book.jobs();
    report.workers = book.into_workers();
    Ok(report)
}

/// The first line. Its version is looked at first, for the rest may be different in another one.
fn header(line: Result<Option<String>, String>) -> Result<Header, String> {
    let Some(line) = line? else { return Err("the file is empty".to_owned()) };
    let value: serde_json::Value = serde_json::from_str(&line).map_err(|error| format!("line 1: {error}"))?;
    if value["line"] != "ledger" {
        return Err("line 1 is not the header of a ledger".to_owned());
    }
    if value["format"] != FORMAT {
        return Err(format!(
            "format version {} is not known here, {FORMAT} is; use the nqueens that wrote it, or a later one",
            value["format"]
        ));
    }
    match serde_json::from_value(value) {
        Ok(Line::Ledger(header)) => Ok(header),
        Ok(_) => unreachable!("its kind was looked at"),
        Err(error) => Err(format!("line 1: {error}")),
    }
}

/// Enters all lines after the first; the inner error says why the file ends before its end.
fn read(
    lines: &mut ChainReader<impl BufRead>,
    book: &mut Book,
    sample: &mut Sample,
    control: &Control,
) -> Result<Result<TotalLine, String>, Unread> {
    loop {
        control.advance(0)?;
        let line = match lines.next_line()? {
            Ok(Some(line)) => line,
            Ok(None) => {
                let lines = lines.lines();
                return Ok(Err(format!(
                    "the file ends after line {lines}, without the total: it is cut off"
                )));
            }
            Err(why) => return Ok(Err(why)),
        };
        let number = lines.lines();
        match serde_json::from_str(&line) {
            Ok(Line::Job(job)) => book.enter_job(job, sample),
            Ok(Line::Other(other)) => book.enter_other(&other),
            Ok(Line::Worker(worker)) => book.enter_worker(worker),
            Ok(Line::Total(total)) => {
                return Ok(match lines.next_line()? {
                    Ok(None) => Ok(total),
                    _ => Err(format!("the file continues after the total, on line {number}")),
                });
            }
            Ok(Line::Ledger(_)) => return Ok(Err(format!("line {number} is a second header"))),
            Err(error) => return Ok(Err(format!("line {number}: {error}"))),
        }
    }
}

fn chain(lines: &ChainReader<impl BufRead>, complete: bool) -> CheckResult {
    match lines.broken() {
        [] if complete => CheckResult::Passed(format!("the last hash is {}", lines.hash())),
        [] => CheckResult::NotMade("no error as far as the file could be read".to_owned()),
        broken => {
            let broken = broken.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            CheckResult::Failed(format!("the hash does not fit on line {broken}"))
        }
    }
}

/// What the coordinator says that it has counted itself: the file can't prove it.
fn recounts(checks: &ChecksLine) -> Option<String> {
    let ChecksLine { recounts_agreed: agreed, recounts_differing: differing, .. } = *checks;
    (agreed > 0 || differing > 0).then(|| {
        format!(
            "the coordinator says that it counted {agreed} parts of jobs to the same result, and {differing} to another, which is \
             voided: a share of {:.2} % falsified parts or more would have been found with a probability of 95 %",
            100.0 * share_met(agreed)
        )
    })
}

/// Makes the estimate of a total again, if the file has one or no count is published.
fn confirm(
    report: &mut Report,
    book: &Book,
    plan: &Plan,
    last: &TotalLine,
    outcome: Outcome,
    control: &Control,
) -> Result<(), Stopped> {
    let told = last.checks.grounds.clone().map(Grounds::from);
    if outcome.checked == Checked::Published && told.is_none() {
        return Ok(());
    }
    let (seed, strata) =
        told.map_or((SEED, STRATA), |told| (told.estimate.seed, told.estimate.strata.clamp(1, STRATA)));
    let estimate = estimate_total(plan.n(), plan.variant(), (seed, strata), control)?;
    if told.is_some_and(|told| told.estimate != estimate) {
        let why = format!("the last line's estimate is not what its seed {seed} gives, {estimate:?}");
        report.add(Check::Confirmed, CheckResult::Failed(why));
        return Ok(());
    }
    // A file can ask for more, not for less.
    let checks_wanted = CHECKS_MIN.min(book.header.jobs).max(told.map_or(0, |told| told.checks_wanted));
    let recounts_wanted = RECOUNTS_MIN.min(book.header.jobs).max(told.map_or(0, |told| told.recounts_wanted));
    let grounds = Some(Grounds { estimate, checks_wanted, recounts_wanted });
    report.counted = Some(CountedTotal {
        outcome: Outcome { grounds, ..outcome },
        second_counts: book.confirmed(),
        recounts: last.checks.recounts_agreed.into(),
    });
    Ok(())
}

/// The checks on what the jobs add up to, and what that is.
fn sums(
    book: &Book,
    plan: &Plan,
    last: &TotalLine,
    symmetric: Option<SymmetricCounts>,
) -> (Vec<(Check, CheckResult)>, Option<Outcome>) {
    let unmade = || CheckResult::NotMade("an earlier check failed".to_owned());
    let found = match book.found() {
        Ok(found) => found,
        Err(overflow) => {
            let rest = [Check::Orbits, Check::Symmetric, Check::Published, Check::Total];
            let sums = (Check::Sums, CheckResult::Failed(overflow.to_string()));
            return (std::iter::once(sums).chain(rest.map(|check| (check, unmade()))).collect(), None);
        }
    };
    let sums = if found == last.counts {
        CheckResult::Passed("the sums over the jobs equal the last line".to_owned())
    } else {
        CheckResult::Failed("the sums over the jobs differ from the last line".to_owned())
    };
    let unsorted =
        || CheckResult::NotMade("the solutions of a variant are not sorted into orbits".to_owned());
    let whole = || {
        if symmetric.is_none() {
            return unsorted();
        }
        CheckResult::Passed(if found.solutions > 0 {
            "the solutions less the symmetric ones are a multiple of 8".to_owned()
        } else {
            "every job counted orbits".to_owned()
        })
    };
    let equal = || {
        let Some(symmetric) = symmetric else { return unsorted() };
        let (count2, count4) = (symmetric.count2(), symmetric.count4());
        if found.solutions > 0 {
            CheckResult::NotMade(format!(
                "not checkable in this plan; COUNT2 = {count2} and COUNT4 = {count4} are taken from the symmetric search"
            ))
        } else {
            CheckResult::Passed(format!(
                "COUNT2 = {count2} and COUNT4 = {count4}, equal to the separate symmetric search"
            ))
        }
    };
    let failed = |doubt: &Doubt| CheckResult::Failed(doubt.to_string());
    let outcome = conclude(plan, found, symmetric.unwrap_or_default(), None);
    let [orbits, symmetric, published] = match &outcome {
        Ok(Outcome { checked: Checked::Published, .. }) => {
            [whole(), equal(), CheckResult::Passed("the total equals the published count".to_owned())]
        }
        Ok(Outcome { checked: Checked::Symmetric | Checked::None, .. }) => {
            let subject = plan.subject();
            [whole(), equal(), CheckResult::NotMade(format!("there is no published count for {subject}"))]
        }
        Err(doubt @ (Doubt::Unsortable(_) | Doubt::Overflow(_))) => [failed(doubt), unmade(), unmade()],
        Err(doubt @ Doubt::Symmetry { .. }) => [whole(), failed(doubt), unmade()],
        Err(doubt @ Doubt::Published { .. }) => [whole(), equal(), failed(doubt)],
    };
    let outcome = outcome.ok();
    let findings = vec![
        (Check::Sums, sums),
        (Check::Orbits, orbits),
        (Check::Symmetric, symmetric),
        (Check::Published, published),
        (Check::Total, outcome.map_or_else(unmade, |outcome| total(&book.header, last, &outcome))),
    ];
    (findings, outcome)
}

fn total(header: &Header, last: &TotalLine, outcome: &Outcome) -> CheckResult {
    let total = outcome.total;
    if header.total != total {
        CheckResult::Failed(format!(
            "the first line's total {} differs from that of the jobs, {total}",
            header.total
        ))
    } else if last.total != total {
        CheckResult::Failed(format!(
            "the last line's total {} differs from that of the jobs, {total}",
            last.total
        ))
    } else if outcome.totals != last.orbits {
        CheckResult::Failed("the last line's orbits differ from those of the jobs".to_owned())
    } else {
        CheckResult::Passed(total.to_string())
    }
}
