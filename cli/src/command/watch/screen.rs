//! The terminal: taken over, drawn on, and restored in every case, after a panic too.

use std::process::ExitCode;

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::sync::mpsc;

use super::WatchCommand;
use super::app::{App, Effect};
use super::draw::{Palette, draw};
use super::feed::{Feed, FeedMessage, Order, obey};
use crate::console::colours_wanted;
use crate::exit::INTERRUPTED;

/// Keys, news and orders that may wait.
const WAITING_MAX: usize = 64;

/// Gives the terminal back when it is dropped. A panic does before it tells of itself, by ratatui's own hook.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl WatchCommand {
    /// Draws pictures until somebody has seen enough.
    pub(super) async fn show_pictures(&self) -> anyhow::Result<ExitCode> {
        let mut feed = Feed::new(self)?;
        // What is wrong from the beginning is said on the terminal as it was.
        let first = feed.picture().await?;
        let client = feed.client();
        let app = App::new(self.target.describe(), client.is_none(), first);
        let (tell, news) = mpsc::channel(WAITING_MAX);
        let (order, orders) = mpsc::channel(WAITING_MAX);
        let obeying = async {
            if let Some(client) = client {
                obey(client, orders, tell.clone()).await;
            }
            std::future::pending().await
        };
        // All on one task: a panic anywhere ends it all, and no half of it stays behind on the screen.
        tokio::select! {
            outcome = converse(app, news, order) => outcome,
            outcome = obeying => outcome,
            never = feed.keep_taking(tell.clone()) => match never {},
        }
    }
}

/// Draws, waits for a key or for news, and draws again.
async fn converse(
    mut app: App,
    mut news: mpsc::Receiver<FeedMessage>,
    order: mpsc::Sender<Order>,
) -> anyhow::Result<ExitCode> {
    let _restore = Restore;
    let mut terminal = ratatui::try_init().context("opening the terminal; --plain prints lines instead")?;
    let palette = Palette { colours: colours_wanted() };
    let mut keys = keys();
    loop {
        terminal.draw(|frame| draw(frame, &app, palette)).context("drawing on the terminal")?;
        let event = tokio::select! {
            event = keys.recv() => event.context("reading keys from the terminal")??,
            Some(news) = news.recv() => {
                app.hear(news);
                continue;
            }
        };
        let Event::Key(key) = event else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        match app.press(key) {
            Some(Effect::Leave) => return Ok(ExitCode::SUCCESS),
            Some(Effect::Interrupt) => return Ok(ExitCode::from(INTERRUPTED)),
            Some(Effect::Obey(wanted)) if order.try_send(wanted).is_err() => {
                app.notice = Some(Err("too many requests at once; try again".to_owned()));
            }
            Some(Effect::Obey(_)) | None => {}
        }
    }
}

/// What the terminal sends. The thread waits for a key when the process ends, and ends with it.
fn keys() -> mpsc::Receiver<std::io::Result<Event>> {
    let (sender, keys) = mpsc::channel(WAITING_MAX);
    std::thread::spawn(move || {
        loop {
            let event = event::read();
            let failed = event.is_err();
            if sender.blocking_send(event).is_err() || failed {
                return;
            }
        }
    });
    keys
}
