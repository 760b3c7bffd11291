//! What a coordinator tells of itself: to a webhook, to a listener that is not well, and in its log.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::Value;

use crate::Place;
use crate::processes::{Coordinator, eventually};

/// Takes posts, answers the first with an error, and passes them on.
fn hook() -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hooks/s3cret", listener.local_addr().expect("an address"));
    let (sender, posts) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answers = ["503 Service Unavailable"].into_iter().chain(std::iter::repeat("204 No Content"));
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a connection"));
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                stream.read_line(&mut head).expect("text");
            }
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.expect("a length")];
            stream.read_exact(&mut body).expect("a body");
            let answer =
                format!("HTTP/1.1 {}\r\nConnection: close\r\n\r\n", answers.next().expect("for ever"));
            stream.get_mut().write_all(answer.as_bytes()).expect("sent");
            let path = head.split(' ').nth(1).expect("a path").to_owned();
            if sender.send((path, serde_json::from_slice(&body).expect("JSON"))).is_err() {
                return;
            }
        }
    });
    (url, posts)
}

#[test]
fn events_reach_a_webhook_in_their_order() {
    let place = Place::new();
    let (url, posts) = hook();
    let variables = [("NQUEENS_WEBHOOK", &*url), ("NQUEENS_LOG", "trace")];
    let coordinator = Coordinator::start(&place, &variables, "--lease-seconds 3 --sync-seconds 1 --http off");
    let at = coordinator.url();
    let large = place.stdout(&format!("submit 22 --coordinator {at}")).trim_end().to_owned();
    let mut worker = coordinator.worker(&place, "west", &[]);
    eventually("it works", || {
        let status = place.json(&format!("status {large} --json --coordinator {at}"));
        (status["runs"][0]["leased"].as_u64() > Some(0)).then_some(())
    });
    worker.kill();
    let lost = "worker sent no heartbeat in time: its jobs go to other workers";
    eventually("its leases run out", || coordinator.process.said().contains(lost).then_some(()));
    place.stdout(&format!("cancel {large} --yes --coordinator {at}"));
    let small = place.stdout(&format!("submit 8 --coordinator {at}")).trim_end().to_owned();
    let _other = coordinator.worker(&place, "east", &[]);
    place.stdout(&format!("watch {small} --interval 0.2 --coordinator {at}"));

    let mut told: Vec<Value> = Vec::new();
    while told.last().is_none_or(|event| event["kind"] != "run_done") {
        let (path, event) = posts.recv().expect("the hook lives");
        assert_eq!(path, "/hooks/s3cret");
        if told.is_empty() || told[told.len() - 1] != event {
            told.push(event);
        } else {
            assert_eq!(told.len(), 1, "only the first was refused and sent again");
        }
    }
    let facts: Vec<_> = told
        .iter()
        .map(|event| [&event["kind"], &event["run"], &event["worker"], &event["problem"]])
        .collect();
    let (large, small, null) = (&Value::from(large), &Value::from(small), &Value::Null);
    let expected = [
        [&"run_planned".into(), large, null, &false.into()],
        [&"worker_lost".into(), null, &1.into(), &true.into()],
        [&"run_changed".into(), large, null, &false.into()],
        [&"run_planned".into(), small, null, &false.into()],
        [&"run_done".into(), small, null, &false.into()],
    ];
    assert_eq!(facts, expected);
    assert_eq!(told[4]["text"], "N = 8: done, TOTAL 92: equal to the published count.");
    assert!(told.iter().zip(1..).all(|(event, number)| event["number"] == number));
    let outcome = coordinator.stop();
    assert_eq!(outcome.code, 0);
    assert!(outcome.stderr.contains("the webhook accepted an event") && !outcome.stderr.contains("s3cret"));
}

#[test]
fn a_webhook_that_hangs_holds_nobody_up() {
    let place = Place::new();
    // It takes connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let coordinator = Coordinator::start(&place, &[("NQUEENS_WEBHOOK", &*url)], "--http off");
    let at = coordinator.url();
    let run = place.stdout(&format!("submit 8 --coordinator {at}")).trim_end().to_owned();
    let (_connection, _) = listener.accept().expect("the first event");
    let _worker = coordinator.worker(&place, "west", &[]);
    let watched = place.stdout(&format!("watch {run} --interval 0.2 --coordinator {at}"));
    assert!(watched.ends_with("TOTAL 92, equal to the published count\n"), "{watched}");
    assert_eq!(coordinator.stop().code, 0);
}
