//! The state of the screen, and how keys and updates change it. No drawing, no calls.

use std::cmp::Ordering;
use std::collections::HashMap;

use jiff::tz::TimeZone;
use nqueens_model::id::RunId;
use nqueens_model::operator::{Event, Moment, RunDetail, RunStatus, foremost};

use super::feed::{FeedMessage, Order};
use super::picture::{ClusterView, WorkerView};
use super::table::ListView;

/// A list on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Runs,
    Workers,
    Events,
}

impl Pane {
    pub(super) const ALL: [Self; 3] = [Self::Runs, Self::Workers, Self::Events];

    /// The orders that its rows can be put in.
    pub(super) const fn orders(self) -> &'static [&'static str] {
        match self {
            Self::Runs => &["age", "N", "share done", "time left"],
            Self::Workers => &["number", "name", "pace", "last seen"],
            Self::Events => &["newest"],
        }
    }
}

/// What keys mean just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Look,
    /// They are the text to filter by.
    Filter,
    /// They say whether this is to be done.
    Confirm(Order),
    /// They put the help away.
    Help,
}

/// What the world has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Leave,
    /// As if by a signal: Ctrl-C.
    Interrupt,
    Obey(Order),
}

/// The state of the screen.
#[derive(Clone, Debug)]
pub(super) struct App {
    /// Whom the picture is of: a coordinator's address or a file.
    pub(super) place: String,
    /// Whether it is a database, that nothing can be told.
    pub(super) read_only: bool,
    pub(super) picture: ClusterView,
    /// Why there are no pictures at present.
    pub(super) lost: Option<String>,
    /// The latest word on what was asked for: done, or why not.
    pub(super) notice: Option<Result<String, String>>,
    pub(super) focus: Pane,
    pub(super) mode: Mode,
    tables: [ListView; 3],
    details: HashMap<RunId, RunDetail>,
    /// Of the clock on the wall.
    pub(super) zone: TimeZone,
}

impl App {
    pub(super) fn new(place: String, read_only: bool, picture: ClusterView) -> Self {
        let mut app = Self {
            place,
            read_only,
            picture: ClusterView::default(),
            lost: None,
            notice: None,
            focus: Pane::Runs,
            mode: Mode::Look,
            tables: <[ListView; 3]>::default(),
            details: HashMap::new(),
            zone: TimeZone::system(),
        };
        if let Some(run) = foremost(&picture.runs) {
            app.table_mut(Pane::Runs).select(run.get());
        }
        app.hear(FeedMessage::Picture(picture));
        app
    }

    /// Takes in what came from the other side.
    pub(super) fn hear(&mut self, news: FeedMessage) {
        match news {
            FeedMessage::Picture(mut picture) => {
                self.details.retain(|run, _| picture.runs.iter().any(|status| status.progress.run == *run));
                self.details.extend(picture.details.drain());
                self.picture = picture;
                self.lost = None;
            }
            FeedMessage::Lost(reason) => self.lost = Some(reason),
            FeedMessage::Answer(answer) => self.notice = Some(answer),
        }
        self.settle();
    }

    /// The speeds of a run in states a second since it began, in up to so many columns: means of some moments each.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "for a picture"
    )]
    pub(super) fn speeds(&self, run: RunId, columns: usize) -> Vec<u64> {
        let moments = self.detail(run).map_or(&[][..], |detail| &detail.moments);
        let each = moments.len().div_ceil(columns.max(1)).max(1);
        let mean = |some: &[Moment]| {
            let sum: f64 = some.iter().map(|moment| moment.states_per_s).sum();
            (sum / some.len() as f64) as u64
        };
        moments.chunks(each).map(mean).collect()
    }

    /// What is told of a run alone, if it is known already.
    pub(super) fn detail(&self, run: RunId) -> Option<&RunDetail> {
        self.details.get(&run)
    }

    pub(super) fn table(&self, pane: Pane) -> &ListView {
        &self.tables[pane as usize]
    }

    pub(super) fn table_mut(&mut self, pane: Pane) -> &mut ListView {
        &mut self.tables[pane as usize]
    }

    /// The runs to be shown.
    pub(super) fn runs(&self) -> Vec<&RunStatus> {
        let table = self.table(Pane::Runs);
        let text = |run: &RunStatus| {
            let progress = &run.progress;
            format!("{} {} {} {}", progress.run, progress.n, run.plan.kind(), progress.state.name())
        };
        table.arrange(&self.picture.runs, text, |a, b| {
            let (a, b) = (&a.progress, &b.progress);
            match table.order {
                1 => a.n.cmp(&b.n),
                2 => a.share_done.total_cmp(&b.share_done),
                3 => {
                    let [a, b] = [a, b].map(|run| run.time_left_s.map_or(f64::INFINITY, |left| left.value));
                    a.total_cmp(&b)
                }
                _ => Ordering::Equal,
            }
        })
    }

    /// The workers to be shown.
    pub(super) fn workers(&self) -> Vec<&WorkerView> {
        let table = self.table(Pane::Workers);
        let text = |worker: &WorkerView| {
            format!("{} {} {} {}", worker.id, worker.name, worker.kernel, worker.state())
        };
        table.arrange(&self.picture.workers, text, |a, b| match table.order {
            1 => a.name.cmp(&b.name),
            2 => b.pace().total_cmp(&a.pace()),
            3 => a.silent_ms().cmp(&b.silent_ms()),
            _ => Ordering::Equal,
        })
    }

    /// The events to be shown.
    pub(super) fn events(&self) -> Vec<&Event> {
        let text = |event: &Event| format!("{} {}", about(event), event.text);
        let newest_first = |a: &Event, b: &Event| b.number.cmp(&a.number);
        self.table(Pane::Events).arrange(&self.picture.events, text, newest_first)
    }

    /// The numbers of the rows that a list shows.
    pub(super) fn shown(&self, pane: Pane) -> Vec<u64> {
        match pane {
            Pane::Runs => self.runs().iter().map(|run| run.progress.run.get()).collect(),
            Pane::Workers => self.workers().iter().map(|worker| worker.id.get()).collect(),
            Pane::Events => self.events().iter().map(|event| event.number).collect(),
        }
    }

    /// Which of the rows that a list shows is selected.
    pub(super) fn position(&self, pane: Pane) -> usize {
        self.table(pane).position(&self.shown(pane))
    }

    pub(super) fn selected_run(&self) -> Option<&RunStatus> {
        self.runs().get(self.position(Pane::Runs)).copied()
    }

    pub(super) fn selected_worker(&self) -> Option<&WorkerView> {
        self.workers().get(self.position(Pane::Workers)).copied()
    }

    /// Has every list hold on to its selected row.
    pub(super) fn settle(&mut self) {
        for pane in Pane::ALL {
            let shown = self.shown(pane);
            self.table_mut(pane).settle(&shown);
        }
    }
}

/// The run or the worker that an event is about.
pub(super) fn about(event: &Event) -> String {
    match (event.run, event.worker) {
        (Some(run), _) => format!("run {run}"),
        (None, Some(worker)) => format!("worker {worker}"),
        (None, None) => String::new(),
    }
}
