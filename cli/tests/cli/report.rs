//! `nqueens report`: what it tells of runs in every state, and that nothing in a run gets the better of the page.

use insta::assert_snapshot;
use serde_json::Value;

use crate::processes::Coordinator;
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
    UPDATE run SET state = 'active', total = NULL, count2 = NULL, count4 = NULL, count8 = NULL, checked = NULL,
                   finished_at = NULL;
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
fn a_finished_run_in_short() {
    let place = counted();
    let short = report(&place, "");
    assert_eq!((short.code, &*short.stderr), (0, ""));
    for told in [" +00:00 |", "| chain | ok | the last hash is ", "| this process | reference | 1 | 1 | 8 | "]
    {
        assert!(short.stdout.contains(told), "{told}: {}", short.stdout);
    }
    assert_snapshot!(timeless(&place, &short.stdout), @r"
    ## N = 8: 92 solutions

    The run is done. The total is equal to the published count.

    ### Figures

    |  |  |
    |---|---|
    | COUNT2 | 0 |
    | COUNT4 | 1 |
    | COUNT8 | 11 |
    | UNIQUE | 12 |
    | TOTAL | 92 |
    | Run | RUN |
    | Plan | rows, 8 jobs of about 500,000 states each |
    | Fingerprint | 8c5430ddbbf7922ad8e318b42018f64035aa7cabcbbba45ffced527c007ae11d |
    | Visited states | 504 |

    ### Checks

    | Check | Outcome | What was found |
    |---|---|---|
    | form | ok | 11 lines of format 1 |
    | jobs | ok | 8, each once and in order |
    | plan | ok | computed again for N = 8, plan rows, 500000 states per job: the same jobs |
    | fingerprint | ok | 8c5430ddbbf7922ad8e318b42018f64035aa7cabcbbba45ffced527c007ae11d |
    | bounds | ok | no job has more solutions than possible |
    | workers | ok | each result is from one of the 1 listed workers |
    | work | ok | times and states are plausible |
    | others | ok | none was voided |
    | sums | ok | the sums over the jobs equal the last line |
    | orbits | ok | every job counted orbits |
    | symmetric | ok | COUNT2 = 0 and COUNT4 = 1, equal to the separate symmetric search |
    | published | ok | the total equals the published count |
    | total | ok | 92 |

    To verify it:

    ```sh
    # writes the whole run to one file that everyone can check
    nqueens export RUN --db eight.db --format ledger --output nqueens-8.ledger
    # repeats the checks above from the file alone, and recounts 300 jobs
    nqueens verify nqueens-8.ledger --sample 300
    # computes the same total with another program
    python3 docs/recompute.py nqueens-8.ledger
    # recounts 300 jobs by another search
    nqueens verify RUN --db eight.db --sample 300
    # counts the board again; --plan and --kernel select other methods
    nqueens run 8 --db nqueens-8-again.db
    ```
    ");
    // The hash that stands in the report is that of the ledger which is exported.
    let exported = place.run("export --db eight.db --format ledger");
    let hash = exported.stderr.trim_end().rsplit(' ').next().expect("a hash").to_owned();
    assert!(short.stdout.contains(&hash), "{hash}: {}", short.stdout);
}

#[test]
fn a_finished_run_as_a_page() {
    let place = counted();
    let page = report(&place, "--html");
    assert_eq!((page.code, &*page.stderr), (0, ""));
    let data = data(&page.stdout);
    assert_eq!(data["report"]["title"], "N = 8: 92 solutions");
    assert_eq!(data["report"]["reputation"], "The run is done. The total is equal to the published count.");
    let text = data["report"].to_string();
    for told in [
        "the total equals the published count",
        "reference",
        "this process",
        "nqueens verify nqueens-8.ledger --sample 300",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert_eq!(
        (&data["picture"]["runs"][0]["total"], &data["detail"]["map"]["cells"]),
        (&"92".into(), &"44444444".into())
    );
}

#[test]
fn runs_without_a_total_say_so() {
    let place = counted();
    place.sql("eight.db", UNFINISHED);
    let short = report(&place, "");
    assert_eq!((short.code, &*short.stderr), (0, ""));
    assert_snapshot!(timeless(&place, &short.stdout), @r"
    ## N = 8: no total

    The run is not done. 7 of 8 jobs are done, 92.5 % of the work; there is no total.

    ### Figures

    |  |  |
    |---|---|
    | Run | RUN |
    | Plan | rows, 8 jobs of about 500,000 states each |
    | Fingerprint | 8c5430ddbbf7922ad8e318b42018f64035aa7cabcbbba45ffced527c007ae11d |
    | Results | 8; 7 stand |
    | Results that do not stand | 1 withdrawn after they were accepted |
    | Visited states | 466 |

    To verify it:

    ```sh
    # recounts 300 jobs by another search
    nqueens verify RUN --db eight.db --sample 300
    ```
    ");
    let other_states = [
        ("state = 'paused'", 0, "The run is paused. 7 of 8 jobs are done"),
        ("state = 'cancelled'", 0, "The run is cancelled. 7 of 8 jobs are done"),
        (
            "state = 'failed', reason = 'one <of> the checks'",
            1,
            "The run failed and has no total: one <of> the checks.",
        ),
    ];
    for (change, code, told) in other_states {
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
fn a_run_without_results_has_a_page() {
    let place = Place::new();
    place.stdout("run 3 --db eight.db");
    let page = report(&place, "--html");
    assert_eq!(page.code, 0, "{}", page.stderr);
    assert!(told(&page.stdout).contains("N = 3: 0 solutions"));
}

#[test]
fn what_went_wrong_and_was_mended_is_told() {
    let place = Place::new();
    place.stdout("run 10 --plan rows --threads 1 --kernel reference --db eight.db --job-states 500");
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
    let output = place.command("report --db").arg("my runs/eight.db").output().expect("it runs");
    let text = String::from_utf8(output.stdout).expect("text");
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
fn a_report_is_written_while_a_coordinator_serves() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let url = coordinator.url();
    let run = place.stdout(&format!("submit 11 --plan rows --job-states 2000 --coordinator {url}"));
    let report = || told(&place.stdout(&format!("report {run} --db queens.db --html")));
    let before = report();
    assert!(before.contains("The run is not done. 0 of ") && before.contains("N = 11: no total"), "{before}");
    let worker = coordinator.worker(&place, "west", &[]);
    place.stdout(&format!("watch {run} --interval 0.2 --coordinator {url}"));
    let after = report();
    for told in ["N = 11: 2,680 solutions", "equal to the published count", "west", "scalar"] {
        assert!(after.contains(told), "{told}: {after}");
    }
    drop(worker);
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn names_from_anywhere_stay_text() {
    let place = counted();
    let hostile = "</td><script>alert(1)</script><b onclick=\"x\">'&amp;|`";
    place.sql(
        "eight.db",
        &format!(
            "UPDATE worker SET name = '{}' || char(7, 27), build = '<img src=x>'",
            hostile.replace('\'', "''")
        ),
    );
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
    place.sql("eight.db", "UPDATE run SET count8 = '12', total = '100'");
    let failed = report(&place, "--output lost.html");
    assert_eq!((failed.code, &*failed.stdout), (1, ""));
    assert!(
        failed.stderr.contains("the database is damaged: the total 100 differs from the published count 92"),
        "{}",
        failed.stderr
    );
    assert!(!place.path("lost.html").exists());
}

#[test]
fn a_file_is_replaced_only_if_asked() {
    let place = counted().with_file("there.html", "mine, and longer than nothing");
    assert_snapshot!(place.failure("report --db eight.db --html --output there.html"), @"there.html exists already; choose another name, or give --force to replace it");
    assert_eq!(place.files()["there.html"], b"mine, and longer than nothing");
    assert_eq!(place.stdout("report --db eight.db --html --output there.html --force"), "");
    assert_eq!(place.stdout("report --db eight.db --html --output new.html --force"), "");
    for name in ["there.html", "new.html"] {
        data(&String::from_utf8(place.files()[name].clone()).expect("text"));
    }
    assert_snapshot!(place.failure("report --db eight.db --html --output none/new.html"), @"none/new.html: No such file or directory (os error 2)");
}

#[test]
fn what_is_wrong_with_an_argument() {
    let place = counted();
    for (arguments, code, said) in [
        ("--force", 2, "the following required arguments were not provided"),
        ("000000000007", 1, "there is no run 000000000007 here"),
    ] {
        let outcome = report(&place, arguments);
        assert_eq!((outcome.code, &*outcome.stdout), (code, ""), "{arguments}");
        assert!(outcome.stderr.contains(said), "{arguments}: {}", outcome.stderr);
    }
    assert!(place.failure("report --db none.db").contains("none.db"));
}
