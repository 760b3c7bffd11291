//! Counts a variant on this machine's processor, without a coordinator: pieces one by one, each kept in a file.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use nqueens_kernel::counts::Overflow;
use nqueens_kernel::engine::{Control, Kernel, Tally};
use nqueens_kernel::known::published;
use nqueens_kernel::variant::{Piece, PieceFingerprinter, Variant, VariantPlan};
use nqueens_model::operator::span;
use serde_json::json;

use super::progress_file::{Cut, ProgressFile};
use crate::command::variant::describe;
use crate::engines::ENGINES;
use crate::output::{Json, print_line, quantity, thousands};
use crate::progress::{LINE_EVERY, PICTURE_EVERY};
use crate::signals::SignalReceiver;

/// A variant to be counted, and how.
pub(super) struct VariantRun {
    pub(super) variant: Variant,
    pub(super) db: Option<PathBuf>,
    pub(super) kernel: Kernel,
    pub(super) threads: NonZeroUsize,
    pub(super) states_per_piece: Option<u64>,
    pub(super) pieces_max: u32,
    pub(super) json: Json,
}

/// A piece with its number in the plan.
type Numbered = (usize, Piece);

impl VariantRun {
    /// Its file: by default one that no other variant has.
    pub(super) fn path(&self) -> PathBuf {
        let name = || match &self.variant {
            Variant::Torus(n) => format!("nqueens-{n}-torus.progress"),
            Variant::Cells(cells) => {
                let digits = self.variant.fingerprint().to_string();
                format!("nqueens-{}-{}.progress", cells.n(), &digits[..8])
            }
        };
        self.db.clone().unwrap_or_else(|| name().into())
    }

    /// Counts what is left of it, if anything is, and prints the sum; `None` if it was interrupted.
    pub(super) fn count(self, told: &SignalReceiver) -> anyhow::Result<Option<ExitCode>> {
        let (begun, path) = (Instant::now(), self.path());
        let mut file = ProgressFile::open(&path, &self.variant)?;
        let Some((plan, guesses)) = self.planned(&path, &mut file, told)? else { return Ok(None) };
        let is_open = file.done.len() < guesses.len();
        if is_open {
            let counted = self.count_pieces(&plan, &guesses, &mut file, told);
            let kept = counted.and_then(|is_whole| file.sync().map(|()| is_whole));
            if !kept.with_context(|| path.display().to_string())? {
                return Ok(None);
            }
        }
        let sum = |sum: u128, tally: &Tally| sum.checked_add(tally.completions.into()).ok_or(Overflow);
        let total = file.done.values().try_fold(0, sum)?;
        // The file does not say which engine has counted its pieces.
        let kernel = is_open.then(|| self.kernel.name());
        self.print(total, guesses.len(), begun.elapsed(), kernel)?;
        Ok(Some(ExitCode::SUCCESS))
    }

    /// The plan, as the file has it or a new one, with a guess at the work of each piece; `None` if it was interrupted.
    fn planned(
        &self,
        path: &Path,
        file: &mut ProgressFile,
        told: &SignalReceiver,
    ) -> anyhow::Result<Option<(VariantPlan, Vec<u64>)>> {
        let states = file.cut.as_ref().map(|cut| cut.states_per_piece).or(self.states_per_piece);
        let plan = match states {
            Some(states) => VariantPlan::with_states_per_piece(self.variant.clone(), states),
            None => VariantPlan::new(self.variant.clone()),
        };
        let (mut fingerprinter, mut guesses) = (PieceFingerprinter::new(&plan), Vec::new());
        for piece in plan.pieces() {
            if told.borrow().is_some() {
                return Ok(None);
            }
            ensure!(
                guesses.len() < self.pieces_max as usize,
                "there are more than {} pieces; choose larger ones (--job-states) or allow more (--jobs-max)",
                thousands(self.pieces_max)
            );
            fingerprinter.add(&piece);
            guesses.push(piece.states_estimate());
        }
        let cut = Cut {
            states_per_piece: plan.states_per_piece(),
            pieces: guesses.len(),
            fingerprint: fingerprinter.finish().to_string(),
        };
        match &file.cut {
            None => file.begin(&self.variant, cut).with_context(|| path.display().to_string())?,
            Some(found) => ensure!(
                *found == cut,
                "{} was written by a version that cuts this board into other pieces; choose another --db",
                path.display()
            ),
        }
        Ok(Some((plan, guesses)))
    }

    /// Counts the pieces that the file has not; false if it was interrupted.
    fn count_pieces(
        &self,
        plan: &VariantPlan,
        guesses: &[u64],
        file: &mut ProgressFile,
        told: &SignalReceiver,
    ) -> anyhow::Result<bool> {
        let done = file.done.clone();
        let left = plan.pieces().enumerate().filter(move |(number, _)| !done.contains_key(number));
        let left = Mutex::new(left);
        let take = || left.lock().expect("no thread panics with it").next();
        let control = Control::default();
        let mut progress = Progress::new(guesses, file);
        let (send, found) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..self.threads.get() {
                let (send, take, control) = (send.clone(), &take, &control);
                scope.spawn(move || count_each(take, self.kernel, control, &send));
            }
            drop(send);
            loop {
                match found.recv_timeout(PICTURE_EVERY) {
                    Ok((number, tally)) => {
                        progress.add(guesses[number]);
                        // Nobody counts what can't be kept.
                        file.add(number, tally).inspect_err(|_| control.stop())?;
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Ok(file.done.len() == guesses.len()),
                }
                progress.show(control.states(), file.done.len());
                if told.borrow().is_some() {
                    control.stop();
                }
            }
        })
    }

    /// `elapsed` and `kernel` are this process's.
    fn print(
        &self,
        total: u128,
        pieces: usize,
        elapsed: Duration,
        kernel: Option<&str>,
    ) -> anyhow::Result<()> {
        let what = describe(&self.variant);
        let known = self.variant.published();
        if known.is_some_and(|known| known != total) {
            let known = known.map(thousands).unwrap_or_default();
            bail!(
                "{what}: counted {}, but {known} is published: do not trust this machine or this build",
                thousands(total)
            );
        }
        let whole_board = published(self.variant.n()).map_or(u128::MAX, |known| known.total);
        ensure!(total <= whole_board, "{what}: counted {total}, more than the whole board has");
        if self.json.json {
            let (name, given, blocked, kernel) = match &self.variant {
                // Its search is one of its own.
                Variant::Torus(_) => ("torus", Vec::new(), 0, None),
                Variant::Cells(cells) => {
                    let given = cells.given().iter().map(|cell| cell.name(cells.n()));
                    ("cells", given.collect(), cells.blocked(), kernel)
                }
            };
            let line = json!({
                "n": self.variant.n().get(),
                "variant": name,
                "given": given,
                "blocked": blocked,
                "total": total.to_string(),
                "pieces": pieces,
                "elapsed_s": elapsed.as_secs_f64(),
                "kernel": kernel,
                "check": if known.is_some() { "published" } else { "none" },
                "confirmed": known.is_some(),
            });
            return Ok(print_line(line)?);
        }
        print_line(&what)?;
        print_line(format_args!("TOTAL   {}", thousands(total)))?;
        Ok(print_line(match known {
            Some(_) => "equal to the published count",
            None => "counted, not confirmed: no count of such a board is published",
        })?)
    }
}

/// One thread: counts pieces until none is left, or it is stopped.
fn count_each(
    take: impl Fn() -> Option<Numbered>,
    kernel: Kernel,
    control: &Control,
    found: &Sender<(usize, Tally)>,
) {
    let mut engine = ENGINES(kernel.name()).expect("it has passed its self-test");
    while let Some((number, piece)) = take() {
        let Ok(tallies) = Piece::count(&[piece], engine.as_mut(), control) else { return };
        // Nobody listens any more where the file can't be written.
        if found.send((number, tallies[0])).is_err() {
            return;
        }
    }
}

/// How far it is, on stderr: a line that changes on a terminal, otherwise a line per interval.
struct Progress {
    bar: Option<ProgressBar>,
    begun: Instant,
    shown: Instant,
    pieces: usize,
    /// Guesses at all the work, at what was done before, and since.
    all: u128,
    before: u128,
    since: u128,
}

impl Progress {
    fn new(guesses: &[u64], file: &ProgressFile) -> Self {
        let sum = |guesses: &mut dyn Iterator<Item = &u64>| guesses.map(|guess| u128::from(*guess)).sum();
        let now = Instant::now();
        let line = || ProgressStyle::with_template("{wide_msg}").expect("a valid template");
        Self {
            bar: std::io::stderr().is_terminal().then(|| ProgressBar::new_spinner().with_style(line())),
            begun: now,
            shown: now,
            pieces: guesses.len(),
            all: sum(&mut guesses.iter()),
            before: sum(&mut file.done.keys().map(|number| &guesses[*number])),
            since: 0,
        }
    }

    fn add(&mut self, guess: u64) {
        self.since += u128::from(guess);
    }

    fn show(&mut self, states: u64, done: usize) {
        let every = if self.bar.is_some() { PICTURE_EVERY } else { LINE_EVERY };
        if self.shown.elapsed() < every {
            return;
        }
        self.shown = Instant::now();
        let text = self.describe(states, done);
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None => eprintln!("{text}"),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn describe(&self, states: u64, done: usize) -> String {
        let elapsed = self.begun.elapsed().as_secs_f64();
        let share = (self.before + self.since) as f64 / self.all as f64;
        let left = (self.since > 0)
            .then(|| span(elapsed * (self.all - self.before - self.since) as f64 / self.since as f64));
        format!(
            "{:.1} %, {} of {} pieces, {} states/s, {} left",
            100.0 * share,
            thousands(done),
            thousands(self.pieces),
            quantity(states as f64 / elapsed),
            left.unwrap_or_else(|| "?".to_owned())
        )
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
