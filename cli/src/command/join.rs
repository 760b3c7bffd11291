//! `nqueens join`: files with which workers join a cluster.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, Subcommand};
use nqueens_model::credential::Credential;
use nqueens_proto::Token;

use crate::exit::misuse;
use crate::join::Join;
use crate::output::OutputFile;
use crate::runtime::block_on;
use crate::tls::CallerTls;
use crate::token;

/// Makes files with which workers join a cluster.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example: nqueens join create --coordinator http://head:7327 --output cluster.join")]
pub(crate) enum JoinCommand {
    Create(CreateCommand),
}

/// Writes a join file: the coordinator's address, its certificate, and a worker's token.
///
/// A worker with the file needs nothing else: nqueens worker --join FILE. Only its owner can read the file (mode 0600). Copy
/// it to the workers' machines in a way that keeps it secret, such as scp, or put it on storage that they share.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens join create --coordinator http://head:7327 --output cluster.join")]
pub(crate) struct CreateCommand {
    /// Address at which the workers reach the coordinator
    #[arg(long, value_name = "URL")]
    coordinator: String,

    /// The coordinator's file with the worker token, or with a line NAME TOKEN for each owner of workers
    #[arg(long, value_name = "FILE")]
    worker_token_file: Option<PathBuf>,

    /// Whose line of the token file goes into the join file
    #[arg(long, value_name = "NAME")]
    credential: Option<String>,

    #[command(flatten)]
    tls: CallerTls,

    #[command(flatten)]
    output: OutputFile,
}

impl CreateCommand {
    pub(crate) fn execute(mut self) -> anyhow::Result<()> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec());
        let token = self.token()?.map(|token| text(token.as_bytes())).transpose()?;
        let certificate = self.tls.pem()?.map(|pem| text(&pem)).transpose()?;
        let join = Join { coordinator: self.coordinator, token, certificate };
        // Looks at all of it; connects to nobody.
        block_on(async { join.client() })?;
        let text = serde_json::to_string_pretty(&join)? + "\n";
        self.output.is_secret = true;
        self.output.write(&text)
    }

    /// The token that workers are to show, if there are tokens.
    fn token(&self) -> anyhow::Result<Option<Token>> {
        let mut tokens = token::read_named(self.worker_token_file.as_deref(), token::OF_WORKERS)?;
        let Some(name) = &self.credential else {
            ensure!(tokens.len() < 2, "there are tokens of {}: choose one with --credential", names(&tokens));
            return Ok(tokens.pop().map(|(_, token)| token));
        };
        let at = tokens.iter().position(|(credential, _)| credential.as_str() == name);
        match at {
            Some(at) => Ok(Some(tokens.swap_remove(at).1)),
            None if tokens.is_empty() => {
                misuse("--credential chooses a line of --worker-token-file, which is missing").exit()
            }
            None => bail!("--credential: there is no token of {name}, but of {}", names(&tokens)),
        }
    }
}

fn names(tokens: &[(Credential, Token)]) -> String {
    tokens.iter().map(|(credential, _)| credential.as_str()).collect::<Vec<_>>().join(", ")
}
