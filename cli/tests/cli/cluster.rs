//! A coordinator, its operators and its workers, as processes.

use std::io::{BufRead, Read};
use std::process::Command;

use serde_json::Value;

use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, ended, eventually};
use crate::{NQUEENS, Outcome, Place};

fn runs(place: &Place, url: &str) -> Vec<Value> {
    let status = place.json(&format!("status --coordinator {url} --json"));
    status["runs"].as_array().expect("a list").clone()
}

#[test]
fn a_worker_s_name_comes_without_the_spaces_around_it() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let mut command = place.command(&format!("worker --coordinator {} --threads 1", coordinator.url()));
    let mut worker = Background::start(command.args(["--name", " node 7\t"]));
    let name = eventually("it has registered", || {
        let workers = place.json(&format!("workers --json --coordinator {}", coordinator.url()));
        workers["workers"][0]["name"].as_str().map(str::to_owned)
    });
    assert_eq!(name, "node 7");
    worker.signal("-TERM");
    assert_eq!(worker.end().code, 0);
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn two_runs_at_once_are_counted_by_two_workers() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let url = coordinator.url();
    assert!(runs(&place, &url).is_empty());
    let submit = |arguments: &str| {
        let id = place.stdout(&format!("submit {arguments} --coordinator {url}")).trim_end().to_owned();
        assert_eq!(id.len(), 12, "{id}");
        id
    };
    let ten = submit("10 --plan rows --job-states 2000");
    let eleven = submit("11 --plan border --priority 3");
    let workers = [coordinator.worker(&place, "west", &[]), coordinator.worker(&place, "east", &[])];
    let watched = place.stdout(&format!("watch all --interval 0.2 --coordinator {url}"));
    let last: Vec<_> = watched.lines().rev().take(2).collect();
    let done = |id: &str, n: u32, total: &str| {
        let line = format!("{id}  N = {n}: done, TOTAL {total}, equal to the published count");
        assert!(last.contains(&&*line), "{watched}");
    };
    done(&ten, 10, "724");
    done(&eleven, 11, "2,680");
    let online = runs(&place, &url);
    assert_eq!(online.len(), 2);
    let of = |id: &str| online.iter().find(|run| run["run"] == id).expect("listed");
    let facts = |run: &Value| {
        [&run["n"], &run["plan"], &run["state"], &run["total"], &run["priority"]].map(Value::to_string)
    };
    assert_eq!(facts(of(&ten)), ["10", "\"rows\"", "\"done\"", "\"724\"", "0"]);
    assert_eq!(facts(of(&eleven)), ["11", "\"border\"", "\"done\"", "\"2680\"", "3"]);
    let one = place.json(&format!("status {ten} --coordinator {url} --json"));
    assert_eq!(&one["runs"][0], of(&ten));
    let again = place.stdout(&format!("watch {ten} --json --coordinator {url}"));
    assert_eq!(&serde_json::from_str::<Value>(&again).expect("JSON"), of(&ten));

    let workers_listed = place.json(&format!("workers --json --coordinator {url}"));
    let listed = workers_listed["workers"].as_array().expect("a list");
    let mut names: Vec<_> = listed.iter().map(|worker| worker["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["east", "west"]);
    for worker in listed {
        let said = place.stdout(&format!("workers --drain {} --coordinator {url}", worker["id"]));
        assert_eq!(said, format!("worker {} is draining\n", worker["id"]));
    }
    for mut worker in workers {
        let outcome = worker.end();
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }

    let outcome = coordinator.stop();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("coordinator is down"), "{}", outcome.stderr);
    let offline = place.json("status --db queens.db --json");
    assert_eq!(offline["runs"], Value::Array(online), "the same from the database alone");
    let rows = place.json("workers --db queens.db --json");
    // The coordinator may have counted for comparison by then.
    let workers = rows["workers"].as_array().expect("a list").iter();
    assert_eq!(workers.filter(|worker| worker["name"] != "(the coordinator)").count(), 2);
}

#[test]
fn runs_change_at_an_operators_word_online_and_offline() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let run = place.json(&format!("submit 9 {at} --json"))["run"].as_str().expect("an id").to_owned();
    assert_eq!(place.stdout(&format!("pause {run} {at}")), format!("run {run} is paused\n"));
    assert_eq!(place.stdout(&format!("resume {run} {at} --quarantined")), format!("run {run} is active\n"));
    assert_eq!(
        place.failure(&format!("pause {run} --db queens.db")),
        "another nqueens process is using queens.db; wait for it or stop it, or choose another --db"
    );
    let unknown = "there is no run 0123456789ab here; 'nqueens status' lists the runs";
    for command in ["status", "pause", "resume", "cancel --yes", "watch"] {
        assert_eq!(place.failure(&format!("{command} 0123456789ab {at}")), unknown);
    }
    assert_eq!(
        place.failure(&format!("workers --drain 7 {at}")),
        "no worker 7 has registered here; 'nqueens workers' lists them"
    );
    let mut process = coordinator.process;
    process.signal("-INT");
    assert_eq!(process.end().code, 130);

    let paused = place.json(&format!("pause {run} --db queens.db --json"));
    assert_eq!((&paused["run"], &paused["state"]), (&Value::from(&*run), &Value::from("paused")));
    assert_eq!(place.stdout(&format!("resume {run} --db queens.db")), format!("run {run} is active\n"));
    assert_eq!(place.failure("pause 0123456789ab --db queens.db"), unknown);
    let careful = place.run_with(&[], &format!("cancel {run} --db queens.db"));
    assert_eq!(careful.code, 2);
    assert!(careful.stderr.starts_with("error: a cancelled run can't be resumed; give --yes"));
    assert_eq!(
        place.stdout(&format!("cancel {run} --yes --db queens.db")),
        format!("run {run} is cancelled\n")
    );
    assert_eq!(
        place.failure(&format!("resume {run} --db queens.db")),
        format!("run {run} is cancelled; only active and paused runs can be changed")
    );
    let none = "there is no database at none.db; check the path, or start a run to create one";
    assert_eq!(place.failure(&format!("pause {run} --db none.db")), none);
}

#[test]
fn tokens_are_asked_for_and_never_logged() {
    let place = Place::new().with_file("operator.token", &format!("{OPERATOR_TOKEN}\n"));
    let log = ("NQUEENS_LOG", "trace");
    let variables = [log, ("NQUEENS_WORKER_TOKEN", WORKER_TOKEN)];
    let coordinator = Coordinator::start(&place, &variables, "--operator-token-file operator.token");
    let url = coordinator.url();

    let where_from = "give a token by --operator-token-file or the variable NQUEENS_OPERATOR_TOKEN";
    let missing = format!("the coordinator refused: the operator's token is missing or wrong; {where_from}");
    assert_eq!(place.failure(&format!("submit 8 --coordinator {url}")), missing);
    let with = |token: &str, arguments: &str| {
        place.run_with(&[("NQUEENS_OPERATOR_TOKEN", token)], &format!("{arguments} --coordinator {url}"))
    };
    let wrong = with("token-of-nobody-0123456789", "submit 8");
    assert_eq!((wrong.code, wrong.stderr), (1, format!("nqueens: {missing}\n")));
    let other = with(WORKER_TOKEN, "submit 8");
    let denied = "the coordinator refused: this token is not for operators; give the operator's";
    assert_eq!((other.code, other.stderr), (1, format!("nqueens: {denied}; {where_from}\n")));
    let short = with("short", "submit 8");
    assert_eq!(short.code, 1);
    assert!(short.stderr.starts_with("nqueens: the variable NQUEENS_OPERATOR_TOKEN: a token has 16 to 256"));

    let accepted = with(OPERATOR_TOKEN, "submit 8 --log trace");
    assert_eq!(accepted.code, 0, "{}", accepted.stderr);
    let mut refused = coordinator.worker(&place, "stranger", &[("NQUEENS_TOKEN", OPERATOR_TOKEN), log]);
    let refused = refused.end();
    assert_eq!(refused.code, 5, "{}", refused.stderr);
    let mut worker = coordinator.worker(&place, "west", &[("NQUEENS_TOKEN", WORKER_TOKEN), log]);
    let watched = with(OPERATOR_TOKEN, &format!("watch {} --interval 0.2", accepted.stdout.trim_end()));
    assert!(watched.stdout.ends_with("TOTAL 92, equal to the published count\n"), "{}", watched.stdout);
    worker.signal("-TERM");
    let logs = [accepted.stderr, refused.stderr, worker.end().stderr, coordinator.stop().stderr];
    for log in logs {
        assert!(log.contains("TRACE") && !log.contains("token-for"), "{log}");
    }
}

#[test]
fn other_machines_are_let_in_with_tokens_or_at_ones_word() {
    let place = Place::new();
    let everywhere = "coordinator --db queens.db --listen 0.0.0.0:0";
    let both = [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];
    for some in [&[], &both[..1], &both[1..]] {
        let outcome = place.run_with(some, everywhere);
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""));
        assert!(outcome.stderr.contains("can be reached from other machines"), "{}", outcome.stderr);
    }
    assert!(place.files().is_empty(), "nothing was begun");
    for (variables, more) in [(&both[..], ""), (&[], "--insecure")] {
        let arguments = format!("{everywhere} {more}");
        let mut process = Background::start(place.command(&arguments).envs(variables.iter().copied()));
        let mut line = String::new();
        process.stdout().read_line(&mut line).expect("text");
        assert!(line.starts_with("listening on 0.0.0.0:"), "{line}");
        process.signal("-TERM");
        let outcome = process.end();
        assert_eq!(outcome.code, 0);
        assert_eq!(outcome.stderr.contains("insecure"), !more.is_empty(), "{}", outcome.stderr);
    }
    let same = [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", WORKER_TOKEN)];
    let outcome = place.run_with(&same, everywhere);
    assert_eq!(outcome.code, 1);
    assert_eq!(
        outcome.stderr,
        "nqueens: two tokens are the same; operators, and workers of each name, need their own\n"
    );
}

#[test]
fn addresses_that_cant_be_had() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let address = &coordinator.address;
    assert_eq!(
        place.failure(&format!("coordinator --db other.db --listen {address}")),
        format!(
            "can't listen on {address}: Address already in use (os error 98); choose another address, or stop what \
             uses this one"
        )
    );
    let said = place.failure("coordinator --db queens.db --listen 127.0.0.1:0");
    assert!(said.starts_with("another nqueens process is using queens.db"), "{said}");
    let said = place.failure("coordinator --db other.db --listen nonsense");
    assert!(said.starts_with("can't listen on nonsense: "), "{said}");
    let address = address.clone();
    assert_eq!(coordinator.stop().code, 0);
    let commands = ["status", "workers", "submit 8", "pause 0123456789ab", "workers --drain 7", "watch all"];
    let start =
        |command| Background::start(&mut place.command(&format!("{command} --coordinator http://{address}")));
    for mut command in commands.map(start) {
        let outcome = ended(&mut command);
        let (waited, said) = outcome.stderr.split_once('\n').expect("two lines");
        assert!(waited.contains("no coordinator listens there yet; trying again for 4s"), "{waited}");
        assert_eq!(
            (outcome.code, said),
            (
                1,
                &*format!(
                    "nqueens: can't reach a coordinator at http://{address} (Connection refused (os error 111)); check \
                     the address, and that 'nqueens coordinator' runs there\n"
                )
            )
        );
    }
    let outcome = place.run("status --coordinator head:7327");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: 'head:7327' is no coordinator's address ("));
    let outcome = place.run("coordinator --db other.db --lease-seconds 10");
    assert_eq!(outcome.code, 2);
    assert!(!place.path("other.db").exists());
}

#[test]
fn a_coordinator_that_is_starting_is_waited_for() {
    let place = Place::new();
    let first = Coordinator::start(&place, &[], "");
    let (address, url) = (first.address.clone(), first.url());
    assert_eq!(first.stop().code, 0);
    let mut submit = Background::start(&mut place.command(&format!("submit 8 --coordinator {url}")));
    let coordinator = Coordinator::start_at(&address, &place, &[], "");
    let outcome = ended(&mut submit);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(place.stdout(&format!("status --coordinator {url}")).contains(outcome.stdout.trim_end()));
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn a_watch_outlives_the_coordinator() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let url = coordinator.url();
    let run = place.stdout(&format!("submit 10 --coordinator {url}")).trim_end().to_owned();
    let mut watch =
        Background::start(&mut place.command(&format!("watch {run} --interval 0.2 --coordinator {url}")));
    let mut stdout = watch.stdout();
    let mut line = String::new();
    stdout.read_line(&mut line).expect("text");
    assert!(line.starts_with(&format!("{run}  N = 10: 0.0 %, ? left, 0 of ")), "{line}");
    let Coordinator { mut process, address } = coordinator;
    process.kill();
    eventually("it has noticed", || watch.said().contains("reconnecting").then_some(()));
    let coordinator = Coordinator::start_at(&address, &place, &[], "");
    let _worker = coordinator.worker(&place, "west", &[]);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("text");
    assert!(
        rest.ends_with(&format!("{run}  N = 10: done, TOTAL 724, equal to the published count\n")),
        "{rest}"
    );
    let outcome = watch.end();
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.stderr, "nqueens: the coordinator went away; reconnecting\n");
}

#[test]
fn a_coordinator_needs_a_database() {
    let mut command = Command::new(NQUEENS);
    let outcome = Outcome::of(command.arg("coordinator").env_remove("NQUEENS_DB"));
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("--db <PATH>"), "{}", outcome.stderr);
}
