//! What a caller shows to be let in.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::{self, InvalidName};

/// The name of what a worker has shown: of its token. Workers of one credential may all be one
/// person's, whatever they call themselves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Credential(Arc<str>);

impl Credential {
    /// Of workers that show the one token that all share, and of all workers where none is asked for.
    pub const SHARED: &str = "shared";

    /// Of the coordinator, where it counts itself.
    pub const OWN: &str = "(the coordinator)";

    /// By its name; the two above are not for callers.
    pub fn named(text: &str) -> Result<Self, InvalidCredential> {
        name::check(text)?;
        if [Self::SHARED, Self::OWN].contains(&text) {
            return Err(InvalidCredential::Reserved(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    pub fn shared() -> Self {
        Self(Self::SHARED.into())
    }

    pub fn own() -> Self {
        Self(Self::OWN.into())
    }

    /// One that a ledger has.
    pub fn stored(text: &str) -> Result<Self, InvalidName> {
        name::check(text)?;
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_own(&self) -> bool {
        self.as_str() == Self::OWN
    }

    /// Whether it tells nobody apart.
    pub fn is_shared(&self) -> bool {
        self.as_str() == Self::SHARED
    }
}

impl From<Credential> for String {
    fn from(credential: Credential) -> Self {
        credential.as_str().to_owned()
    }
}

impl TryFrom<String> for Credential {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::stored(&text)
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredential {
    #[error("a credential's name {0}")]
    Name(#[from] InvalidName),
    #[error("no credential may be called '{0}'")]
    Reserved(String),
}
