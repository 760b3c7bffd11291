//! Signals that stop the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit::INTERRUPTED;

/// How a process was told to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGTERM: a request to stop.
    Terminate,
    /// Ctrl-C: somebody at the terminal does.
    Interrupt,
}

/// Listens for SIGTERM and Ctrl-C from now on. The first is delivered; the second ends the process.
pub(crate) fn signals() -> std::io::Result<watch::Receiver<Option<Signal>>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (tell, told) = watch::channel(None);
    tokio::spawn(async move {
        loop {
            let signal = tokio::select! {
                _ = terminate.recv() => Signal::Terminate,
                _ = interrupt.recv() => Signal::Interrupt,
            };
            if tell.send_replace(Some(signal)).is_some() {
                std::process::exit(INTERRUPTED.into());
            }
        }
    });
    Ok(told)
}

/// Waits for Ctrl-C or SIGTERM.
pub(crate) async fn interrupted() {
    let mut terminate = signal(SignalKind::terminate()).expect("signals can be waited for");
    tokio::select! {
        _ = terminate.recv() => {}
        outcome = tokio::signal::ctrl_c() => outcome.expect("signals can be waited for"),
    }
}
