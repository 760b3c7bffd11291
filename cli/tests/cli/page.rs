//! The coordinator's page, asked by hand: who may look, and what is bounded.

use std::io::{BufRead, BufReader, Read};

use serde_json::Value;

use crate::Place;
use crate::http::{ask, curl, get, is_here, page_of, send};
use crate::processes::{Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, eventually};

const TOKENS: [(&str, &str); 3] = [
    ("NQUEENS_LOG", "trace"),
    ("NQUEENS_WORKER_TOKEN", WORKER_TOKEN),
    ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN),
];

#[test]
fn on_this_machine_nothing_is_asked_for() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let page = page_of(&coordinator);
    for path in
        ["/", "/solutions", "/login", "/page.js", "/pictures.js", "/solutions.js", "/style.css", "/icon.svg"]
    {
        let answer = get(&page, path);
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; ") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        let is_page = answer.header("content-type").starts_with("text/html");
        assert!(!is_page || !answer.body.contains("<script>") && !answer.body.contains("style="), "{path}");
        assert!(!answer.body.contains("https://"), "{path} needs nothing from outside");
    }
    assert_eq!(get(&page, "/nothing").status, 404);
    // A name that was made to lead here is not a name of this machine.
    for host in ["evil.example", "127.0.0.1.evil.example:7327"] {
        for path in ["/", "/metrics", "/live", "/solution?n=8&number=1"] {
            assert_eq!(ask(&page, &format!("GET {path}"), &[("Host", host)], "").status, 421, "{host}{path}");
        }
    }
    // Nothing changes anything.
    for request in ["POST /", "PUT /metrics", "DELETE /live"] {
        assert_eq!(ask(&page, request, &[], "").status, 405, "{request}");
    }
    let solution: Value = serde_json::from_str(&get(&page, "/solution?n=8&number=2").body).expect("JSON");
    assert_eq!((&solution["of"], &solution["images"][0]["columns"][1]), (&12.into(), &5.into()));
    for path in ["/solution?n=13&number=1", "/solution?n=8&number=0", "/live?run=0123456789ab"] {
        assert_eq!(get(&page, path).status, 404, "{path}");
    }
    for path in ["/solution", "/solution?n=-8&number=x", "/live?run=nonsense"] {
        assert_eq!(get(&page, path).status, 400, "{path}");
    }
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn elsewhere_the_token_is_asked_for_once() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &TOKENS, "");
    let page = page_of(&coordinator);
    let asked = get(&page, "/");
    assert_eq!((asked.status, asked.header("location")), (303, "/login"));
    for path in ["/metrics", "/live", "/page.js", "/solution?n=8&number=1"] {
        let answer = get(&page, path);
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (401, "Bearer realm=\"nqueens\""),
            "{path}"
        );
    }
    let bearer =
        |token: &str| ask(&page, "GET /metrics", &[("Authorization", &format!("Bearer {token}"))], "");
    assert_eq!(bearer(OPERATOR_TOKEN).status, 200);
    assert_eq!(bearer(WORKER_TOKEN).status, 403);
    // Who guesses is no person who is to be led to the form: the answer waits, and is counted.
    let guessed = [("Authorization", "Bearer guess")];
    for path in ["/", "/solutions"] {
        assert_eq!(ask(&page, &format!("GET {path}"), &guessed, "").status, 401, "{path}");
    }
    // With the four paths before.
    assert!(bearer(OPERATOR_TOKEN).body.contains("\nnqueens_refused_calls_total 6\n"));

    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let show = |body: &str| ask(&page, "POST /login", &[form], body);
    for body in ["", "token=", &format!("token={WORKER_TOKEN}"), "other=1"] {
        let answer = show(body);
        assert_eq!((answer.status, answer.header("set-cookie")), (401, ""), "{body}");
        assert!(answer.body.contains("role=\"alert\""), "{}", answer.body);
    }
    assert_eq!(show(&format!("token={}", "x".repeat(2_000))).status, 401, "too large to be read");
    let entered = show(&format!("token={OPERATOR_TOKEN}"));
    assert_eq!((entered.status, entered.header("location")), (303, "/"));
    let cookie = entered.header("set-cookie");
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    let (session, _) = cookie.split_once(';').expect("attributes");
    assert!(!session.contains(OPERATOR_TOKEN));
    let with =
        |cookie: &str, path: &str| ask(&page, &format!("GET {path}"), &[("Cookie", cookie)], "").status;
    assert_eq!((with(session, "/"), with(&format!("a=b; {session}"), "/metrics")), (200, 200));
    for wrong in
        ["nqueens=", "nqueens=0", &session[..session.len() - 1], &format!("nqueens={OPERATOR_TOKEN}")]
    {
        assert_eq!(with(wrong, "/"), 303, "{wrong}");
    }
    let outcome = coordinator.stop();
    assert_eq!(outcome.code, 0);
    let (_, value) = session.split_once('=').expect("a value");
    assert!(outcome.stderr.contains("DEBUG"), "much is logged, but");
    assert!(!outcome.stderr.contains(OPERATOR_TOKEN) && !outcome.stderr.contains(value));
}

#[test]
fn elsewhere_it_is_a_choice_to_ask_for_nothing() {
    let place = Place::new();
    let coordinator = Coordinator::start_at("0.0.0.0:0", &place, &TOKENS, "--public-page");
    let page = page_of(&coordinator);
    assert_eq!(ask(&page, "GET /", &[("Host", "queens.example")], "").status, 200);
    assert_eq!(get(&page, "/metrics").status, 200);
    assert_eq!(get(&page, "/v1/runs").status, 401, "a public page is no public coordinator");
    assert_eq!(coordinator.stop().code, 0);
}

#[test]
fn streams_are_few_and_end_with_the_coordinator() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let page = page_of(&coordinator);
    let open = || {
        let mut stream = send(&page, "GET /live", &[], "");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("a status");
        (stream, String::from_utf8(head[9..].to_vec()).expect("three digits"))
    };
    let mut streams: Vec<_> = (0..48).map(|_| open()).collect();
    assert!(streams.iter().all(|(_, status)| status == "200"));
    assert_eq!(open().1, "503");
    assert_eq!(get(&page, "/metrics").status, 200, "there is room for other requests");
    streams.truncate(40);
    eventually("a place is free again", || (open().1 == "200").then_some(()));
    assert_eq!(coordinator.stop().code, 0);
    for (mut stream, _) in streams {
        let mut rest = Vec::new();
        // It ends, or is cut off.
        drop(stream.read_to_end(&mut rest));
        let rest = String::from_utf8_lossy(&rest);
        assert!(rest.contains("event: picture") && rest.contains("\"runs\":[]"), "{rest}");
    }
}

/// The first picture of a page's stream, and the details of its run.
pub(crate) fn shown(page: &str, run: &str) -> [Value; 2] {
    let mut stream = BufReader::new(send(page, &format!("GET /live?run={run}"), &[], "")).lines();
    let mut next = |kind: &str| {
        let mut lines = stream.by_ref().map(|line| line.expect("text"));
        lines.find(|line| *line == format!("event: {kind}")).expect("it comes");
        let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        serde_json::from_str::<Value>(&data.expect("data")).expect("JSON")
    };
    [next("picture"), next("detail")]
}

#[test]
fn what_the_page_shows_outlives_a_kill() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let page = page_of(&coordinator);
    let run = coordinator.submit(&place, "18 --plan border --job-states 1000000");
    let _worker = coordinator.worker(&place, "west", &[]);
    let measured = |detail: &Value| {
        let history = detail["history"].as_array().expect("a list");
        history.iter().any(|moment| moment["states_per_s"].as_f64() > Some(0.0))
    };
    let before =
        eventually("a speed is measured", || Some(shown(&page, &run)).filter(|[_, now]| measured(now)));
    let Coordinator { mut process, address } = coordinator;
    process.kill();

    let coordinator = Coordinator::start_at(&address, &place, &[], "--sync-seconds 1");
    let page = page_of(&coordinator);
    let after = shown(&page, &run);
    assert!(measured(&after[1]), "its results tell how fast it went: {}", after[1]);
    let [before, after] = [&before, &after].map(|[picture, _]| picture["events"].as_array().expect("a list"));
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(before[0]["kind"], "run_planned");
    // A database shows them too, whether somebody serves it or not.
    assert_eq!(coordinator.stop().code, 0);
    assert_eq!(
        place.ask("queens.db", "SELECT text FROM event ORDER BY number")[0],
        before[0]["text"].as_str().expect("text")
    );
}

#[test]
fn documents_of_a_finished_run_can_be_kept() {
    if !is_here("curl") {
        return;
    }
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "--sync-seconds 1");
    let (url, page) = (coordinator.url(), page_of(&coordinator));
    let run = coordinator.submit(&place, "8");
    assert_eq!(get(&page, &format!("/ledger?run={run}")).status, 409, "it is not done");
    let _worker = coordinator.worker(&place, "west", &[]);
    place.stdout(&format!("watch {run} --plain --interval 0.2 --coordinator {url}"));

    for (document, end) in [("ledger", "ledger"), ("report", "html")] {
        let path = format!("/{document}?run={run}");
        let answer = eventually("no other document is being written", || {
            Some(get(&page, &path)).filter(|answer| answer.status != 503)
        });
        let name = format!("attachment; filename=\"nqueens-8.{end}\"");
        assert_eq!((answer.status, answer.header("content-disposition")), (200, &*name));
        // It comes in chunks, which curl puts together.
        let fetched = curl(&place, &format!("--retry 9 --output nqueens-8.{end} http://{page}{path}"));
        assert_eq!(fetched.code, 0, "{}", fetched.stderr);
    }
    assert!(place.stdout("verify nqueens-8.ledger").contains("92"), "it is the whole ledger");
    let text = std::fs::read_to_string(place.path("nqueens-8.html")).expect("text");
    assert!(text.starts_with("<!doctype html>") && text.ends_with("</html>\n"), "{text}");
    for (path, status) in [("/report", 400), ("/ledger?run=x", 400), ("/report?run=0123456789ab", 404)] {
        assert_eq!(get(&page, path).status, status, "{path}");
    }

    assert_eq!(coordinator.stop().code, 0);

    // Where everyone can look, nobody can have the coordinator work.
    let coordinator = Coordinator::start(&place, &[], "--public-page");
    let page = page_of(&coordinator);
    assert_eq!(get(&page, &format!("/report?run={run}")).status, 403);
    coordinator.stop();
}
