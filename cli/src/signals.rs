//! Signals that stop the process.

use std::io;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

use crate::exit::INTERRUPTED;

/// A process that keeps a ledger ends within 5 seconds of a signal: this is the time until it is ended, whatever it is
/// at. A commit is whole or has not happened, so nothing acknowledged is lost.
pub(crate) const END_WITHIN: Duration = Duration::from_millis(4_500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM: a request to stop.
    Terminate,
    /// Ctrl-C: somebody at the terminal does.
    Interrupt,
}

/// The signal that came, if one did.
pub(crate) type SignalReceiver = watch::Receiver<Option<Signal>>;

/// Listens for SIGTERM and Ctrl-C from now on, on a thread of its own: no work of this process holds it up. The first signal is
/// delivered. The process ends at the second Ctrl-C, and this time after the first signal. Another SIGTERM changes nothing:
/// Slurm sends two, one right after the other.
pub(crate) fn signals(end_within: Option<Duration>) -> io::Result<SignalReceiver> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listening = {
        let _runtime = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    let (tell, told) = watch::channel(None);
    let wait = async move {
        let (mut terminate, mut interrupt) = listening;
        let mut next = async || {
            tokio::select! {
                _ = terminate.recv() => Signal::Terminate,
                _ = interrupt.recv() => Signal::Interrupt,
            }
        };
        let first = next().await;
        tell.send_replace(Some(first));
        let aborted = async {
            let mut interrupts = u32::from(first == Signal::Interrupt);
            while interrupts < 2 {
                interrupts += u32::from(next().await == Signal::Interrupt);
            }
        };
        if timeout(end_within.unwrap_or(Duration::MAX), aborted).await.is_err() {
            warn!("stopping takes too long: the process ends now; everything acknowledged so far is safe");
        }
        std::process::exit(INTERRUPTED.into());
    };
    thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(wait))?;
    Ok(told)
}

pub(crate) async fn stopped(mut told: SignalReceiver) {
    // Its sender lives as long as the process.
    drop(told.wait_for(Option::is_some).await);
}
