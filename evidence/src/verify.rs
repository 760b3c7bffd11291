//! All checks that are possible on an exported ledger, from the file alone.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use nqueens_kernel::counts::SymmetricCounts;
use nqueens_kernel::engine::{Control, Stopped};
use nqueens_kernel::plan::Plan;
use nqueens_kernel::symmetric::symmetric_counts;
use nqueens_model::numbers::thousands;
use nqueens_model::operator::{Checked, Outcome};

use crate::book::Book;
use crate::chain::ChainReader;
use crate::estimate::{STRATA, estimate_total};
use crate::finding::{Check, CheckResult};
use crate::line::{FORMAT, Header, Line, TotalLine};
use crate::sample::Sample;
use crate::total::{Doubt, conclude};

/// Second counts that confirm a total, of as many jobs: if 1 % of the results were wrong, 300 random ones
/// would all be right in one case of twenty.
pub const CHECKS_MIN: u32 = 300;

/// Of the estimate: its maker must not choose it.
const SEED: u64 = 1;

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Its first line, if that could be read.
    pub header: Option<Header>,
    pub findings: Vec<(Check, CheckResult)>,
    /// The names of the workers, by number.
    pub workers: BTreeMap<u64, String>,
    pub jobs: u64,
    /// What they add up to, if no check on that failed.
    pub outcome: Option<Outcome>,
}

impl Report {
    pub fn passed(&self) -> bool {
        !self.findings.iter().any(|(_, verdict)| matches!(verdict, CheckResult::Failed(_)))
    }

    pub fn add(&mut self, check: Check, verdict: CheckResult) {
        self.findings.push((check, verdict));
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Unread {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// It may be right or wrong.
    #[error(
        "format version {0} is not known here, {FORMAT} is; use the nqueens that wrote it, or a later one"
    )]
    LaterFormat(u64),
}

/// Reads a ledger from its first line to its last and makes every check. In memory there is never more than a line, the
/// workers and the sample, to which every job is offered.
pub fn verify(input: impl BufRead, sample: &mut Sample, control: &Control) -> Result<Report, Unread> {
    let mut lines = ChainReader::new(input);
    let mut report = Report::default();
    let first = lines.next_line()?;
    let header = match header(first, lines.broken().is_empty())? {
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
        Ok(_) => CheckResult::Passed(format!(
            "{} lines of format {}",
            thousands(lines.lines()),
            book.header.format
        )),
        Err(why) => CheckResult::Failed(why.clone()),
    };
    report.add(Check::Form, form);
    report.add(Check::Chain, chain(&lines, last.is_ok()));
    report.findings.extend(book.findings(last.is_ok()));
    match last {
        // Nothing can be said of the rest, and once is enough.
        Err(_) => report.findings.retain(|(_, verdict)| !matches!(verdict, CheckResult::NotMade(_))),
        Ok(last) => {
            report.findings.extend(book.claims().map(|claims| (Check::Claims, CheckResult::NotMade(claims))));
            let is_whole = |(check, verdict): &(Check, CheckResult)| {
                !matches!(check, Check::Jobs | Check::Plan) || matches!(verdict, CheckResult::Passed(_))
            };
            // The search for symmetric solutions takes minutes for the largest boards: nobody shall have to wait that long for
            // a file without all jobs.
            if report.findings.iter().all(is_whole) {
                conclude_sums(&mut report, &book, &plan, &last, control)?;
            }
        }
    }
    report.header = Some(book.header.clone());
    report.jobs = book.jobs();
    report.workers = book.into_workers();
    Ok(report)
}

/// The first line. Its version is looked at first, for the rest may be different in another one.
fn header(
    line: Result<Option<String>, String>,
    has_its_hash: bool,
) -> Result<Result<Header, String>, Unread> {
    let value: serde_json::Value = match line.map(|line| line.map(|line| serde_json::from_str(&line))) {
        Ok(Some(Ok(value))) => value,
        Ok(Some(Err(error))) => return Ok(Err(format!("line 1: {error}"))),
        Ok(None) => return Ok(Err("the file is empty".to_owned())),
        Err(why) => return Ok(Err(why)),
    };
    if value["line"] != "ledger" {
        return Ok(Err("line 1 is not the header of a ledger".to_owned()));
    }
    if let Some(later) = value["format"].as_u64().filter(|format| has_its_hash && *format > FORMAT.into()) {
        return Err(Unread::LaterFormat(later));
    }
    Ok(match serde_json::from_value(value) {
        Ok(Line::Ledger(header)) if header.format == FORMAT => Ok(header),
        Ok(_) => Err("line 1: there is no such format".to_owned()),
        Err(error) => Err(format!("line 1: {error}")),
    })
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

/// Makes the checks on the sums and, if no count is published, an estimate of the total.
fn conclude_sums(
    report: &mut Report,
    book: &Book,
    plan: &Plan,
    last: &TotalLine,
    control: &Control,
) -> Result<(), Stopped> {
    // Those of plan cells are not sorted.
    let symmetric = plan.cells().is_none().then(|| symmetric_counts(plan.n(), control)).transpose()?;
    let (findings, outcome) = sums(book, plan, last, symmetric);
    report.findings.extend(findings);
    report.outcome = outcome;
    let Some(outcome) = outcome.filter(|outcome| outcome.checked != Checked::Published) else {
        return Ok(());
    };
    let estimate = estimate_total(plan.n(), plan.cells(), (SEED, STRATA), control)?;
    let interval = estimate.interval().describe_count();
    report.add(
        Check::Estimate,
        if estimate.holds(outcome.total) {
            CheckResult::Passed(format!(
                "the total is within six standard errors of one made here, {interval}"
            ))
        } else {
            CheckResult::Failed(format!(
                "the total is not within six standard errors of one made here, {interval}"
            ))
        },
    );
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
    let unsorted = || {
        CheckResult::NotMade(
            "the solutions of a board with blocked cells are not sorted into orbits".to_owned(),
        )
    };
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
        let (count2, count4) = (thousands(symmetric.count2()), thousands(symmetric.count4()));
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
        CheckResult::Passed(thousands(total))
    }
}
