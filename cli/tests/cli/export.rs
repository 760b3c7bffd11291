//! `nqueens export` and `nqueens status`: what they say of a run agrees with what others counted.

use insta::assert_snapshot;
use nqueens_kernel::board::BoardSize;
use nqueens_kernel::known::published;

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
        for n in 1..=4 {
            let verdict = place.stdout(&format!("verify --db {plan}-{n}.db --sample 3"));
            assert!(verdict.contains("BELIEVABLE"), "{verdict}");
        }
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
    let classes = place.session("export --db nqueens-6.db --by class");
    assert_snapshot!(timeless.join("\n") + "\n\n" + &classes);
    // What a reader needs to add up core-hours.
    let times = csv.lines().skip(1).map(|line| number(line.rsplit(',').next().expect("measured")));
    let all = place.ask("nqueens-6.db", "SELECT sum(cpu_us) FROM result");
    assert_eq!(all, [times.sum::<u128>().to_string()]);
    assert_eq!(csv.lines().next().and_then(|head| head.rsplit(',').next()), Some("cpu_us"));
}

#[test]
fn colours_have_solutions_instead_of_orbits() {
    let place = Place::new();
    place.stdout("run 8 --plan colours --threads 1 --job-states 5");
    let csv = place.stdout("export --db nqueens-8.db");
    let (_, jobs) = rows(&csv);
    assert!(jobs.len() > 1);
    let mut next = 0;
    for job in &jobs {
        let cells = [job[1], job[3], job[4], job[6], job[7], job[8], job[9]];
        assert_eq!(cells, ["colours", "0", "", "done", "0", "0", "0"]);
        let (first, last) = job[5].split_once("..").expect("a range");
        assert_eq!(number(first), next, "each row set belongs to one job");
        next = number(last) + 1;
    }
    assert_eq!((next, jobs.iter().map(|job| number(job[10])).sum::<u128>()), (25, 92));
    assert_snapshot!(place.session(
        "export --db nqueens-8.db --by class
        export --db nqueens-8.db --by bound1"
    ));
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
    let another = "INSERT INTO run (id, n, plan, states_per_job, jobs, fingerprint, seed, state, created_at)
                   VALUES (7, 9, 'rows', 1, 0, zeroblob(32), 1, 'paused', 1)";
    place.sql("both.db", another);
    let which = "there are 2 runs in this database; name one of those listed by 'nqueens status'";
    assert_eq!(place.failure("export --db both.db"), which);
}

#[test]
fn status_of_a_finished_run() {
    let place = Place::new();
    place.stdout("run 8 --plan rows");
    let mut status = place.json("status --db nqueens-8.db --json")["runs"][0].take();
    let table = place
        .stdout("status --db nqueens-8.db")
        .replace(status["run"].as_str().expect("a name"), "RUNRUNRUNRUN");
    let times = ["created_at_ms", "started_at_ms", "finished_at_ms"]
        .map(|name| status[name].as_u64().expect("a time"));
    assert!(1_600_000_000_000 < times[0] && times.is_sorted());
    for changing in [
        "run",
        "created_at_ms",
        "started_at_ms",
        "finished_at_ms",
        "fingerprint",
        "states",
        "estimated_states",
    ] {
        assert!(!status[changing].take().is_null(), "{changing}");
    }
    assert_snapshot!(format!("{table}\n{status:#}"));
}
