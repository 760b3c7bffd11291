//! Those who mean harm, each a task that goes on until it is stopped and counts its tries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nqueens_proto::v1::worker_service_client::WorkerServiceClient;
use nqueens_proto::{
    CallFailure, JsonClient, MESSAGE_BYTES_MAX, PLANS, PROTOCOL_VERSION, Token, connect, v1,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tonic::codegen::{Service, http};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::raw::{self, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, NO_SETTINGS, NO_WINDOW, frame};
use crate::processes::{OPERATOR_TOKEN, WORKER_TOKEN};

/// Whom they attack, and how it goes.
#[derive(Debug, Default)]
pub(crate) struct Siege {
    pub(crate) address: String,
    stopped: AtomicBool,
    /// Connections that did nothing, and were hung up on.
    pub(crate) idle_ended: AtomicU64,
    /// Calls without a token or with a wrong one that were refused as they should be.
    pub(crate) refused: AtomicU64,
    /// Malformed things that were said.
    pub(crate) malformed: AtomicU64,
    /// Too large messages that were refused.
    pub(crate) oversized: AtomicU64,
    /// Those who wrote slowly and were hung up on or told to stop.
    pub(crate) slow_writers_ended: AtomicU64,
    /// Those who did not read and were hung up on.
    pub(crate) slow_readers_ended: AtomicU64,
    /// Registrations that went through, and those that were too many.
    pub(crate) registered: AtomicU64,
    pub(crate) registrations_refused: AtomicU64,
    /// Calls that were too many.
    pub(crate) calls_refused: AtomicU64,
}

fn count(what: &AtomicU64) {
    what.fetch_add(1, Ordering::Relaxed);
}

impl Siege {
    pub(crate) fn of(address: &str) -> Arc<Self> {
        Arc::new(Self { address: address.to_owned(), ..Self::default() })
    }

    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn channel(&self) -> Channel {
        connect(&format!("http://{}", self.address), None).expect("an address")
    }

    /// All kinds, with so many idle connections.
    pub(crate) fn begin(self: &Arc<Self>, idle: usize) -> Vec<JoinHandle<()>> {
        let mut tasks = self.begin_outside(idle);
        for (token, status) in
            [(None, 401), (Some("token-of-nobody-0123456789"), 401), (Some(WORKER_TOKEN), 403)]
        {
            tasks.push(tokio::spawn(Arc::clone(self).ask_as_operator(token, status)));
        }
        tasks.push(tokio::spawn(Arc::clone(self).say_too_much()));
        tasks.push(tokio::spawn(Arc::clone(self).write_a_call_slowly()));
        tasks.push(tokio::spawn(Arc::clone(self).read_nothing()));
        tasks.push(tokio::spawn(Arc::clone(self).register_crowds()));
        tasks.push(tokio::spawn(Arc::clone(self).call_again_and_again()));
        tasks
    }

    /// Those who need not be understood: they work against TLS as well.
    pub(crate) fn begin_outside(self: &Arc<Self>, idle: usize) -> Vec<JoinHandle<()>> {
        let mut tasks: Vec<_> =
            (0..idle).map(|number| tokio::spawn(Arc::clone(self).do_nothing(number))).collect();
        tasks.push(tokio::spawn(Arc::clone(self).talk_nonsense()));
        tasks.push(tokio::spawn(Arc::clone(self).write_a_greeting_slowly()));
        tasks
    }

    /// Holds a connection, some with a greeting and some without, and comes back when it is lost.
    async fn do_nothing(self: Arc<Self>, number: usize) {
        // Not all at the same moment: the kernel drops what it can't queue.
        tokio::time::sleep(Duration::from_millis(number as u64)).await;
        while self.goes_on() {
            let stream = if number.is_multiple_of(2) {
                TcpStream::connect(&self.address).await
            } else {
                raw::greet(&self.address, NO_SETTINGS).await
            };
            if let Ok(mut stream) = stream {
                let mut bytes = [0; 256];
                let mut ended = false;
                while self.goes_on() && !ended {
                    let read = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut bytes)).await;
                    ended = matches!(read, Ok(Ok(0) | Err(_)));
                }
                if ended {
                    count(&self.idle_ended);
                }
            }
            self.rest(Duration::from_secs(5)).await;
        }
    }

    /// Waits, but not beyond the end.
    async fn rest(&self, mut time: Duration) {
        while self.goes_on() && !time.is_zero() {
            let step = time.min(Duration::from_millis(200));
            tokio::time::sleep(step).await;
            time -= step;
        }
    }

    /// Calls as an operator with somebody's token or none.
    async fn ask_as_operator(self: Arc<Self>, token: Option<&'static str>, status: u16) {
        let token = token.map(|token| token.parse::<Token>().expect("a token"));
        let client = JsonClient::new(self.channel(), token);
        while self.goes_on() {
            // Who is refused too often is hung up on.
            match client.get::<Value>("/v1/runs").await.expect_err("it is not let in") {
                CallFailure::Refused(refusal, _) if refusal.as_u16() == status => count(&self.refused),
                CallFailure::Refused(..) => panic!("another refusal"),
                CallFailure::Broken(_) | CallFailure::Late => {}
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Says what is no HTTP/2, or none that makes sense.
    async fn talk_nonsense(self: Arc<Self>) {
        let headers = raw::call("POST", "/nqueens.v1.WorkerService/Sync", WORKER_TOKEN);
        let greeting = [raw::PREFACE, &frame(raw::SETTINGS, 0, 0, NO_SETTINGS)].concat();
        let huge = frame(HEADERS, 0, 1, &[0; 16_384]);
        let continued = frame(CONTINUATION, 0, 1, &[0x40; 16_384]);
        let message = [&[0, 0, 0, 0, 5][..], b"\xff\xff\xff\xff\xff"].concat();
        let nonsense = [
            b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n".to_vec(),
            (0..=255_u8).cycle().take(100_000).collect(),
            vec![0; 10_000],
            greeting[..greeting.len() - 5].to_vec(),
            [&*greeting, &[0xff; 9]].concat(),
            [&*greeting, &frame(HEADERS, END_HEADERS, 1, &[0xff; 1_000])].concat(),
            [&*greeting, &huge].into_iter().chain([&*continued; 100]).collect::<Vec<_>>().concat(),
            [&*greeting, &frame(HEADERS, END_HEADERS, 1, &headers), &frame(DATA, END_STREAM, 1, &message)]
                .concat(),
            [&*greeting, &frame(DATA, 0, 7, b"of a call that was never begun")].concat(),
            // A half of a frame, and then nothing.
            [&*greeting, &frame(HEADERS, END_HEADERS, 1, &headers)[..20]].concat(),
        ];
        let mut html = self.channel();
        while self.goes_on() {
            for bytes in &nonsense {
                if let Ok(mut stream) = TcpStream::connect(&self.address).await {
                    // It may be hung up on before it has said everything.
                    drop(stream.write_all(bytes).await);
                    count(&self.malformed);
                    drop(tokio::time::timeout(Duration::from_millis(50), stream.read(&mut [0; 1_000])).await);
                }
            }
            let request =
                http::Request::post(format!("http://{}/nqueens.v1.WorkerService/Sync", self.address));
            let request = request.header("content-type", "text/html").body(tonic::body::Body::empty());
            if std::future::poll_fn(|context| Service::<http::Request<_>>::poll_ready(&mut html, context))
                .await
                .is_ok()
            {
                drop(html.call(request.expect("a request")).await);
                count(&self.malformed);
            }
        }
    }

    /// Begins a greeting and never comes to its end.
    async fn write_a_greeting_slowly(self: Arc<Self>) {
        while self.goes_on() {
            let Ok(mut stream) = TcpStream::connect(&self.address).await else { continue };
            for byte in raw::PREFACE.iter().cycle() {
                if !self.goes_on() || stream.write_all(&[*byte]).await.is_err() {
                    break;
                }
                self.rest(Duration::from_millis(200)).await;
            }
            count(&self.slow_writers_ended);
        }
    }

    /// Has a token, begins a message and never comes to its end.
    async fn write_a_call_slowly(self: Arc<Self>) {
        let headers = raw::call("POST", "/nqueens.v1.WorkerService/Sync", WORKER_TOKEN);
        while self.goes_on() {
            let Ok(mut stream) = raw::greet(&self.address, NO_SETTINGS).await else { continue };
            let mut said = stream.write_all(&frame(HEADERS, END_HEADERS, 1, &headers)).await;
            said = said.and(stream.write_all(&frame(DATA, 0, 1, &[0, 0, 3, 0, 0])).await);
            while self.goes_on() && said.is_ok() {
                said = stream.write_all(&frame(DATA, 0, 1, &[0])).await;
                self.rest(Duration::from_millis(200)).await;
            }
        }
    }

    /// Has a token, asks for the runs again and again and takes no answer.
    async fn read_nothing(self: Arc<Self>) {
        let calls: Vec<_> = (0..60)
            .flat_map(|call| {
                let headers = raw::call("GET", "/v1/runs", OPERATOR_TOKEN);
                frame(HEADERS, END_HEADERS | END_STREAM, 2 * call + 1, &headers)
            })
            .collect();
        while self.goes_on() {
            let Ok(mut stream) = raw::greet(&self.address, NO_WINDOW).await else { continue };
            if stream.write_all(&calls).await.is_ok() {
                let ended = tokio::time::timeout(Duration::from_mins(2), raw::stay_alive(&mut stream)).await;
                assert!(ended.is_ok(), "whoever reads nothing is hung up on");
                count(&self.slow_readers_ended);
            }
        }
    }

    /// Has a token and sends more than any message may have.
    async fn say_too_much(self: Arc<Self>) {
        let mut client = WorkerServiceClient::new(self.channel());
        while self.goes_on() {
            let long = v1::RegisterRequest { name: "x".repeat(MESSAGE_BYTES_MAX), ..registration() };
            let refusal = client.register(with_token(long)).await.expect_err("too long");
            if refusal.code() == Code::OutOfRange {
                count(&self.oversized);
            }
            self.rest(Duration::from_millis(200)).await;
        }
    }

    /// Has a token and is very many.
    async fn register_crowds(self: Arc<Self>) {
        let mut client = WorkerServiceClient::new(self.channel());
        while self.goes_on() {
            match client.register(with_token(registration())).await {
                Ok(_) => count(&self.registered),
                Err(refusal) if refusal.code() == Code::ResourceExhausted => {
                    count(&self.registrations_refused);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Err(refusal) => assert!(!is_answer(&refusal), "{refusal:?}"),
            }
        }
    }

    /// Has a token and says over and over that it is there, on many calls at once.
    async fn call_again_and_again(self: Arc<Self>) {
        let client = WorkerServiceClient::new(self.channel());
        let callers = (0..8).map(|_| {
            let (siege, mut client) = (Arc::clone(&self), client.clone());
            tokio::spawn(async move {
                while siege.goes_on() {
                    let sync =
                        v1::SyncRequest { worker_id: u64::from(u32::MAX), ..v1::SyncRequest::default() };
                    let refusal = client.sync(with_token(sync)).await.expect_err("nobody has this id");
                    if refusal.code() == Code::ResourceExhausted {
                        count(&siege.calls_refused);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("it does not panic");
        }
    }
}

/// Whether a status comes from the coordinator, and not from a broken connection.
fn is_answer(status: &Status) -> bool {
    std::error::Error::source(status).is_none()
}

fn with_token<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    WORKER_TOKEN.parse::<Token>().expect("a token").attach(request.metadata_mut().as_mut());
    request
}

/// Of a process that was never there before.
fn registration() -> v1::RegisterRequest {
    v1::RegisterRequest {
        protocol_version: PROTOCOL_VERSION,
        plans: PLANS.0.to_vec(),
        instance: nqueens_proto::random_bytes::<16>().to_vec(),
        name: "one of many".to_owned(),
        build: "attack".to_owned(),
        kernels: vec!["scalar".to_owned()],
        threads: 1,
        capability: None,
    }
}
