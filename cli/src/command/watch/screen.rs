//! The terminal: taken over, drawn on, and restored in every case, after a panic too.

use std::convert::Infallible;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::draw::draw;
use super::source::{Command, Snapshot, Source};
use super::view::{Effect, View};
use super::{RETRY, WatchCommand};
use crate::console::colours_wanted;
use crate::exit::INTERRUPTED;

enum Message {
    Snapshot(Snapshot),
    /// There is no snapshot, for this reason; the next try is under way.
    Lost(String),
    Answer(Result<String, String>),
}

/// Gives the terminal back when it is dropped. After a panic, ratatui's own hook does so before it prints the message.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl WatchCommand {
    /// Draws until a key or a signal ends it.
    pub(super) async fn show_screen(&self, mut source: Source) -> anyhow::Result<ExitCode> {
        // An error at the beginning is printed on the terminal as it was.
        let first = source.snapshot().await?;
        let every = Duration::from_secs(if source.is_database() { 5 } else { 1 });
        let view = View::new(self.target.describe(), source.is_database(), first);
        let (tell, messages) = unbounded_channel();
        let (command, commands) = unbounded_channel();
        // All on one task: a panic anywhere ends it all, and leaves no half of it on the screen.
        tokio::select! {
            outcome = converse(view, messages, command) => outcome,
            never = tend(source, self.interval.unwrap_or(every), commands, tell) => match never {},
        }
    }
}

/// Takes snapshots and executes commands, one after the other.
async fn tend(
    mut source: Source,
    every: Duration,
    mut commands: UnboundedReceiver<Command>,
    tell: UnboundedSender<Message>,
) -> Infallible {
    let mut pause = Duration::ZERO;
    loop {
        if let Ok(Some(command)) = timeout(pause, commands.recv()).await {
            let answer = source.execute(command).await.map_err(|error| format!("{error:#}"));
            drop(tell.send(Message::Answer(answer)));
        }
        let taken = source.snapshot().await;
        pause = if taken.is_ok() { every } else { every.max(RETRY) };
        drop(tell.send(match taken {
            Ok(snapshot) => Message::Snapshot(snapshot),
            Err(error) => Message::Lost(format!("{error:#}")),
        }));
    }
}

/// Draws, waits for a key or a message, and draws again.
async fn converse(
    mut view: View,
    mut messages: UnboundedReceiver<Message>,
    commands: UnboundedSender<Command>,
) -> anyhow::Result<ExitCode> {
    let _restore = Restore;
    let mut terminal = ratatui::try_init().context("opening the terminal; --plain prints lines instead")?;
    let with_colours = colours_wanted();
    let mut keys = keys();
    // Requests without an answer: to leave at once would take them back.
    let (mut open, mut leaving) = (0, false);
    loop {
        terminal.draw(|frame| draw(frame, &view, with_colours)).context("drawing on the terminal")?;
        let event = tokio::select! {
            event = keys.recv() => event.context("reading keys from the terminal")??,
            Some(message) = messages.recv() => {
                match message {
                    Message::Snapshot(snapshot) => view.update(snapshot),
                    Message::Lost(reason) => view.lost = Some(reason),
                    Message::Answer(answer) => {
                        open -= 1;
                        if leaving && open == 0 {
                            return answer.map(|_| ExitCode::SUCCESS).map_err(anyhow::Error::msg);
                        }
                        view.notice = Some(answer);
                    }
                }
                continue;
            }
        };
        let Event::Key(key) = event else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match view.press(key) {
            Some(Effect::Leave) if open > 0 && !leaving => {
                leaving = true;
                view.notice = Some(Ok("waiting for the answer; q again leaves at once".to_owned()));
            }
            Some(Effect::Leave) => return Ok(ExitCode::SUCCESS),
            Some(Effect::Interrupt) => return Ok(ExitCode::from(INTERRUPTED)),
            Some(Effect::Execute(command)) => open += u32::from(commands.send(command).is_ok()),
            None => {}
        }
    }
}

/// What the terminal sends. The thread waits for a key when the process ends, and ends with it.
fn keys() -> UnboundedReceiver<std::io::Result<Event>> {
    let (sender, keys) = unbounded_channel();
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            let failed = event.is_err();
            if sender.send(event).is_err() || failed {
                return;
            }
        }
    });
    keys
}
