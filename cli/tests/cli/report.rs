//! `nqueens report`: what it tells of runs in every state, and that nothing in a run gets the better of the page.

use insta::assert_snapshot;
use serde_json::Value;

use crate::{NQUEENS, Outcome, Place};

/// What one board's run left, counted by one thread so that all of it but times is the same again.
fn counted() -> Place {
    let place = Place::new();
    place.stdout("run 8 --plan rows --threads 1 --kernel reference --db eight.db");
    place
}

fn report(place: &Place, arguments: &str) -> Outcome {
    place.run_with(&[("TZ", "UTC")], &format!("report --db eight.db {arguments}"))
}

/// Takes its total, and its first job's result, away from the run.
const UNFINISHED: &str = "
    UPDATE run SET state = 'active', outcome = NULL, finished_at = NULL;
    UPDATE result SET verdict = 'voided' WHERE job = 0;
    UPDATE job SET state = 0 WHERE number = 0;";

/// The report's text, with the run's name and what is told of times left out.
fn timeless(place: &Place, text: &str) -> String {
    let run =
        place.json("status --db eight.db --json")["runs"][0]["run"].as_str().expect("a name").to_owned();
    let timed = ["Submitted", "Finished", "Started", "Time", "Core-hours", "States/s", "Programs", "chain"];
    let kept = |line: &&str| !timed.iter().any(|name| line.starts_with(&format!("| {name}")));
    let text = text.replace(&run, "RUN");
    // These tables have times in each row.
    let (before, rest) = text.split_once("### Machines").expect("machines");
    let (_, after) = rest.split_once("To verify it:").expect("commands");
    let text = format!("{before}To verify it:{after}");
    text.lines().filter(kept).collect::<Vec<_>>().join("\n")
}

/// What is in a page, which has to be whole and to need nothing but itself.
fn data(page: &str) -> Value {
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{page}");
    let (before, rest) = page.split_once("<script id=\"data\" type=\"application/json\">").expect("data");
    let (data, after) = rest.split_once("</script>").expect("its end");
    assert!(!data.contains('<'), "nothing in it ends it: {data}");
    assert_eq!((before.matches("<script").count(), after.matches("<script").count()), (0, 1));
    for outside in [" src=", "href=\"/style", "import ", "url(", "@import"] {
        assert!(!before.contains(outside) && !after.contains(outside), "{outside}: {page}");
    }
    assert_eq!(after.matches("://").count(), 1, "the name of SVG");
    assert!(before.contains("<html lang=\"en\">") && before.contains("default-src 'none'"), "{before}");
    serde_json::from_str(data).expect("JSON")
}

/// The report in a page.
fn told(page: &str) -> String {
    data(page)["report"].to_string()
}

#[test]
fn a_finished_run_in_text_and_as_a_page() {
    let place = counted();
    let short = report(&place, "");
    assert_eq!((short.code, &*short.stderr), (0, ""));
    for told in [" +00:00 |", "| chain | ok | the last hash is ", "| this process | reference | 1 | 1 | 8 | "]
    {
        assert!(short.stdout.contains(told), "{told}: {}", short.stdout);
    }
    assert_snapshot!(timeless(&place, &short.stdout));
    // The hash that stands in the report is that of the ledger which is exported.
    let exported = place.run("export --db eight.db --format ledger");
    let hash = exported.stderr.trim_end().rsplit(' ').next().expect("a hash").to_owned();
    assert!(short.stdout.contains(&hash), "{hash}: {}", short.stdout);

    let page = report(&place, "--html");
    assert_eq!((page.code, &*page.stderr), (0, ""));
    let data = data(&page.stdout);
    assert_eq!(data["report"]["title"], "N = 8: 92 solutions");
    assert_eq!(data["report"]["reputation"], "The run is done. The total is equal to the published count.");
    let (run, detail) = (&data["picture"]["runs"][0], &data["detail"]);
    assert_eq!((&run["total"], &detail["map"]["cells"]), (&"92".into(), &"44444444".into()));
    // A board without jobs has a page, too.
    place.stdout("run 3 --db three.db");
    assert!(told(&place.stdout("report --db three.db --html")).contains("N = 3: 0 solutions"));
}

#[test]
fn runs_without_a_total_say_so() {
    let place = counted();
    place.sql("eight.db", UNFINISHED);
    let short = report(&place, "");
    assert_eq!((short.code, &*short.stderr), (0, ""));
    assert_snapshot!(timeless(&place, &short.stdout));
    for (change, code, told) in [
        ("state = 'paused'", 0, "The run is paused. 7 of 8 jobs are done"),
        ("state = 'cancelled'", 0, "The run is cancelled. 7 of 8 jobs are done"),
        ("state = 'failed', reason = 'a <check>'", 1, "The run failed and has no total: a <check>."),
    ] {
        place.sql("eight.db", &format!("UPDATE run SET {change}"));
        let page = report(&place, "--html");
        assert_eq!(page.code, code, "{change}: {}", page.stderr);
        let data = data(&page.stdout);
        let text = data["report"].to_string();
        assert!(text.contains("N = 8: no total") && text.contains(told), "{told}: {text}");
        assert!(!text.contains("TOTAL") && data["picture"]["runs"][0]["total"].is_null(), "{data}");
    }
}

#[test]
fn what_went_wrong_and_was_mended_is_told() {
    let place = counted();
    place.sql(
        "eight.db",
        "INSERT INTO result (run, job, epoch, worker, kernel, count2, count4, count8, solutions, states,
                             elapsed_us, cpu_us, verdict, reported_at)
         SELECT run, job, epoch, worker, 'reference', 9, 9, 9, 0, states, elapsed_us, cpu_us, wrong.verdict,
                reported_at
         FROM result, (SELECT 'conflict' AS verdict UNION ALL SELECT 'conflict') AS wrong
         WHERE job = 1 AND result.verdict = 'accepted'",
    );
    let told = "| Results that do not stand | 2 that differed from another result |";
    assert!(report(&place, "").stdout.contains(told));
    // A job that waits for an operator.
    place.sql("eight.db", UNFINISHED);
    place.sql("eight.db", "UPDATE job SET state = 3 WHERE number = 0");
    let page = report(&place, "");
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(page.stdout.contains("| Jobs in quarantine | 1; they need an operator |"));
}

#[test]
fn commands_name_the_files() {
    let place = counted();
    std::fs::create_dir(place.path("my runs")).expect("a folder");
    std::fs::rename(place.path("eight.db"), place.path("my runs/eight.db")).expect("moved");
    let text = Outcome::of(place.command("report --db").arg("my runs/eight.db")).stdout;
    let commands: Vec<_> = text.lines().filter(|line| line.starts_with("nqueens ")).collect();
    assert_eq!(commands.len(), 4, "{text}");
    for command in commands.iter().take(3) {
        let mut shell = place.program("sh");
        shell.args(["-c", &command.replacen("nqueens", "\"$0\"", 1), NQUEENS]);
        let outcome = Outcome::of(&mut shell);
        assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
    }
    assert!(place.path("nqueens-8.ledger").exists());
}

#[test]
fn names_from_anywhere_stay_text() {
    let place = counted();
    let hostile = "</td><script>alert(1)</script><b onclick=\"x\">''&amp;|`";
    let rename = format!("UPDATE worker SET name = '{hostile}' || char(7, 27), build = '<img src=x>'");
    place.sql("eight.db", &rename);
    let data = data(&report(&place, "--html").stdout);
    let machines = data["report"]["tables"][2]["rows"].to_string();
    assert!(machines.contains("</td><script>alert(1)</script>"), "{machines}");
    let short = report(&place, "").stdout;
    assert!(short.contains(r"| Programs | \<img src=x\> |"), "{short}");
}

#[test]
fn a_check_that_fails_is_told() {
    let place = counted();
    place.sql("eight.db", "UPDATE job SET bound1 = 5 WHERE number = 0");
    let page = report(&place, "--html");
    assert_eq!((page.code, &*page.stderr), (1, ""));
    let text = told(&page.stdout);
    assert!(text.contains("Do not trust this total: a check failed.") && text.contains("FAILED"));
    // Of a total that is not that of its run there is no report at all.
    place.sql("eight.db", "UPDATE run SET outcome = json_set(outcome, '$.count8', '12', '$.total', '100')");
    let why = "the database is damaged: the total 100 differs from the published count 92";
    let said = place.failure("report --db eight.db --output lost.html");
    assert!(said.starts_with(why) && !place.path("lost.html").exists(), "{said}");
}

#[test]
fn a_file_is_replaced_only_if_asked() {
    let place = counted().with_file("there.html", "mine, and longer than nothing");
    let exists = "there.html exists already; choose another name, or give --force to replace it";
    assert_eq!(place.failure("report --db eight.db --html --output there.html"), exists);
    assert_eq!(place.files()["there.html"], b"mine, and longer than nothing");
    for name in ["there.html", "new.html"] {
        assert_eq!(place.stdout(&format!("report --db eight.db --html --output {name} --force")), "");
        data(&String::from_utf8(place.files()[name].clone()).expect("text"));
    }
    let nowhere = "none/new.html: No such file or directory (os error 2)";
    assert_eq!(place.failure("report --db eight.db --html --output none/new.html"), nowhere);
    let unknown = place.failure("report 000000000007 --db eight.db");
    assert!(unknown.starts_with("there is no run 000000000007 here"), "{unknown}");
}
