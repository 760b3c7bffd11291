//! Join files: all that a worker needs to know to join a cluster, in one file for its owner alone.

use std::path::Path;

use anyhow::Context;
use nqueens_proto::{ClientTls, Token};
use nqueens_worker::Client;
use serde::{Deserialize, Serialize};

use crate::exit::misuse;
use crate::permissions::read_secret;

/// What a join file says, as JSON.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Join {
    pub(crate) coordinator: String,
    /// The worker's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// For https:// addresses: the coordinator's certificate, or that of the authority that signed it, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<String>,
}

impl Join {
    /// Reads a file. One that others can write is refused: it chooses the coordinator.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let place = || format!("the join file {}", path.display());
        let text = read_secret(path).with_context(place)?;
        serde_json::from_slice(&text).map_err(|error| {
            // Without what it quotes, which may be a secret.
            let line = error.line();
            anyhow::anyhow!("{}, line {line}, can't be read; 'nqueens join create' makes one", place())
        })
    }

    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let token = self.token.as_deref().map(str::parse::<Token>).transpose().context("token")?;
        let tls = self.certificate.as_deref().map(|certificate| ClientTls::new(certificate.as_bytes()));
        let tls = tls.transpose().context("certificate")?;
        Ok(Client::new(&self.coordinator, token, tls.as_ref()).unwrap_or_else(|error| misuse(error).exit()))
    }
}
