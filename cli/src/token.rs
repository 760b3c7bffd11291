//! Tokens from files and variables. Never from the command line, which every user of a machine can read.

use std::path::Path;

use anyhow::{Context, bail};
use nqueens_model::credential::Credential;
use nqueens_proto::Token;

use crate::permissions::read_secret;

/// Carry a worker's token, the tokens that a coordinator knows workers by, and an operator's, where no file does.
pub(crate) const OF_WORKER: &str = "NQUEENS_TOKEN";
pub(crate) const OF_WORKERS: &str = "NQUEENS_WORKER_TOKEN";
pub(crate) const OF_OPERATOR: &str = "NQUEENS_OPERATOR_TOKEN";

/// The token in `file`, or else in the environment variable `variable`; none if neither is given.
pub(crate) fn read(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<Token>> {
    let Some((text, origin)) = text(file, variable)? else { return Ok(None) };
    text.parse().map(Some).context(origin)
}

/// The tokens of workers, from one of both: one that all share, or a line `NAME TOKEN` for each credential. Empty lines and
/// those that begin with # are skipped.
pub(crate) fn read_named(file: Option<&Path>, variable: &str) -> anyhow::Result<Vec<(Credential, Token)>> {
    let Some((text, origin)) = text(file, variable)? else { return Ok(Vec::new()) };
    if text.split_ascii_whitespace().nth(1).is_none() {
        return Ok(vec![(Credential::shared(), text.parse().context(origin)?)]);
    }
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = || format!("{origin}, line {number}");
        let Some((name, token)) = line.split_once(|c: char| c.is_ascii_whitespace()) else {
            bail!("{}: a line has a name and a token", place());
        };
        let credential = Credential::named(name).with_context(place)?;
        if tokens.iter().any(|(known, _)| *known == credential) {
            bail!("{}: '{name}' is there twice; each token needs its own name", place());
        }
        tokens.push((credential, token.parse().with_context(place)?));
    }
    Ok(tokens)
}

fn text(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<(String, String)>> {
    Ok(match (file, std::env::var_os(variable)) {
        (Some(path), _) => {
            let origin = format!("the token file {}", path.display());
            let text = read_secret(path).and_then(|bytes| Ok(String::from_utf8(bytes)?));
            let text = text.with_context(|| origin.clone())?;
            Some((text, origin))
        }
        (None, Some(value)) => {
            Some((value.to_string_lossy().into_owned(), format!("the variable {variable}")))
        }
        (None, None) => None,
    })
}
