//! Output of commands: JSON for programs, and numbers and times for people.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
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
use tempfile::NamedTempFile;

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
            eprintln!("nqueens: stdout was closed or is the null device: what this command prints is lost");
        }
    });
    Stdout(io::stdout().lock())
}

/// Whether a standard stream may have been closed when the program started. Before `main`, Rust then opens the null device in its
/// place, for reading and writing. A shell that discards output (`> /dev/null`) opens it for writing, but Python does as Rust.
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

/// Where a document goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputFile {
    /// Output file; an existing file is an error [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long, requires = "output")]
    force: bool,

    /// Whether it is its owner's alone, though the file that it replaces was open to others.
    #[arg(skip)]
    pub(crate) is_secret: bool,
}

impl OutputFile {
    /// Opens it, for its owner alone; one that is replaced keeps its mode if it is no secret. An existing file is an error without
    /// `force`.
    pub(crate) fn open(&self) -> anyhow::Result<Output> {
        let Some(path) = &self.output else { return Ok(Output::Stream(Box::new(stdout()))) };
        let open = || {
            // A link stays one.
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            let there = path.metadata().ok();
            if there.as_ref().is_some_and(|there| !there.is_file()) {
                return Ok(Output::Stream(Box::new(OpenOptions::new().write(true).open(path)?)));
            }
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize()?;
            // A killed command leaves a part: its name says of what.
            let mut part = path.file_name().unwrap_or_default().to_owned();
            part.push(".");
            let file = tempfile::Builder::new().prefix(&part).suffix(".part").tempfile_in(folder)?;
            if let Some(there) = there.filter(|_| !self.is_secret) {
                file.as_file().set_permissions(there.permissions())?;
            }
            Ok(Output::File { file, path, replace: self.force })
        };
        if !self.force && path.exists() {
            bail!("{} exists already; choose another name, or give --force to replace it", path.display());
        }
        open().map_err(|error: io::Error| anyhow!(error).context(path.display().to_string()))
    }

    /// Writes a whole document.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        let mut output = self.open()?;
        output.write_all(text.as_bytes())?;
        output.finish()
    }
}

/// A document on its way: to a stream, or to a file that takes its name once it is whole.
pub(crate) enum Output {
    Stream(Box<dyn Write>),
    File { file: NamedTempFile, path: PathBuf, replace: bool },
}

impl Output {
    /// Ends the document. A file that this was to replace stays until then.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stream(mut stream) => stream.flush()?,
            Self::File { file, path, replace } => {
                file.as_file().sync_all()?;
                let kept = if replace { file.persist(&path) } else { file.persist_noclobber(&path) };
                kept.with_context(|| path.display().to_string())?;
            }
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stream(stream) => stream.write(bytes),
            Self::File { file, path, .. } => file
                .as_file()
                .write(bytes)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.flush(),
            Self::File { .. } => Ok(()),
        }
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
