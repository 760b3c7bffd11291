//! Asks before something that can't be undone.

use std::io::{IsTerminal, Write};

use clap::Args;

use crate::exit::misuse;

/// Consent given in advance.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Confirmation {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl Confirmation {
    /// Whether it may be done: with `--yes`, or if somebody at a terminal agrees. Where there is no terminal, to leave out
    /// `--yes` is wrong usage; `consequence` says why.
    pub(crate) fn given(
        self,
        consequence: &str,
        question: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            misuse(format_args!("{consequence}; give --yes to confirm")).exit();
        }
        eprint!("{} [y/N] ", question()?);
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        let agrees = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        if !agrees {
            eprintln!("nothing was changed");
        }
        Ok(agrees)
    }
}
