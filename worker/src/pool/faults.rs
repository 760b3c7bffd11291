//! What went wrong with engines, for the log and for operators.

use nqueens_model::message::{FAILURE_BYTES_MAX, FAULTS_MAX};
use nqueens_model::name::is_printable;
use tracing::warn;

use crate::crew::Crew;

/// What happened to engines that failed, a line each with the reason: of each engine that it failed, when it first did, and that
/// it is left alone.
#[derive(Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    /// An engine failed. What finds no room here is in the log.
    pub(super) fn note(&mut self, crew: &Crew, what: &str, fault: &str) {
        warn!(engine = crew.engine, device = crew.device, fault, "an engine {what}");
        let what = line(&format!("{} ({}) {what}", crew.engine, crew.device));
        if self.0.len() < FAULTS_MAX && !self.0.iter().any(|known| known.starts_with(&what)) {
            self.0.push(line(&format!("{what}: {fault}")));
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.0.clone()
    }
}

/// A reason as the wire takes it.
pub(super) fn line(reason: &str) -> String {
    let printable: String = reason.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect();
    printable[..printable.floor_char_boundary(FAILURE_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_fit_the_wire() {
        assert_eq!(line("no\nluck"), "no luck");
        let long = format!("x{}", "\u{e9}".repeat(FAILURE_BYTES_MAX));
        let line = line(&long);
        assert!(line.len() == FAILURE_BYTES_MAX - 1 && long.starts_with(&line), "{line}");
    }
}
