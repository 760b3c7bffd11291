//! A coordinator, its operators and its workers, as processes.

use std::io::{BufRead, Read};

use insta::assert_snapshot;
use serde_json::Value;

use crate::processes::{Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, ended, eventually};
use crate::{Outcome, Place};

fn runs(place: &Place, url: &str) -> Vec<Value> {
    let status = place.json(&format!("status --coordinator {url} --json"));
    status["runs"].as_array().expect("a list").clone()
}

#[test]
fn two_runs_at_once_are_counted_by_two_workers() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let url = coordinator.url();
    assert!(runs(&place, &url).is_empty());
    let submit = |arguments: &str| {
        let id = coordinator.submit(&place, arguments);
        assert_eq!(id.len(), 12, "{id}");
        id
    };
    let ten = submit("10 --plan rows --job-states 2000");
    let eleven = submit("11 --plan border --priority 3");
    let workers = [coordinator.worker(&place, "west", &[]), coordinator.worker(&place, "east", &[])];
    let watched = place.stdout(&format!("watch --interval 0.2 --coordinator {url}"));
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
    for gone in ["west", &listed[0]["id"].to_string()] {
        let said = place.failure(&format!("workers --drain {gone} --coordinator {url}"));
        assert!(said.starts_with("worker ") && said.ends_with(" is gone"), "{said}");
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
    let (url, submit) = (coordinator.url(), format!("submit 9 --coordinator {} --json", coordinator.url()));
    let run = place.json(&submit)["run"].as_str().expect("an id").to_owned();
    // Each line of a session, at the coordinator or in its database.
    let session = |lines: &str, at: &str| {
        let lines: Vec<_> = lines.lines().map(|line| format!("{} {at}", line.replace("RUN", &run))).collect();
        place.session(&lines.join("\n")).replace(&run, "RUN").replace(at, "AT")
    };
    let told = session(
        "pause RUN
        resume RUN --quarantined
        status 0123456789ab
        pause 0123456789ab
        resume 0123456789ab
        cancel 0123456789ab --yes
        watch 0123456789ab
        workers --drain 7",
        &format!("--coordinator {url}"),
    );
    let mut process = coordinator.process;
    process.signal("-INT");
    assert_eq!(process.end().code, 130);
    let offline = session(
        "pause RUN
        resume RUN
        pause 0123456789ab
        cancel RUN
        cancel RUN --yes
        resume RUN",
        "--db queens.db",
    );
    assert_snapshot!(told + &offline);
}

#[test]
fn tokens_are_asked_for_and_never_logged() {
    let place = Place::new().with_file("operator.token", &format!("{OPERATOR_TOKEN}\n"));
    let log = ("NQUEENS_LOG", "trace");
    let variables = [log, ("NQUEENS_WORKER_TOKEN", WORKER_TOKEN)];
    let coordinator = Coordinator::start(&place, &variables, "--operator-token-file operator.token");
    let url = coordinator.url();

    let with = |token: &str, arguments: &str| {
        place.run_with(&[("NQUEENS_OPERATOR_TOKEN", token)], &format!("{arguments} --coordinator {url}"))
    };
    let where_from = "; give a token by --operator-token-file or the variable NQUEENS_OPERATOR_TOKEN\n";
    let missing = "the coordinator refused: the operator's token is missing or wrong";
    let none = place.failure(&format!("submit 8 --coordinator {url}")) + "\n";
    assert_eq!(none, format!("{missing}{where_from}"));
    for (token, why, rest) in [
        ("token-of-nobody-0123456789", missing, where_from),
        (
            WORKER_TOKEN,
            "the coordinator refused: this token is not for operators; give the operator's",
            where_from,
        ),
        ("short", "the variable NQUEENS_OPERATOR_TOKEN: a token has 16 to 256", ""),
    ] {
        let Outcome { code, stderr, .. } = with(token, "submit 8");
        assert!(code == 1 && stderr.starts_with(&format!("nqueens: {why}{rest}")), "{stderr}");
    }

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
        let coordinator = Coordinator::of(place.command(&arguments).envs(variables.iter().copied()));
        assert!(coordinator.address.starts_with("0.0.0.0:"), "{}", coordinator.address);
        let outcome = coordinator.stop();
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
    let said = place.failure("coordinator --db other.db --listen nonsense");
    assert!(said.starts_with("can't listen on nonsense: "), "{said}");
    let address = address.clone();
    assert_eq!(coordinator.stop().code, 0);
    let commands = ["status", "submit 8", "workers --drain 7", "watch"];
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
    let run = coordinator.submit(&place, "10");
    let mut watch =
        Background::start(&mut place.command(&format!("watch {run} --interval 0.2 --coordinator {url}")));
    let mut stdout = watch.stdout();
    let mut line = String::new();
    stdout.read_line(&mut line).expect("text");
    assert!(line.starts_with(&format!("{run}  N=10 0.0 %  0/")), "{line}");
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
