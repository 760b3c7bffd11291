//! Asks before something that can't be undone.

use std::io::{IsTerminal, Write};

use clap::Args;
use tokio::task::spawn_blocking;

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
    pub(crate) async fn given(self, consequence: &str, question: &str) -> anyhow::Result<bool> {
        if self.yes {
            return Ok(true);
        }
        if !std::io::stdin().is_terminal() {
            misuse(format_args!("{consequence}; give --yes to confirm")).exit();
        }
        eprint!("{question} [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        // On a thread of its own: the coordinator drops a connection that is silent for long.
        let answer =
            spawn_blocking(move || std::io::stdin().read_line(&mut answer).map(|_| answer)).await??;
        let agrees = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
        if !agrees {
            eprintln!("nothing was changed");
        }
        Ok(agrees)
    }
}
