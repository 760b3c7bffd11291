//! Strangers at the page: guessers, slow connections and resets, all from the address from which honest people come.

use std::io::{self, Read, Write};
use std::net::TcpStream as Blocking;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nqueens_proto::{CallFailure, JsonClient, Token, connect};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::raw::{self, ACK, END_HEADERS, HEADERS, NO_SETTINGS, PING, RST_STREAM, frame};
use super::{TOKENS, open_many_files};
use crate::Place;
use crate::http::page_of;
use crate::processes::{Coordinator, OPERATOR_TOKEN, eventually};

const GUESSERS: usize = 12;
const SLOW: usize = 400;
const RESETTERS: usize = 4;

/// What has been done to a coordinator so far.
#[derive(Debug, Default)]
struct Flood {
    stopped: AtomicBool,
    /// Wrong tokens that were shown at the page, and those at the coordinator's service that were refused.
    guesses: AtomicU64,
    calls: AtomicU64,
    /// Slow connections that were closed.
    slow_ended: AtomicU64,
    /// Connections that were reset at once, and calls.
    resets: AtomicU64,
    call_resets: AtomicU64,
    /// Answers to pings that nobody sent.
    pings: AtomicU64,
}

impl Flood {
    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    fn begin(self: &Arc<Self>, page: &str, service: &str) -> Vec<JoinHandle<()>> {
        let (at_page, at_service) =
            (|| (Arc::clone(self), page.to_owned()), || (Arc::clone(self), service.to_owned()));
        let mut tasks = Vec::new();
        for number in 0..GUESSERS {
            let ((flood, page), is_form) = (at_page(), number % 2 == 0);
            tasks.push(tokio::spawn(async move { flood.guess(&page, is_form).await }));
        }
        for number in 0..SLOW {
            let (flood, page) = at_page();
            tasks.push(tokio::spawn(async move { flood.write_slowly(&page, number).await }));
        }
        for _ in 0..RESETTERS {
            let (flood, page) = at_page();
            tasks.push(tokio::spawn(async move { flood.reset_connections(&page).await }));
            let (flood, service) = at_service();
            tasks.push(tokio::spawn(async move { flood.reset_calls(&service).await }));
        }
        let (flood, service) = at_service();
        tasks.push(tokio::spawn(async move { flood.answer_pings(&service).await }));
        let (flood, service) = at_service();
        tasks.push(tokio::spawn(async move { flood.guess_at_service(&service).await }));
        tasks
    }

    /// Shows wrong tokens, in the form or as programs do, and takes each answer.
    async fn guess(&self, page: &str, is_form: bool) {
        let (line, header, body) = if is_form {
            ("POST /login", "Content-Type: application/x-www-form-urlencoded", "token=guess-of-a-stranger")
        } else {
            ("GET /metrics", "Authorization: Bearer guess-of-a-stranger", "")
        };
        let length = body.len();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {page}\r\n{header}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        while self.goes_on() {
            let Ok(mut stream) = TcpStream::connect(page).await else { continue };
            if stream.write_all(request.as_bytes()).await.is_ok() {
                self.guesses.fetch_add(1, Ordering::Relaxed);
                let mut answer = Vec::new();
                // Whoever waits too long for it is cut off for one that came later.
                drop(stream.read_to_end(&mut answer).await);
                assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 401 "), "{answer:?}");
            }
        }
    }

    /// Begins a request, never comes to its end, and is back as soon as it is hung up on.
    async fn write_slowly(&self, page: &str, number: usize) {
        while self.goes_on() {
            let Ok(mut stream) = TcpStream::connect(page).await else { continue };
            let begun = if number.is_multiple_of(2) { "GET / HTTP/1.1\r\nHost: here\r\nX: " } else { "" };
            let mut said = stream.write_all(begun.as_bytes()).await;
            while self.goes_on() && said.is_ok() {
                let read = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut [0; 100])).await;
                said = match read {
                    Ok(_) => Err(io::ErrorKind::ConnectionAborted.into()),
                    Err(_) => stream.write_all(b"x").await,
                };
            }
            self.slow_ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn reset_connections(&self, page: &str) {
        while self.goes_on() {
            let Ok(mut stream) = TcpStream::connect(page).await else { continue };
            drop(stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").await);
            drop(stream.set_zero_linger());
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes calls and takes them back at once ("rapid reset").
    async fn reset_calls(&self, service: &str) {
        let headers = raw::call("POST", "/nqueens.v1.WorkerService/Sync", "token-of-a-stranger-0123456789");
        while self.goes_on() {
            let Ok(mut stream) = raw::greet(service, NO_SETTINGS).await else { continue };
            for number in (1..10_000).step_by(2) {
                let call = [
                    frame(HEADERS, END_HEADERS, number, &headers),
                    frame(RST_STREAM, 0, number, &[0, 0, 0, 8]),
                ];
                if !self.goes_on() || stream.write_all(&call.concat()).await.is_err() {
                    break;
                }
                self.call_resets.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Answers pings that nobody sent: the library logs each.
    async fn answer_pings(&self, service: &str) {
        let pings = frame(PING, ACK, 0, b"whatever").repeat(100);
        while self.goes_on() {
            let Ok(mut stream) = raw::greet(service, NO_SETTINGS).await else { continue };
            while self.goes_on() && stream.write_all(&pings).await.is_ok() {
                self.pings.fetch_add(100, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    async fn guess_at_service(&self, service: &str) {
        let channel = connect(&format!("http://{service}"), None).expect("an address");
        let token = "guess-of-a-stranger".parse::<Token>().expect("a token");
        let client = JsonClient::new(channel, Some(token));
        while self.goes_on() {
            let refusal = client.get::<Value>("/v1/runs").await.expect_err("it is wrong");
            if matches!(refusal, CallFailure::Refused(status, _) if status.as_u16() == 401) {
                self.calls.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether everyone has been at it.
    fn is_high(&self) -> bool {
        let at_least = |what: &AtomicU64, times| what.load(Ordering::Relaxed) >= times;
        at_least(&self.guesses, GUESSERS as u64)
            && at_least(&self.calls, 1)
            && at_least(&self.slow_ended, SLOW as u64)
            && at_least(&self.resets, 100)
            && at_least(&self.call_resets, 1_000)
            && at_least(&self.pings, 1_000)
    }
}

/// Asks once; the answer, head and body.
fn ask(page: &str, request: &str, headers: &str, body: &str) -> io::Result<String> {
    let mut stream = Blocking::connect(page)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    let length = body.len();
    let request = format!(
        "{request} HTTP/1.1\r\nHost: {page}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Logs in and looks at the page, as people do.
fn look(page: &str) -> io::Result<bool> {
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let entered = ask(page, "POST /login", form, &format!("token={OPERATOR_TOKEN}"))?;
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
    let Some(cookie) = cookie else { return Ok(false) };
    let shown = ask(page, "GET /", &format!("Cookie: {cookie}\r\n"), "")?;
    Ok(entered.starts_with("HTTP/1.1 303 ") && shown.starts_with("HTTP/1.1 200 "))
}

/// What Prometheus does.
fn scrape(page: &str) -> io::Result<String> {
    let answer = ask(page, "GET /metrics", &format!("Authorization: Bearer {OPERATOR_TOKEN}\r\n"), "")?;
    if answer.starts_with("HTTP/1.1 200 ") { Ok(answer) } else { Err(io::Error::other(answer)) }
}

/// A sample of a scrape.
fn sample(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{metrics}")).trim().parse().expect("a whole number")
}

/// What the coordinator says of the flood, and what the library of HTTP/2 would.
const LOGGED: &str = "wrong token on the page";
const SILENT: &str = "recv PING ack";

/// `cargo test -p nqueens --test cli -- --nocapture strangers_at_the_page` prints the times.
#[test]
fn strangers_at_the_page_lock_nobody_out() {
    open_many_files();
    let place = Place::new();
    let begun = Instant::now();
    let coordinator = Coordinator::start(&place, &TOKENS, "");
    let page = page_of(&coordinator);
    let flood = Arc::new(Flood::default());
    let runtime = Runtime::new().expect("a runtime");
    let tasks = runtime.block_on(async { flood.begin(&page, &coordinator.address) });
    // What was sent may not have arrived.
    let has_arrived = || coordinator.process.said().contains(LOGGED);
    eventually("everyone is at it", || (flood.is_high() && has_arrived()).then_some(()));

    let (mut looks, mut scrapes) = (Vec::new(), Vec::new());
    let mut failures = Vec::new();
    for _ in 0..20 {
        let asked = Instant::now();
        match look(&page) {
            Ok(true) => looks.push(asked.elapsed()),
            other => failures.push(other),
        }
        let asked = Instant::now();
        scrape(&page).expect("metrics for everyone with the token");
        scrapes.push(asked.elapsed());
    }
    println!("{flood:?}");
    println!("20 logins with a page: {looks:?}");
    println!("20 scrapes: {scrapes:?}");
    println!("slowest login {:?}, slowest scrape {:?}", looks.iter().max(), scrapes.iter().max());
    assert!(looks.len() >= 19, "{failures:?}");

    assert!(tasks.iter().all(|task| !task.is_finished()), "an attacker was surprised");
    flood.stopped.store(true, Ordering::Relaxed);
    runtime.block_on(async {
        for task in tasks {
            task.await.expect("no attacker was surprised");
        }
    });

    let refused = || {
        sample(&scrape(&page).expect("metrics for everyone with the token"), "nqueens_refused_calls_total")
    };
    let before = refused();
    assert!(before >= flood.calls.load(Ordering::Relaxed));
    let answer =
        ask(&page, "GET /metrics", "Authorization: Bearer guess-of-a-stranger\r\n", "").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert_eq!(refused(), before + 1);

    let log = coordinator.stop().stderr;
    let allowed = 10 + 10 * (begun.elapsed().as_secs() / 60 + 1);
    let lines = log.lines().filter(|line| line.contains(LOGGED)).count() as u64;
    assert!((1..=allowed).contains(&lines), "{lines} lines of '{LOGGED}'");
    assert!(!log.contains(SILENT) && log.len() < 50_000, "{log}");
}
