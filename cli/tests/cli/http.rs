//! Just enough of HTTP to ask one thing at a time, and programs from elsewhere that some tests need.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use crate::processes::Coordinator;
use crate::{Outcome, Place};

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Status line and headers, as they came.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// A header's value; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or("", |(_, value)| value.trim())
    }
}

/// Sends a request and leaves the connection open.
pub(crate) fn send(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(Duration::from_mins(2))).expect("a time");
    let own = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = if own { String::new() } else { format!("Host: {address}\r\n") };
    let headers =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<Vec<_>>().concat();
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\n{host}{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).expect("sent");
    stream
}

/// Asks and waits for the whole answer.
pub(crate) fn ask(address: &str, request: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = BufReader::new(send(address, request, headers, body));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(stream.read_line(&mut head).expect("text") > 0, "the answer ends early: {head}");
    }
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    let mut answer = Answer { status, head, body: String::new() };
    // Not everybody closes the connection when asked to.
    let length = answer.header("content-length").parse().unwrap_or(u64::MAX);
    stream.take(length).read_to_string(&mut answer.body).expect("text");
    answer
}

/// Gets something without more words.
pub(crate) fn get(address: &str, path: &str) -> Answer {
    ask(address, &format!("GET {path}"), &[], "")
}

/// Where a coordinator shows its page; of a wildcard address the loopback one.
pub(crate) fn page_of(coordinator: &Coordinator) -> String {
    coordinator.address.replace("0.0.0.0", "127.0.0.1")
}

/// What curl gets there; fails if the answer is an error.
pub(crate) fn curl(place: &Place, arguments: &str) -> Outcome {
    Outcome::of(place.program("curl").args(["--silent", "--show-error", "--fail"]).args(arguments.split(' ')))
}

/// Whether a program is here that only some machines have. Where it is not, the test is skipped.
pub(crate) fn is_here(program: &str) -> bool {
    let version = match program {
        "ssh" => "-V",
        "kubectl" => "help",
        _ => "--version",
    };
    succeeds_or_skips(program, Command::new(program).arg(version))
}

/// The same of a module of Python's.
pub(crate) fn has_module(module: &str) -> bool {
    succeeds_or_skips(
        &format!("Python's {module}"),
        Command::new("python3").args(["-c", &format!("import {module}")]),
    )
}

fn succeeds_or_skips(needed: &str, probe: &mut Command) -> bool {
    let here = probe.output().is_ok_and(|output| output.status.success());
    if !here {
        skip(&format!("{needed}, which is not installed"));
    }
    here
}

/// Says that this test is skipped, and what it needs. With `NO_SKIPS` set, as in `.ci/run`, it fails.
pub(crate) fn skip(needed: &str) {
    assert!(std::env::var_os("NO_SKIPS").is_none(), "this is needed here: {needed}");
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    // Past the test harness, which keeps what a passing test prints to itself.
    writeln!(std::io::stderr(), "\nSKIPPED: {test} needs {needed}\n").expect("stderr");
}
