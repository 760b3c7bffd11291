//! Logs and errors on stderr.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::ValueEnum;
use nqueens_model::PROGRESS;
use serde_json::json;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{Targets, filter_fn};
use tracing_subscriber::fmt::{self, format};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people
    Text,
    /// One JSON object per line: timestamp, level, target, message and the line's own fields
    Json,
}

/// Reads a filter of log lines. A word alone is a level: as a target it would let through nothing.
pub(crate) fn log_filter(text: &str) -> Result<Targets, String> {
    let is_clear = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    let filter = text.split(',').all(is_clear).then(|| text.parse().ok()).flatten();
    filter.ok_or_else(|| {
        "write error, warn, info, debug, trace or off, or a filter like nqueens=debug".to_owned()
    })
}

/// Sends log lines to stderr: those of `filter` or, without one, of `default`.
pub(crate) fn start_logging(filter: Option<&Targets>, default: &str, format: LogFormat) {
    let filter = filter.cloned().unwrap_or_else(|| default.parse().expect("the default is a filter"));
    // Each stranger who breaks the rules of HTTP/2 can bring about many of its warnings, which could fill the disk.
    let wanted = filter_fn(|of| !of.target().starts_with("h2") || *of.level() != Level::WARN);
    if format == LogFormat::Json {
        let lines = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(std::io::stderr);
        let lines = lines.json().flatten_event(true).with_span_list(false).finish();
        return lines.with(filter).with(wanted).init();
    }
    let with_colours = std::io::stderr().is_terminal() && colours_wanted();
    let is_sentence = |of: &Metadata<'_>| of.target() == PROGRESS;
    let others = fmt::layer().with_writer(std::io::stderr).with_ansi(with_colours);
    let sentences = fmt::layer().with_writer(std::io::stderr).with_ansi(with_colours);
    let sentences = sentences.with_target(false).fmt_fields(format::debug_fn(|line, field, value| {
        if field.name() == "message" { write!(line, "{value:?}") } else { Ok(()) }
    }));
    let sentences = sentences.with_filter(filter_fn(is_sentence));
    let others = others.with_filter(filter_fn(move |of| !is_sentence(of)));
    tracing_subscriber::registry().with(sentences).with(others).with(filter).with(wanted).init();
}

/// Whether colours may be used where they can be seen: not if `NO_COLOR` is set to anything (<https://no-color.org>).
pub(crate) fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// One line that says what went wrong, and the exit code.
pub(crate) fn complain(error: &anyhow::Error, format: LogFormat) -> ExitCode {
    // A reader that has seen enough (head, less) is no error.
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let message = one_line(&format!("{error:#}"));
    match format {
        LogFormat::Text => eprintln!("nqueens: {message}"),
        // Not by way of the log, which a filter may have silenced.
        LogFormat::Json => eprintln!("{}", json!({ "level": "ERROR", "message": message })),
    }
    exit::failure(error)
}

/// A message without its line breaks: what SQLite says of a rule of the schema has those of the schema.
fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Whether something could not be written because its reader has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_line() {
        let message = "CHECK constraint failed: verdict IN ('accepted',\n                'voided')";
        assert_eq!(one_line(message), "CHECK constraint failed: verdict IN ('accepted', 'voided')");
    }
}
