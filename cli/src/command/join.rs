//! `nqueens join`: files with which workers join a cluster.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use nqueens_model::credential::Credential;
use nqueens_proto::{ClientTls, Token};
use nqueens_worker::Client;
use serde::{Deserialize, Serialize};

use crate::exit::misuse;
use crate::output::OutputFile;
use crate::permissions::read_secret;
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

/// What a join file says, as JSON: all that a worker needs to know to join a cluster.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Join {
    coordinator: String,
    /// The worker's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    /// For https:// addresses: the coordinator's certificate, or that of the authority that signed it, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<String>,
}

impl Join {
    /// Reads a file. One that others can write is refused: it chooses the coordinator.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let place = || format!("the join file {}", path.display());
        let text = read_secret(path).with_context(place)?;
        serde_json::from_slice(&text).map_err(|error| {
            // Without what it quotes, which may be a secret.
            let line = error.line();
            anyhow::anyhow!("{}, line {line}, can't be read; 'nqueens join create' makes one", place())
        })
    }

    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let token = self.token.as_deref().map(str::parse::<Token>).transpose().context("token")?;
        let tls = self.certificate.as_deref().map(|certificate| ClientTls::new(certificate.as_bytes()));
        let tls = tls.transpose().context("certificate")?;
        Ok(Client::new(&self.coordinator, token, tls.as_ref()).unwrap_or_else(|error| misuse(error).exit()))
    }
}
