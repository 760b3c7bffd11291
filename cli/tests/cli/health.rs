//! `/healthz` and `/readyz`, and `nqueens doctor --ready`: what orchestrators ask.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};

use crate::Place;
use crate::http::{ask, get, page_of, send};
use crate::processes::{
    Background, Coordinator, OPERATOR_TOKEN, WORKER_TOKEN, end_well, eventually, own_address,
};
use crate::signals::WriteLock;

const TOKENS: [(&str, &str); 2] =
    [("NQUEENS_WORKER_TOKEN", WORKER_TOKEN), ("NQUEENS_OPERATOR_TOKEN", OPERATOR_TOKEN)];

#[test]
fn health_is_open_to_everybody_and_tells_nothing_else() {
    let place = Place::new();
    for at in ["0.0.0.0:0", "127.0.0.1:0"] {
        let coordinator = Coordinator::start_at(at, &place, &TOKENS, "");
        let page = page_of(&coordinator);
        for path in ["/healthz", "/readyz"] {
            let answer = ask(&page, &format!("GET {path}"), &[("Host", "10.1.2.3:7327")], "");
            assert_eq!((answer.status, &*answer.body), (200, "ok"), "{at}{path}");
            assert!(
                !answer.head.contains("nqueens") && answer.header("server").is_empty(),
                "{}",
                answer.head
            );
            let wrong = ask(&page, &format!("GET {path}"), &[("Authorization", "Bearer wrong")], "");
            assert_eq!(wrong.status, 200, "nobody looks at tokens there");
            assert_eq!(ask(&page, &format!("POST {path}"), &[], "").status, 405, "{at}{path}");
        }
        assert_eq!(coordinator.stop().code, 0);
    }
}

#[test]
fn a_coordinator_is_ready_while_it_can_commit() {
    let place = Place::new();
    place.stdout("run 5 --db queens.db --plan rows");
    let lock = WriteLock::take(&place);
    let free = TcpListener::bind((own_address(), 0)).expect("a port");
    let page = free.local_addr().expect("an address").to_string();
    drop(free);
    // It waits ten seconds for the lock, so nothing slow is done until that is released.
    let coordinator =
        Background::start(&mut place.command(&format!("coordinator --db queens.db --listen {page}")));
    let is = |path: &str| {
        let answer = get(&page, path);
        (answer.status, answer.body)
    };
    let (well, not_ready) = ((200, "ok".to_owned()), (503, "not ready".to_owned()));
    eventually("it listens", || TcpStream::connect(&page).ok());
    assert_eq!((is("/healthz"), is("/readyz")), (well.clone(), not_ready.clone()), "it opens its database");
    // Other calls wait until it is up.
    let early = send(&page, "GET /metrics", &[], "");
    lock.release();
    let mut answer = String::new();
    BufReader::new(early).read_line(&mut answer).expect("text");
    assert_eq!(answer, "HTTP/1.1 200 OK\r\n");
    eventually("it is up", || (is("/readyz") == well).then_some(()));
    let doctor = || place.run(&format!("doctor --ready --coordinator http://{page}"));
    let found = doctor();
    assert_eq!((found.code, &*found.stdout, &*found.stderr), (0, "ready\n", ""));

    let lock = WriteLock::take(&place);
    eventually("it can't commit", || (is("/readyz") == not_ready).then_some(()));
    assert_eq!((is("/healthz"), is("/metrics").0), (well.clone(), 200));
    let unwell = doctor();
    assert_eq!((unwell.code, &*unwell.stdout, &*unwell.stderr), (1, "", "nqueens: not ready\n"));
    lock.release();
    eventually("it can again", || (is("/readyz") == well).then_some(()));
    end_well(coordinator);

    let gone = doctor();
    assert_eq!((gone.code, &*gone.stdout), (1, ""));
    let reason = format!("nqueens: can't reach a coordinator at http://{page} ");
    assert!(gone.stderr.starts_with(&reason), "{}", gone.stderr);
    assert_eq!(place.run("doctor --ready").code, 2, "of which coordinator?");
}
