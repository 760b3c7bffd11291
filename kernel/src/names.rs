//! The error for a name that nothing has.

/// No engine, plan, class or algorithm has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} '{name}'; known are: {}", known.join(", "))]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: &'static [&'static str],
}

impl UnknownName {
    pub(crate) fn new(what: &'static str, name: &str, known: &'static [&'static str]) -> Self {
        Self { what, name: name.to_owned(), known }
    }
}
