//! How far the sampling is, for whoever waits at a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A line on stderr; none where that is no terminal. It goes when this is dropped.
pub(super) struct SamplingProgress(Option<ProgressBar>);

impl SamplingProgress {
    pub(super) fn new() -> Self {
        let style = ProgressStyle::with_template("{bar:16} {wide_msg}").expect("a valid template");
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(0).with_style(style));
        if let Some(bar) = &bar {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// Something else begins, which takes so many steps.
    pub(super) fn phase(&self, what: &'static str, steps: u64) {
        if let Some(bar) = &self.0 {
            bar.reset();
            bar.set_length(steps);
            bar.set_message(what);
        }
    }

    pub(super) fn step(&self) {
        if let Some(bar) = &self.0 {
            bar.inc(1);
        }
    }
}

impl Drop for SamplingProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
