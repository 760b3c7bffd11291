//! Tokens from files and variables. Never from the command line, which every user of a machine can read.

use std::path::Path;

use anyhow::Context;
use nqueens_proto::Token;

use crate::permissions::warn_of_readers;

/// The token in `file`, or else in the environment variable `variable`; none if neither is given.
pub(crate) fn read(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<Token>> {
    let (text, origin) = match (file, std::env::var_os(variable)) {
        (Some(path), _) => {
            let origin = format!("the token file {}", path.display());
            let text = std::fs::read_to_string(path).with_context(|| origin.clone())?;
            warn_of_readers(path);
            (text, origin)
        }
        (None, Some(value)) => (value.to_string_lossy().into_owned(), format!("the variable {variable}")),
        (None, None) => return Ok(None),
    };
    text.parse().map(Some).context(origin)
}
