//! Counts, work and totals that were changed, under a chain that fits.

use serde_json::{Value, json};

use super::{BORDER, COLOURS, Ledger, ROWS, add};

#[test]
fn a_count_that_is_off_by_one() {
    let off = |lines: &mut Vec<Value>| add(&mut lines[1]["result"]["counts"]["count8"], 1);
    assert_eq!(
        Ledger::faults(BORDER, off),
        [
            "workers the results of worker 1 have other sums than its line says",
            "sums the sums over the jobs differ from the last line",
            "published the total 100 differs from the published count 92"
        ]
    );
    // A liar who thinks of the sums and the total too.
    let consistent = |lines: &mut Vec<Value>| {
        off(lines);
        add(&mut lines[0]["total"], 8);
        let [.., worker, last] = &mut lines[..] else { panic!("lines") };
        add(&mut worker["counts"]["count8"], 1);
        add(&mut last["counts"]["count8"], 1);
        add(&mut last["orbits"]["count8"], 1);
        add(&mut last["total"], 8);
    };
    assert_eq!(
        Ledger::faults(BORDER, consistent),
        ["published the total 100 differs from the published count 92"]
    );
    assert_eq!(
        Ledger::faults(COLOURS, |lines| add(&mut lines[1]["result"]["counts"]["solutions"], 1)),
        [
            "workers the results of worker 1 have other sums than its line says",
            "sums the sums over the jobs differ from the last line",
            "orbits 93 solutions less the symmetric ones, COUNT2 = 0 and COUNT4 = 1, are no multiple of 8"
        ]
    );
    let symmetric = |lines: &mut Vec<Value>| {
        let job = lines
            .iter_mut()
            .find(|line| line["result"]["counts"]["count4"] == "1")
            .expect("the symmetric orbit");
        add(&mut job["result"]["counts"]["count4"], -1);
    };
    assert_eq!(
        Ledger::faults(ROWS, symmetric),
        [
            "workers the results of worker 1 have other sums than its line says",
            "sums the sums over the jobs differ from the last line",
            "symmetric COUNT2 = 0 and COUNT4 = 0 differ from the separately counted symmetric solutions, 0 and 1"
        ]
    );
}

#[test]
fn results_of_two_jobs_that_were_swapped() {
    let mut places = (0, 0);
    let swap = |lines: &mut Vec<Value>| {
        let count = |line: &Value| line["result"]["counts"]["solutions"].clone();
        let other =
            (2..lines.len()).find(|&at| count(&lines[at]) != count(&lines[1])).expect("another count");
        let (one, two) = lines.split_at_mut(other);
        std::mem::swap(&mut one[1]["result"], &mut two[0]["result"]);
        places = (0, other - 1);
    };
    let faults = Ledger::faults_with(COLOURS, swap, "--sample 1000 --threads 1");
    // The file alone gives no hint: only who counts again finds it.
    assert_eq!(faults.len(), 3, "{faults:?}");
    for job in [places.0, places.1] {
        let wanted = format!("job {job} worker 1 (this process) counted ");
        assert!(faults.iter().any(|fault| fault.starts_with(&wanted)), "{faults:?}");
    }
    assert!(faults[2].starts_with("sample 2 of 6 recounted jobs differ (seed "), "{faults:?}");
}

/// Between jobs of two workers their own sums change.
#[test]
fn results_of_two_workers_that_were_swapped() {
    let two_workers = |lines: &mut Vec<Value>| {
        let jobs = lines.iter_mut().filter(|line| line["line"] == "job");
        let mut sums = [[0_u64; 2]; 2];
        for (at, job) in jobs.enumerate() {
            job["result"]["worker"] = json!(1 + at % 2);
            let count8: u64 =
                job["result"]["counts"]["count8"].as_str().expect("text").parse().expect("a number");
            sums[at % 2] = [sums[at % 2][0] + 1, sums[at % 2][1] + count8];
        }
        let first = lines.iter().position(|line| line["line"] == "worker").expect("a worker");
        lines.insert(first + 1, lines[first].clone());
        for (worker, [jobs, count8]) in sums.into_iter().enumerate() {
            let line = &mut lines[first + worker];
            (line["worker"], line["jobs"]) = (json!(1 + worker), json!(jobs));
            line["counts"]["count8"] = json!(count8.to_string());
            line["counts"]["count4"] = json!("0");
        }
        let symmetric =
            lines.iter().find(|line| line["line"] == "job" && line["result"]["counts"]["count4"] == "1");
        let holder = symmetric.expect("the symmetric orbit")["result"]["worker"].as_u64().expect("a number");
        lines[first - 1 + usize::try_from(holder).expect("1 or 2")]["counts"]["count4"] = json!("1");
    };
    assert_eq!(Ledger::faults(ROWS, two_workers), [""; 0]);
    let moved = Ledger::faults(ROWS, |lines| {
        two_workers(lines);
        let count =
            |at: usize, lines: &[Value]| lines[at]["result"]["counts"]["count8"].as_str().map(str::to_owned);
        let from = (1..9).find(|&at| count(at, lines).is_some_and(|count| count != "0")).expect("an orbit");
        let to = (1..9)
            .find(|&at| lines[at]["result"]["worker"] != lines[from]["result"]["worker"])
            .expect("another's job");
        add(&mut lines[from]["result"]["counts"]["count8"], -1);
        add(&mut lines[to]["result"]["counts"]["count8"], 1);
    });
    let sums = "workers the results of worker 1 have other sums than its line says; and 1 more";
    assert!(moved.contains(&sums.to_owned()), "{moved:?}");
}

#[test]
fn work_that_nobody_can_have_done() {
    let work = |damage: fn(&mut Vec<Value>)| Ledger::faults(ROWS, damage);
    assert_eq!(
        work(|lines| lines[2]["result"]["states"] = json!("0")),
        ["work job 1 was counted without visiting any state"]
    );
    let outside = ["work the result of job 1 did not come in the time of the run"];
    assert_eq!(work(|lines| lines[2]["result"]["reported_at_ms"] = json!(1)), outside);
    assert_eq!(work(|lines| lines[2]["result"]["reported_at_ms"] = json!(9_000_000_000_000_u64)), outside);
    assert_eq!(
        work(|lines| lines[2]["result"]["elapsed_us"] = json!("3600000000")),
        ["work worker 1 counted for longer than its threads can in the time of the run"]
    );
}

#[test]
fn a_count_that_no_job_can_have() {
    let faults = Ledger::faults(ROWS, |lines| add(&mut lines[2]["result"]["counts"]["count8"], 1 << 32));
    assert!(faults[0].starts_with("bounds job 1 has COUNT8 = 429496729"), "{faults:?}");
    assert!(faults[0].contains(", more than the possible COUNT8 = "), "{faults:?}");
    let mixed = Ledger::faults(ROWS, |lines| lines[1]["result"]["counts"]["solutions"] = json!("8"));
    assert!(mixed[0].starts_with("bounds job 0 has solutions = 8, more than the possible "), "{mixed:?}");
    assert_eq!(mixed[3], "orbits some jobs found orbits and others plain solutions");
}

#[test]
fn totals_and_workers_that_are_made_up() {
    let first = Ledger::faults(ROWS, |lines| lines[0]["total"] = json!("93"));
    assert_eq!(first, ["total the first line's total 93 differs from that of the jobs, 92"]);
    let last = Ledger::faults(ROWS, |lines| lines.last_mut().expect("lines")["total"] = json!("93"));
    assert_eq!(last, ["total the last line's total 93 differs from that of the jobs, 92"]);
    let orbits =
        Ledger::faults(ROWS, |lines| add(&mut lines.last_mut().expect("lines")["orbits"]["count8"], 1));
    assert_eq!(orbits, ["total the last line's orbits differ from those of the jobs"]);
    let unknown = Ledger::faults(ROWS, |lines| lines[2]["result"]["worker"] = json!(7));
    assert_eq!(unknown, ["workers worker 1 has 7 results, not 8; and 1 more"]);
    let unlisted = Ledger::faults(ROWS, |lines| lines.retain(|line| line["line"] != "worker"));
    assert_eq!(unlisted, ["workers worker 1 has results and is not listed"]);
    let mut ledger = Ledger::of(ROWS);
    ledger.lines[9]["name"] = json!("\u{1b}[2J");
    add(&mut ledger.lines[1]["result"]["counts"]["count8"], 1);
    let said = ledger.verify_text(&ledger.sealed(), "--sample 8").stdout;
    assert!(said.contains("FAILED  job 0        worker 1 (\u{fffd}[2J) counted "), "{said}");
    let twice = Ledger::faults(ROWS, |lines| lines.insert(9, lines[9].clone()));
    assert_eq!(twice, ["workers worker 1 is listed twice"]);
}
