//! `nqueens watch` and what asks or draws, at a terminal: a real one, but for the screen and the keys.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use vt100::{Color, Screen};

use crate::Place;
use crate::processes::{Background, Coordinator, eventually};

/// A program at a terminal of 24 lines.
struct AtTerminal {
    program: Child,
    columns: u16,
    keyboard: File,
    settings: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl AtTerminal {
    fn start(command: &mut Command) -> Self {
        Self::start_at(80, command)
    }

    fn start_at(columns: u16, command: &mut Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).expect("a size");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let settings =
            rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
        let before = tcgetattr(&settings).expect("its settings");
        let end = || Stdio::from(settings.try_clone().expect("a descriptor"));
        let program = command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end()).spawn();
        let keyboard = File::from(master);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (keyboard.try_clone().expect("a descriptor"), seen.clone());
        // It ends with the terminal, when the last who has it open is gone.
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                kept.lock().expect("no panic").extend_from_slice(&bytes[..count]);
            }
        });
        Self { program: program.expect("the program starts"), columns, keyboard, settings, before, seen }
    }

    /// The screen as it is now.
    fn screen(&self) -> Screen {
        let [lines, columns] = [24, self.columns].map(|size| NonZero::new(size).expect("a size"));
        let mut parser = vt100::Parser::new(lines, columns, 0);
        parser.process(&self.seen.lock().expect("no panic"));
        parser.screen().clone()
    }

    /// Its first two lines.
    fn lines(&self) -> [String; 2] {
        let screen = self.screen();
        let mut lines = screen.rows(0, self.columns);
        [(); 2].map(|()| lines.next().expect("there are more"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.program), signal).expect("sent");
    }

    fn wait_for(&self, text: &str) {
        eventually(text, || self.screen().contents().contains(text).then_some(()));
    }

    /// Whether the program ever sent anything but text.
    fn was_drawn_on(&self) -> bool {
        self.seen.lock().expect("no panic").contains(&0x1b)
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("typed");
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.settings).expect("its settings").local_modes.contains(LocalModes::ICANON)
    }

    /// The exit code, once the terminal was found as it had been.
    fn end(mut self) -> i32 {
        let status = self.program.wait().expect("a child");
        let restored = |screen: &Screen| !screen.alternate_screen() && !screen.hide_cursor();
        eventually("the screen of before", || restored(&self.screen()).then_some(()));
        let after = tcgetattr(&self.settings).expect("its settings");
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        assert_eq!(after.output_modes, self.before.output_modes);
        status.code().expect("no signal ended it")
    }
}

impl Drop for AtTerminal {
    fn drop(&mut self) {
        // Fails where it has ended already.
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

/// A coordinator with a run that outlasts any test, in short jobs, and one who counts it.
fn cluster(place: &Place) -> (Coordinator, Background, String) {
    let coordinator = Coordinator::start(place, &[], "--sync-seconds 1");
    let run = coordinator.submit(place, "20 --plan border --job-states 50000000");
    let worker = coordinator.worker(place, "west", &[]);
    (coordinator, worker, run)
}

#[test]
fn the_progress_of_a_run_is_one_line_and_leaves_nothing_behind() {
    let place = Place::new();
    for columns in [80, 40] {
        let board = "run 16 --threads 1 --kernel scalar --plan border --job-states 5000000";
        let mut command = place.command(&format!("{board} --db {columns}.db"));
        let run = AtTerminal::start_at(columns, &mut command);
        let seen = eventually("the progress is shown", || {
            Some(run.lines()).filter(|lines| lines[0].contains(" %  "))
        });
        assert_eq!(seen[1], "", "{seen:?}");
        run.wait_for("counted in ");
        assert_eq!(run.lines(), ["N = 16", "COUNT2          32"]);
        assert_eq!(run.end(), 0);
    }
}

#[test]
fn the_planning_of_a_run_is_shown_and_can_be_interrupted() {
    let place = Place::new();
    let mut command = place.command("run 17 --plan rows --job-states 1000 --db queens.db");
    let run = AtTerminal::start(&mut command);
    let seen = eventually("the planning is shown", || {
        Some(run.lines()).filter(|lines| lines[0].contains("planning: ") && lines[0].contains(" jobs stored"))
    });
    assert_eq!(seen[1], "", "{seen:?}");
    run.signal(Signal::INT);
    run.wait_for("interrupted; progress is kept in queens.db");
    assert!(run.lines()[0].starts_with("interrupted; "), "{:?}", run.lines());
    assert_eq!(run.end(), 130);
}

#[test]
fn the_time_left_is_there_after_a_resume() {
    let place = Place::new();
    // It outlasts any test.
    let start = || {
        let board = "run 20 --threads 1 --kernel scalar --plan border --job-states 50000000 --db queens.db";
        AtTerminal::start(&mut place.command(board))
    };
    let told = |run: &AtTerminal, line: usize| {
        let line = run.lines()[line].clone();
        line.contains(" left").then_some(line)
    };
    let first = start();
    eventually("the time left is told", || told(&first, 0));
    first.signal(Signal::INT);
    first.wait_for("interrupted; ");
    assert_eq!(first.end(), 130);
    let again = start();
    again.wait_for("is resumed at ");
    // It needs no new results: those of the first time tell how much a job takes.
    eventually("the time left is told again", || told(&again, 1));
    again.signal(Signal::INT);
    assert_eq!(again.end(), 130);
}

#[test]
fn the_picture_is_shown_and_the_terminal_given_back() {
    let place = Place::new();
    let (coordinator, _worker, run) = cluster(&place);
    let at = format!("--coordinator {}", coordinator.url());
    let mut watch = AtTerminal::start(&mut place.command(&format!("watch --interval 0.2 {at}")));
    watch.wait_for(&run);
    watch.wait_for("west");
    watch.wait_for("states/s");
    assert!(watch.is_raw() && watch.screen().alternate_screen());
    watch.press("p");
    watch.wait_for("Workers finish the jobs they hold. y/n");
    watch.press("y");
    eventually("it is paused", || {
        (place.json(&format!("status {run} --json {at}"))["runs"][0]["state"] == "paused").then_some(())
    });
    watch.press("q");
    assert_eq!(watch.end(), 0);

    // What is wrong from the beginning is said as ever, and nothing is drawn.
    let wrong = AtTerminal::start(&mut place.command(&format!("watch 0123456789ab {at}")));
    wrong.wait_for("nqueens: there is no run 0123456789ab here");
    assert!(!wrong.was_drawn_on());
    let plain = AtTerminal::start(&mut place.command(&format!("watch --plain --interval 0.2 {at}")));
    plain.wait_for(&format!("{run}  paused  N=20 "));
    assert!(!plain.is_raw() && !plain.was_drawn_on());
}

#[test]
fn a_lost_coordinator_is_waited_for_and_signals_restore_the_terminal() {
    let place = Place::new();
    let (mut coordinator, _worker, run) = cluster(&place);
    let command = || {
        let mut command = place.command(&format!("watch --interval 0.2 --coordinator {}", coordinator.url()));
        command.env("NO_COLOR", "1");
        command
    };
    let mut watch = AtTerminal::start(&mut command());
    let other = AtTerminal::start(&mut command());
    watch.wait_for(&run);
    other.wait_for(&run);
    let screen = watch.screen();
    let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
    let mut cells = cells.filter_map(|(row, column)| screen.cell(row, column));
    assert!(cells.all(|cell| cell.fgcolor() == Color::Default && cell.bgcolor() == Color::Default));
    coordinator.process.kill();
    watch.wait_for("out of date");
    let coordinator = Coordinator::start_at(&coordinator.address, &place, &[], "");
    // A worker that only this life of the coordinator knows.
    let _late = coordinator.worker(&place, "latecomer", &[]);
    watch.wait_for("latecomer");
    assert!(!watch.screen().contents().contains("out of date"));
    watch.press("\x03");
    assert_eq!(watch.end(), 130);
    other.signal(Signal::TERM);
    assert_eq!(other.end(), 130);
}

#[test]
fn a_database_is_watched_without_a_coordinator() {
    let place = Place::new();
    let (coordinator, worker, run) = cluster(&place);
    drop(worker);
    assert_eq!(coordinator.stop().code, 0);
    let mut watch = AtTerminal::start(&mut place.command("watch --db queens.db"));
    watch.wait_for(&run);
    watch.wait_for("read-only");
    watch.press("p");
    watch.wait_for("a database is read-only here");
    watch.press("q");
    assert_eq!(watch.end(), 0);
    let lines = place.stdout(&format!("cancel {run} --yes --db queens.db"));
    assert!(lines.contains("cancelled"), "{lines}");
    let lines = place.stdout("watch --db queens.db");
    assert_eq!(lines, format!("{run}  N = 20: cancelled\n"));
}

#[test]
fn what_can_not_be_undone_is_asked() {
    let place = Place::new();
    let done = place.json("run 8 --plan rows --job-states 100000 --db queens.db --json");
    let run = done["run"].as_str().expect("an id");
    let is_done = || place.json(&format!("status {run} --db queens.db --json"))["runs"][0]["total"] == "92";
    let ask = |answer: &str| {
        let mut requeue =
            AtTerminal::start(&mut place.command(&format!("requeue {run} --job 3 --db queens.db")));
        requeue.wait_for(&format!("run {run} is done, TOTAL 92. Withdraw this total? [y/N]"));
        requeue.press(answer);
        requeue
    };
    let beyond = place.run(&format!("requeue {run} --job 99999 --db queens.db"));
    assert_eq!(beyond.code, 2);
    assert!(beyond.stderr.contains(&format!("run {run} has no job 99999: it has ")), "{}", beyond.stderr);
    let careful = place.run(&format!("requeue {run} --job 3 --db queens.db"));
    let why = format!("error: run {run} is done, and its total would be withdrawn; give --yes to confirm\n");
    assert!(careful.code == 2 && careful.stderr.starts_with(&why), "{}", careful.stderr);
    let refused = ask("\r");
    refused.wait_for("nothing was changed");
    assert_eq!((refused.end(), is_done()), (1, true));
    let agreed = ask("y\r");
    agreed.wait_for("1 result voided");
    assert_eq!((agreed.end(), is_done()), (0, false));
}

#[test]
fn what_was_asked_about_is_cancelled_and_nothing_else() {
    let place = Place::new();
    let (coordinator, _worker, run) = cluster(&place);
    let at = format!("--coordinator {}", coordinator.url());
    let mut cancel = AtTerminal::start(&mut place.command(&format!("cancel {at}")));
    cancel.wait_for(&format!("run {run}, N = 20, is "));
    cancel.wait_for("Cancel it? [y/N]");
    // Meanwhile another run is the only open one.
    place.stdout(&format!("cancel {run} --yes {at}"));
    let other = place.stdout(&format!("submit 20 --plan border --job-states 50000000 {at}"));
    cancel.press("y\r");
    cancel.wait_for(&format!("run {run} is cancelled"));
    assert_eq!(cancel.end(), 0);
    let other = place.json(&format!("status {} --json {at}", other.trim_end()))["runs"][0].take();
    assert_eq!(other["state"], "active");
}

#[test]
fn a_request_is_sent_however_soon_its_sender_leaves() {
    let place = Place::new();
    let (coordinator, _worker, run) = cluster(&place);
    let at = format!("--coordinator {}", coordinator.url());
    let mut watch = AtTerminal::start(&mut place.command(&format!("watch --interval 0.2 {at}")));
    watch.wait_for(&run);
    watch.press("pyq");
    assert_eq!(watch.end(), 0);
    assert_eq!(place.json(&format!("status {run} --json {at}"))["runs"][0]["state"], "paused");
}

#[test]
fn a_plan_is_watched_and_cancelled() {
    let place = Place::new();
    let coordinator = Coordinator::start(&place, &[], "");
    let at = format!("--coordinator {}", coordinator.url());
    let submit =
        AtTerminal::start(&mut place.command(&format!("submit 17 --plan rows --job-states 1000 {at}")));
    submit.wait_for("planning: ");
    submit.wait_for(" jobs stored");
    let run = place.json(&format!("status --json {at}"))["runs"][0].take();
    let run = run["run"].as_str().expect("an id");
    assert!(submit.screen().contents().starts_with(run), "{}", submit.screen().contents());
    let mut watch = AtTerminal::start(&mut place.command(&format!("watch --interval 0.2 {at}")));
    watch.wait_for("planning");
    watch.wait_for(" jobs stored");
    let mut cancel = AtTerminal::start(&mut place.command(&format!("cancel {run} {at}")));
    cancel.wait_for(&format!("run {run}, N = 17, is being planned, "));
    cancel.press("y\r");
    cancel.wait_for(&format!("run {run} is cancelled"));
    assert_eq!(cancel.end(), 0);
    submit.wait_for("nothing of it is");
    assert_eq!(submit.end(), 1);
    watch.press("q");
    assert_eq!(watch.end(), 0);
}
