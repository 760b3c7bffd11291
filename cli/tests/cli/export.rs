//! `nqueens export` and `nqueens status`: what they say of a run agrees with what others counted.

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;
use serde_json::json;

use crate::Place;

/// The rows of a table, under a first line of column names.
fn rows(csv: &str) -> (String, Vec<Vec<&str>>) {
    let mut lines = csv.lines();
    let head = lines.next().expect("a first line").to_owned();
    (head, lines.map(|line| line.split(',').collect()).collect())
}

fn number(text: &str) -> u128 {
    text.parse().expect("a number")
}

#[test]
fn bounds_are_those_of_another_program() {
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../kernel/data/bound_tables.csv"));
    let table = table.expect("the table");
    let (head, all) = rows(&table);
    let place = Place::new();
    for n in 6..=12 {
        place.stdout(&format!("run {n} --plan rows"));
        let exported = place.stdout(&format!("export --db nqueens-{n}.db --by bound1"));
        let (columns, mut found) = rows(&exported);
        assert_eq!(columns, head);
        let mut expected: Vec<_> = all.iter().filter(|row| row[1] == n.to_string()).cloned().collect();
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "N = {n}");
    }
}

#[test]
fn tables_without_rows_have_their_heading() {
    let place = Place::new();
    for plan in ["rows", "border"] {
        for n in 1..=4 {
            place.stdout(&format!("run {n} --plan {plan} --db {plan}-{n}.db"));
        }
        for by in ["job", "class", "bound1"] {
            let table = |n: u32| place.stdout(&format!("export --db {plan}-{n}.db --by {by}"));
            let (head, some) = (table(4), table(4).lines().count());
            assert!(some > 1, "{head}");
            for n in 1..=3 {
                assert_eq!(table(n).trim_end(), head.lines().next().expect("a line"), "N = {n} by {by}");
            }
        }
        // Who only reads leaves nothing behind.
        place.run(&format!("export --db {plan}-4.db --format ledger"));
        place.run(&format!("verify --db {plan}-4.db --sample 3"));
    }
    let databases = ["border", "rows"].map(|plan| [1, 2, 3, 4].map(|n| format!("{plan}-{n}.db")));
    assert_eq!(place.files().into_keys().collect::<Vec<_>>(), databases.concat());
}

#[test]
fn sums_by_job_class_and_bound_agree() {
    let place = Place::new();
    for (n, plan) in [(8, "rows"), (10, "border"), (11, "rows"), (5, "border")] {
        let db = format!("{n}.db");
        place.stdout(&format!("run {n} --plan {plan} --db {db} --job-states 100"));
        let known = published(BoardSize::new(n).expect("a board")).expect("published").orbits;
        for by in ["job", "class", "bound1"] {
            let csv = place.stdout(&format!("export --db {db} --by {by}"));
            let (head, rows) = rows(&csv);
            let columns: Vec<_> = head.split(',').collect();
            assert!(rows.iter().all(|row| row.len() == columns.len()), "{csv}");
            let sum = |name| {
                let at = columns.iter().position(|column| *column == name).expect("a column");
                rows.iter().map(|row| number(row[at])).sum::<u128>()
            };
            let sums = ["count2", "count4", "count8"].map(sum);
            assert_eq!(sums, [known.count2, known.count4, known.count8], "N = {n} {plan} by {by}");
        }
    }
}

#[test]
fn jobs_are_told_in_full() {
    let place = Place::new();
    place.stdout("run 6 --plan rows --kernel reference --threads 1");
    let csv = place.stdout("export --db nqueens-6.db");
    let timeless: Vec<_> = csv.lines().map(|line| line.rsplitn(3, ',').nth(2).expect("cells")).collect();
    assert_snapshot!(timeless.join("\n"), @r"
    job,class,n,bound1,bound2,prefixes,state,count2,count4,count8,solutions,kernel,worker_id,worker_name,states
    0,corner,6,2,,0-2,done,0,0,0,0,reference,1,this process,6
    1,corner,6,3,,0-3,done,0,0,0,0,reference,1,this process,3
    2,corner,6,4,,0-4,done,0,0,0,0,reference,1,this process,1
    3,edge,6,1,4,1,done,0,1,0,0,reference,1,this process,25
    4,edge,6,2,3,2,done,0,0,0,0,reference,1,this process,3
    ");
    // What a reader needs to add up core-hours.
    let times = csv.lines().skip(1).map(|line| number(line.rsplit(',').next().expect("measured")));
    let all = place.ask("nqueens-6.db", "SELECT sum(cpu_us) FROM result");
    assert_eq!(all, [times.sum::<u128>().to_string()]);
    assert_eq!(csv.lines().next().and_then(|head| head.rsplit(',').next()), Some("cpu_us"));
    assert_snapshot!(place.stdout("export --db nqueens-6.db --by class"), @r"
    class,n,count2,count4,count8
    corner,6,0,0,0
    edge,6,0,1,0
    ");
}

#[test]
fn colours_have_solutions_instead_of_orbits() {
    let place = Place::new();
    place.stdout("run 8 --plan colours --threads 1 --job-states 5");
    let csv = place.stdout("export --db nqueens-8.db");
    let (head, jobs) = rows(&csv);
    assert!(
        head.starts_with("job,class,n,bound1,bound2,prefixes,state,count2,count4,count8,solutions,kernel")
    );
    assert!(jobs.len() > 1);
    let mut next = 0;
    for job in &jobs {
        assert_eq!(
            [job[1], job[3], job[4], job[6], job[7], job[8], job[9]],
            ["colours", "0", "", "done", "0", "0", "0"]
        );
        let (first, last) = job[5].split_once("..").expect("a range");
        assert_eq!(number(first), next, "each row set belongs to one job");
        next = number(last) + 1;
    }
    assert_eq!(next, 25);
    assert_eq!(jobs.iter().map(|job| number(job[10])).sum::<u128>(), 92);
    assert_eq!(
        place.stdout("export --db nqueens-8.db --by class"),
        "class,n,count2,count4,count8,solutions\ncolours,8,0,0,0,92\n"
    );
    let said = place.failure("export --db nqueens-8.db --by bound1");
    let why = "a job of plan colours counts boards with the first row's queen in any column";
    assert!(said.starts_with(why), "{said}");
    assert!(said.ends_with("or count N = 8 with --plan rows or --plan border"), "{said}");
}

#[test]
fn a_run_is_named_where_there_are_several() {
    let place = Place::new();
    let mut run = place.json("run 6 --json --db both.db")["run"].as_str().expect("a name").to_owned();
    assert_eq!(place.stdout(&format!("export {run} --db both.db")), place.stdout("export --db both.db"));
    // Names are hexadecimal numbers; another one is another run.
    let last = if run.pop() == Some('0') { '1' } else { '0' };
    run.push(last);
    assert_eq!(
        place.failure(&format!("export {run} --db both.db")),
        format!("there is no run {run} here; 'nqueens status' lists the runs")
    );
    place.sql(
        "both.db",
        "INSERT INTO run (id, n, plan, states_per_job, jobs, fingerprint, seed, state, created_at)
             VALUES (7, 9, 'rows', 1, 0, zeroblob(32), 1, 'paused', 1)",
    );
    assert_snapshot!(place.failure("export --db both.db"), @"there are 2 runs in this database; name one of those listed by 'nqueens status'");
}

#[test]
fn status_of_a_finished_run() {
    let place = Place::new();
    let result = place.json("run 8 --json --plan rows");
    let mut status = place.json("status --db nqueens-8.db --json");
    let run = &mut status["runs"][0];
    let [created, started, finished] =
        ["created_at_ms", "started_at_ms", "finished_at_ms"].map(|name| run[name].as_u64().expect("a time"));
    assert!(1_600_000_000_000 < created && created <= started && started <= finished);
    let fingerprint = run["fingerprint"].take();
    assert_eq!(fingerprint.as_str().expect("text").len(), 64);
    for states in ["states", "estimated_states"] {
        assert_ne!(run[states].take().as_str().expect("decimal").parse(), Ok(0_u128));
    }
    let expected = json!({"runs": [{
        "run": result["run"], "n": 8, "subject": "N = 8", "cells": null, "plan": "rows", "state": "done", "priority": 0,
        "recounts": { "agreed": 0, "differing": 0, "parts": 8, "share_found": 1.0, "elapsed_us": 0 },
        "replicate": 0.0, "replicate_ppm": 0, "checks": { "open": 0, "agreed": 0, "settled": 0, "unmade": 0, "confirmed": 0, "recounted": 0 },
        "jobs": 8, "planned": null, "done": 8, "leased": 0, "quarantined": 0, "share": 1.0, "states": null,
        "estimated_states": null, "estimated_total": null, "states_per_job": 500_000,
        "time_left_s": null, "busy_workers": null, "fingerprint": null, "total": "92", "count2": "0", "count4": "1",
        "count8": "11", "unique": "12", "check": "published", "confirmed": true,
        "standing": "equal to the published count",
        "missing": [], "estimate": null, "reason": null, "created_at_ms": created, "started_at_ms": started,
        "finished_at_ms": finished,
    }]});
    assert_eq!(status, expected);
    let table = place.stdout("status --db nqueens-8.db");
    let name = result["run"].as_str().expect("a name");
    assert_snapshot!(table.replace(name, "RUNRUNRUNRUN"), @r"
    RUN           N  PLAN  STATE         JOBS DONE  TIME LEFT  TOTAL
    RUNRUNRUNRUN  8  rows  done   8 of 8 (100.0 %)          -  92
    ");
}

#[test]
fn the_same_plan_has_the_same_jobs_everywhere() {
    let [one, two] = [Place::new(), Place::new()].map(|place| {
        place.stdout("run 9 --job-states 30 --threads 2");
        let fingerprint = place.json("status --db nqueens-9.db --json")["runs"][0]["fingerprint"].take();
        let jobs = place.stdout("export --db nqueens-9.db");
        let (_, jobs) = rows(&jobs);
        // But for who counted, and in what time.
        let cells = jobs.iter().map(|job| [&job[..6], &job[7..10]].concat().join(","));
        (fingerprint, cells.collect::<Vec<_>>())
    });
    assert_eq!(one, two);
}
