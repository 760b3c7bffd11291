//! Strangers: idle, slow and senseless connections, floods of guesses and resets, and people who want to look at the page
//! meanwhile; all come from one address.

use std::io::{self, Read, Write};
use std::net::TcpStream as Blocking;
use std::sync::Arc;
use std::time::Duration;

use nqueens_proto::{CallFailure, JsonClient, Token, connect};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::OPERATOR_TOKEN;
use super::raw::{
    self, ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, NO_SETTINGS, NO_WINDOW, PING,
    RST_STREAM, frame,
};
use super::scene::Scene;

const GUESSERS: usize = 12;
const SLOW: usize = 300;
const RESETTERS: usize = 4;

const WRONG_TOKEN: &str = "token-of-a-stranger-0123456789";

/// What they have to see before it is over, where they need not be understood.
pub(super) const OUTSIDE: &[(&str, u64)] = &[
    ("connections that did nothing, closed", 100),
    ("connections that wrote slowly, closed", SLOW as u64),
    ("malformed messages", 30),
    ("chatter refused: ResourceExhausted", 10),
];

/// The same where TLS does not keep them out.
pub(super) const INSIDE: &[(&str, u64)] = &[
    OUTSIDE[0],
    OUTSIDE[1],
    OUTSIDE[2],
    OUTSIDE[3],
    ("wrong tokens at the page", GUESSERS as u64),
    ("wrong tokens of operators, refused", 100),
    ("connections that read nothing, closed", 2),
    ("connections that were reset", 100),
    ("calls that were reset", 1_000),
    ("pings that nobody sent, answered", 1_000),
];

/// One of them.
#[derive(Clone)]
struct Stranger {
    scene: Arc<Scene>,
    address: String,
}

/// All begin; so many of them do nothing. `worker` is a token that is no operator's.
pub(super) fn arrive(
    scene: &Arc<Scene>,
    address: &str,
    idle: usize,
    worker: Option<&Token>,
) -> Vec<JoinHandle<()>> {
    let stranger = || Stranger { scene: Arc::clone(scene), address: address.to_owned() };
    let mut tasks: Vec<_> = (0..idle).map(|number| tokio::spawn(stranger().do_nothing(number))).collect();
    tasks.extend((0..SLOW).map(|number| tokio::spawn(stranger().write_slowly(number))));
    tasks.push(tokio::spawn(stranger().talk_nonsense()));
    let Some(worker) = worker else { return tasks };
    tasks.extend((0..GUESSERS).map(|number| tokio::spawn(stranger().guess(number % 2 == 0))));
    let wrong = WRONG_TOKEN.parse().expect("a token");
    for (token, status) in [(None, 401), (Some(wrong), 401), (Some(worker.clone()), 403)] {
        tasks.push(tokio::spawn(stranger().ask_as_operator(token, status)));
    }
    for _ in 0..RESETTERS {
        tasks.push(tokio::spawn(stranger().reset_connections()));
        tasks.push(tokio::spawn(stranger().reset_calls()));
    }
    tasks.push(tokio::spawn(stranger().answer_pings()));
    tasks.push(tokio::spawn(stranger().read_nothing()));
    let worker = str::from_utf8(worker.as_bytes()).expect("ASCII").to_owned();
    tasks.push(tokio::spawn(stranger().write_a_call_slowly(worker)));
    tasks
}

impl Stranger {
    fn goes_on(&self) -> bool {
        self.scene.goes_on()
    }

    fn count(&self, what: &str) {
        self.scene.count(what, 1);
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect(&self.address).await
    }

    /// A connection that speaks HTTP/2 so far.
    async fn greet(&self, settings: &[u8]) -> io::Result<TcpStream> {
        raw::greet(&self.address, settings).await
    }

    /// Holds a connection, with a greeting or without, and comes back when it is lost.
    async fn do_nothing(self, number: usize) {
        // Not all at the same moment: the kernel drops what it can't queue.
        tokio::time::sleep(Duration::from_millis(number as u64)).await;
        while self.goes_on() {
            let stream =
                if number.is_multiple_of(2) { self.connect().await } else { self.greet(NO_SETTINGS).await };
            if let Ok(mut stream) = stream {
                let (mut bytes, mut ended) = ([0; 256], false);
                while self.goes_on() && !ended {
                    let read = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut bytes)).await;
                    ended = matches!(read, Ok(Ok(0) | Err(_)));
                }
                if ended {
                    self.count("connections that did nothing, closed");
                }
            }
            self.scene.rest(Duration::from_secs(5)).await;
        }
    }

    /// Begins a request or a greeting, never comes to its end, and is back as soon as it is hung up on.
    async fn write_slowly(self, number: usize) {
        let begun: &[u8] = [b"GET / HTTP/1.1\r\nHost: here\r\nX: ", &raw::PREFACE[..10], b""][number % 3];
        while self.goes_on() {
            let Ok(mut stream) = self.connect().await else { continue };
            let mut said = stream.write_all(begun).await;
            while self.goes_on() && said.is_ok() {
                let read = tokio::time::timeout(Duration::from_millis(500), stream.read(&mut [0; 100])).await;
                said = match read {
                    Ok(_) => Err(io::ErrorKind::ConnectionAborted.into()),
                    Err(_) => stream.write_all(b"x").await,
                };
            }
            self.count("connections that wrote slowly, closed");
        }
    }

    /// Says what is no HTTP/2, or none that makes sense.
    async fn talk_nonsense(self) {
        let headers = raw::call("POST", "/nqueens.v1.WorkerService/Sync", WRONG_TOKEN);
        let greeting = [raw::PREFACE, &frame(raw::SETTINGS, 0, 0, NO_SETTINGS)].concat();
        let (huge, more) = (frame(HEADERS, 0, 1, &[0; 16_384]), frame(CONTINUATION, 0, 1, &[0x40; 16_384]));
        let message = [&[0, 0, 0, 0, 5][..], b"\xff\xff\xff\xff\xff"].concat();
        let after_greeting = [
            vec![0xff; 9],
            frame(HEADERS, END_HEADERS, 1, &[0xff; 1_000]),
            [huge, more.repeat(100)].concat(),
            [frame(HEADERS, END_HEADERS, 1, &headers), frame(DATA, END_STREAM, 1, &message)].concat(),
            frame(DATA, 0, 7, b"of a call that was never begun"),
            // A half of a frame, and then nothing.
            frame(HEADERS, END_HEADERS, 1, &headers)[..20].to_vec(),
        ];
        let alone = [
            b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n".to_vec(),
            (0..=255_u8).cycle().take(100_000).collect(),
            vec![0; 10_000],
            greeting[..greeting.len() - 5].to_vec(),
        ];
        let greeted = after_greeting.map(|frames| [&*greeting, &frames].concat());
        while self.goes_on() {
            for bytes in alone.iter().chain(&greeted) {
                if let Ok(mut stream) = self.connect().await {
                    // It may be hung up on before it has said everything.
                    drop(stream.write_all(bytes).await);
                    self.count("malformed messages");
                    drop(tokio::time::timeout(Duration::from_millis(50), stream.read(&mut [0; 1_000])).await);
                }
            }
        }
    }

    /// Shows wrong tokens, in the form or as programs do, and takes each answer.
    async fn guess(self, is_form: bool) {
        let request = if is_form {
            request(&self.address, "POST /login", FORM, &format!("token={WRONG_TOKEN}"))
        } else {
            let header = format!("Authorization: Bearer {WRONG_TOKEN}\r\n");
            request(&self.address, "GET /metrics", &header, "")
        };
        while self.goes_on() {
            let Ok(mut stream) = self.connect().await else { continue };
            if stream.write_all(request.as_bytes()).await.is_ok() {
                self.count("wrong tokens at the page");
                let mut answer = Vec::new();
                // Whoever waits too long for it is cut off for one that came later.
                drop(stream.read_to_end(&mut answer).await);
                assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 401 "), "{answer:?}");
            }
        }
    }

    /// Calls as an operator with somebody's token or none.
    async fn ask_as_operator(self, token: Option<Token>, status: u16) {
        let channel = connect(&format!("http://{}", self.address), None).expect("an address");
        let client = JsonClient::new(channel, token);
        while self.goes_on() {
            // Who is refused too often is hung up on.
            match client.get::<Value>("/v1/runs").await.expect_err("it is not let in") {
                CallFailure::Refused(refusal, _) if refusal.as_u16() == status => {
                    self.count("wrong tokens of operators, refused");
                }
                CallFailure::Refused(refusal, said) => panic!("{refusal}: {said}"),
                CallFailure::Broken(_) | CallFailure::Late => {}
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn reset_connections(self) {
        while self.goes_on() {
            let Ok(mut stream) = self.connect().await else { continue };
            drop(stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").await);
            drop(stream.set_zero_linger());
            self.count("connections that were reset");
        }
    }

    /// Makes calls and takes them back at once ("rapid reset").
    async fn reset_calls(self) {
        let headers = raw::call("POST", "/nqueens.v1.WorkerService/Sync", WRONG_TOKEN);
        while self.goes_on() {
            let Ok(mut stream) = self.greet(NO_SETTINGS).await else { continue };
            for number in (1..10_000).step_by(2) {
                let reset = frame(RST_STREAM, 0, number, &[0, 0, 0, 8]);
                let call = [frame(HEADERS, END_HEADERS, number, &headers), reset].concat();
                if !self.goes_on() || stream.write_all(&call).await.is_err() {
                    break;
                }
                self.count("calls that were reset");
            }
        }
    }

    /// Answers pings that nobody sent: the library logs each.
    async fn answer_pings(self) {
        let pings = frame(PING, ACK, 0, b"whatever").repeat(100);
        while self.goes_on() {
            let Ok(mut stream) = self.greet(NO_SETTINGS).await else { continue };
            while self.goes_on() && stream.write_all(&pings).await.is_ok() {
                self.scene.count("pings that nobody sent, answered", 100);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// Has an operator's token, asks for the runs again and again and takes no answer.
    async fn read_nothing(self) {
        let headers = raw::call("GET", "/v1/runs", OPERATOR_TOKEN);
        let call = |number: u32| frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &headers);
        let calls = (0..60).map(call).collect::<Vec<_>>().concat();
        while self.goes_on() {
            let Ok(mut stream) = self.greet(NO_WINDOW).await else { continue };
            if stream.write_all(&calls).await.is_ok() {
                let ended = tokio::time::timeout(Duration::from_mins(2), raw::stay_alive(&mut stream)).await;
                assert!(ended.is_ok(), "whoever reads nothing is hung up on");
                self.count("connections that read nothing, closed");
            }
        }
    }

    /// Has a worker's token, begins a message and never comes to its end.
    async fn write_a_call_slowly(self, token: String) {
        let headers = raw::call("POST", "/nqueens.v1.WorkerService/Sync", &token);
        while self.goes_on() {
            let Ok(mut stream) = self.greet(NO_SETTINGS).await else { continue };
            let mut said = stream.write_all(&frame(HEADERS, END_HEADERS, 1, &headers)).await;
            said = said.and(stream.write_all(&frame(DATA, 0, 1, &[0, 0, 3, 0, 0])).await);
            while self.goes_on() && said.is_ok() {
                said = stream.write_all(&frame(DATA, 0, 1, &[0])).await;
                self.scene.rest(Duration::from_millis(200)).await;
            }
            self.count("slow calls, ended");
        }
    }
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

fn request(page: &str, line: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nHost: {page}\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Asks once; the answer, head and body.
fn ask(page: &str, line: &str, headers: &str, body: &str) -> io::Result<String> {
    let mut stream = Blocking::connect(page)?;
    stream.set_read_timeout(Some(Duration::from_mins(1)))?;
    stream.write_all(request(page, line, headers, body).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Logs in and looks at the page, as people do.
pub(super) fn look(page: &str) -> io::Result<()> {
    let entered = ask(page, "POST /login", FORM, &format!("token={OPERATOR_TOKEN}"))?;
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
    let cookie = cookie.ok_or_else(|| io::Error::other(entered.clone()))?;
    let shown = ask(page, "GET /", &format!("Cookie: {cookie}\r\n"), "")?;
    if shown.starts_with("HTTP/1.1 200 ") { Ok(()) } else { Err(io::Error::other(shown)) }
}

/// The calls that were refused so far, as Prometheus is told.
pub(super) fn refused_calls(page: &str) -> u64 {
    let header = format!("Authorization: Bearer {OPERATOR_TOKEN}\r\n");
    let metrics = ask(page, "GET /metrics", &header, "").expect("metrics for everyone with the token");
    let line = metrics.lines().find_map(|line| line.strip_prefix("nqueens_refused_calls_total "));
    line.unwrap_or_else(|| panic!("{metrics}")).parse().expect("a whole number")
}
