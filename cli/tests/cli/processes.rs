//! The program in the background: processes that serve and count.

use std::net::Ipv4Addr;
use std::process::Command;

pub(crate) use nqueens_faults::process::{Background, eventually};
use serde_json::Value;

use crate::{Outcome, Place};

pub(crate) const WORKER_TOKEN: &str = "token-for-workers-0123456789";
pub(crate) const OPERATOR_TOKEN: &str = "token-for-operators-0123456789";

/// A coordinator that serves.
pub(crate) struct Coordinator {
    pub(crate) process: Background,
    pub(crate) address: String,
}

impl Coordinator {
    /// On a free port of this machine, with `queens.db`.
    pub(crate) fn start(place: &Place, variables: &[(&str, &str)], more: &str) -> Self {
        Self::start_at(&format!("{}:0", own_address()), place, variables, more)
    }

    /// On this address, with `queens.db`.
    pub(crate) fn start_at(address: &str, place: &Place, variables: &[(&str, &str)], more: &str) -> Self {
        let arguments = format!("coordinator --db queens.db --listen {address} {more}");
        Self::of(place.command(&arguments).envs(variables.iter().copied()))
    }

    /// By this command.
    pub(crate) fn of(command: &mut Command) -> Self {
        let (process, address) = Background::listening(command);
        Self { process, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A worker of one thread, on the spool of its name.
    pub(crate) fn worker(&self, place: &Place, name: &str, variables: &[(&str, &str)]) -> Background {
        self.worker_on(place, name, name, variables)
    }

    /// A worker of one thread, on a spool that another may have used before.
    pub(crate) fn worker_on(
        &self,
        place: &Place,
        name: &str,
        spool: &str,
        variables: &[(&str, &str)],
    ) -> Background {
        let arguments = self.worker_arguments("http", name, spool);
        Background::start(place.command(&arguments).envs(variables.iter().copied()))
    }

    /// What starts such a worker.
    pub(crate) fn worker_arguments(&self, scheme: &str, name: &str, spool: &str) -> String {
        let url = format!("{scheme}://{}", self.address);
        format!("worker --coordinator {url} --name {name} --spool {spool} --threads 1 --kernel scalar")
    }

    /// Has it plan a run, as `submit` is told; the run's id.
    pub(crate) fn submit(&self, place: &Place, arguments: &str) -> String {
        place.stdout(&format!("submit {arguments} --coordinator {}", self.url())).trim_end().to_owned()
    }

    /// Waits until its first run is done; what is told of that.
    pub(crate) fn done(&self, place: &Place) -> Value {
        eventually("the run is done", || {
            let run = place.json(&format!("status --json --coordinator {}", self.url()))["runs"][0].take();
            (run["state"] == "done").then_some(run)
        })
    }

    pub(crate) fn stop(mut self) -> Outcome {
        self.process.signal("-TERM");
        self.process.end()
    }
}

/// What a process leaves behind that ends by itself, in ten minutes at most.
pub(crate) fn ended(process: &mut Background) -> Outcome {
    eventually("it ends", || (!process.is_running()).then_some(()));
    process.end()
}

/// Has a process end as it should.
pub(crate) fn end_well(mut process: Background) {
    process.signal("-TERM");
    let outcome = ended(&mut process);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

/// Processor time of a process so far, in microseconds.
pub(crate) fn cpu_us(process: &Background) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).expect("it is there");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in brackets");
    let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number"));
    // Linux tells hundredths of a second to programs, whatever it counts in.
    ticks.sum::<f64>() * 1e4
}

/// A loopback address that no other test's process uses: while a coordinator is away, nobody can take its port.
pub(crate) fn own_address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 0x80, middle, low)
}
