//! Output of commands: JSON for programs, and numbers and times for people.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use nqueens_model::name::is_printable;
pub(crate) use nqueens_model::numbers::{counted, percent, quantity, span, speed, thousands};
use nqueens_model::operator::WallTime;
use rustix::fs::{FileType, OFlags, Stat, fcntl_getfl, fstat};
use serde::Serialize;

/// Whether a command's result is to be machine-readable.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Json {
    /// Print JSON; counts are decimal strings because they can exceed 2^53
    #[arg(short, long)]
    pub(crate) json: bool,
}

impl Json {
    /// Prints a result, for programs or for people.
    pub(crate) fn print(self, json: impl Serialize, text: impl Display) -> io::Result<()> {
        if self.json { print_json(json) } else { print_line(text) }
    }
}

pub(crate) fn print_json(line: impl Serialize) -> io::Result<()> {
    print_line(serde_json::to_string(&line)?)
}

/// Prints a line to stdout. A reader that has gone is an error here, where `println!` would panic.
pub(crate) fn print_line(line: impl Display) -> io::Result<()> {
    writeln!(stdout(), "{line}")
}

/// Prints rows under their heads. A head that begins with `>` is one of numbers, which stand on the right.
pub(crate) fn print_table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> io::Result<()> {
    let mut table = Table::new();
    table
        .load_preset(NOTHING)
        .set_header(heads.iter().map(|head| head.trim_start_matches('>')))
        .add_rows(rows);
    for (column, head) in table.column_iter_mut().zip(heads) {
        column.set_padding((0, 2));
        if head.starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    print_line(table.trim_fmt())
}

/// Where results go. An error names it.
pub(crate) fn stdout() -> impl Write {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        if is_closed(io::stdout()) {
            eprintln!("nqueens: stdout is closed: what this command prints is lost");
        }
    });
    Stdout(io::stdout().lock())
}

/// Whether a standard stream was closed when the program started. Before `main`, Rust then opens the null device in its place, for
/// reading and writing; a shell that discards output (`> /dev/null`) opens it for writing.
fn is_closed(stream: impl AsFd) -> bool {
    let device = |stat: &Stat| (FileType::from_raw_mode(stat.st_mode), stat.st_rdev);
    let is_null =
        fstat(&stream).and_then(|stat| Ok(device(&stat) == device(&rustix::fs::stat("/dev/null")?)));
    let mode = fcntl_getfl(&stream).map(|flags| flags & OFlags::ACCMODE);
    is_null == Ok(true) && mode == Ok(OFlags::RDWR)
}

struct Stdout(io::StdoutLock<'static>);

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(stdout_failed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(stdout_failed)
    }
}

pub(crate) fn stdout_failed(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("can't write to stdout: {error}"))
}

/// Creates an output file for its owner alone. A file that is there is an error; one that is replaced keeps its mode.
pub(crate) fn create(path: &Path, replace: bool) -> anyhow::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).truncate(replace).create(replace).create_new(!replace).mode(0o600);
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            anyhow!("{} exists already; choose another name, or give --force to replace it", path.display())
        }
        _ => anyhow!(error).context(path.display().to_string()),
    })
}

/// Where a document goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputFile {
    /// Output file; an existing file is an error [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long, requires = "output")]
    force: bool,
}

impl OutputFile {
    pub(crate) fn open(&self) -> anyhow::Result<Box<dyn Write>> {
        Ok(match &self.output {
            Some(path) => Box::new(create(path, self.force)?),
            None => Box::new(stdout()),
        })
    }
}

/// A duration as the classic tables print it: `hh:mm:ss.ms`, in hundredths of a second.
pub(crate) fn hours(time: Duration) -> String {
    let (seconds, hundredths) = (time.as_secs(), time.subsec_millis() / 10);
    format!("{:02}:{:02}:{:02}.{hundredths:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `0.240 s`, `12.3 s`, `1 min 17 s`.
pub(crate) fn duration(time: Duration) -> String {
    nqueens_model::numbers::duration(time.as_secs_f64())
}

/// A time as the clock on the wall has it, with its distance from UTC: `2026-11-21 22:03:31 +01:00`.
pub(crate) fn local_time(time: WallTime) -> String {
    in_zone(time, TimeZone::system())
}

fn in_zone(time: WallTime, zone: TimeZone) -> String {
    match Timestamp::from_millisecond(time) {
        Ok(time) => time.to_zoned(zone).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        // No clock has that time; a damaged database may.
        Err(_) => format!("{time} ms since 1970"),
    }
}

/// Text from anywhere, which has no say in what a terminal does, and looks like what it is.
pub(crate) fn harmless(text: &str) -> String {
    text.replace(|c| !is_printable(c), "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_anywhere_does_no_harm() {
        assert_eq!(harmless("N = 8: r\u{f6}mer"), "N = 8: r\u{f6}mer");
        assert_eq!(harmless("\u{1b}[2J\nwe\u{200b}st \u{202e}"), "\u{fffd}[2J\u{fffd}we\u{fffd}st \u{fffd}");
    }

    #[test]
    fn times_read_well() {
        assert_eq!(hours(Duration::from_millis(0)), "00:00:00.00");
        assert_eq!(hours(Duration::from_millis(100 * 3_600_000 + 62_349)), "100:01:02.34");
    }

    #[test]
    fn times_are_told_in_their_zone() {
        let east = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(in_zone(1_795_305_811_999, TimeZone::UTC), "2026-11-22 00:03:31 +00:00");
        assert_eq!(in_zone(1_795_305_811_999, east), "2026-11-22 02:03:31 +02:00");
        assert_eq!(in_zone(i64::MAX, TimeZone::UTC), "9223372036854775807 ms since 1970");
    }
}
