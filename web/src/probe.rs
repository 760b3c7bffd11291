//! Asks a coordinator whether it is ready, for health checks.

use std::error::Error;
use std::str::FromStr;
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::time::timeout;

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(5);

/// The page of a coordinator that tells whether it is ready.
#[derive(Clone, Debug)]
pub struct Probe(Uri);

/// What was given is no address of a web page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address of a coordinator's web page is like http://127.0.0.1:7328")]
pub struct InvalidPage;

impl FromStr for Probe {
    type Err = InvalidPage;

    /// From the address of the web page: `http://HOST:PORT`.
    fn from_str(page: &str) -> Result<Self, Self::Err> {
        let page: Uri = page.parse().map_err(|_| InvalidPage)?;
        let is_root = page.scheme_str() == Some("http") && page.path() == "/" && page.query().is_none();
        let authority = page.authority().filter(|_| is_root).ok_or(InvalidPage)?;
        let readyz = Uri::builder().scheme("http").authority(authority.as_str()).path_and_query("/readyz");
        readyz.build().map(Self).map_err(|_| InvalidPage)
    }
}

/// Why a coordinator is taken to be not ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// No connection, or no answer in time.
    #[error("no answer from {0}: {1}")]
    Silent(Uri, String),
    /// It says so itself.
    #[error("{0} answers {1}")]
    Told(Uri, StatusCode),
}

impl Probe {
    /// Asks; takes 5 seconds at most.
    pub async fn ask(&self) -> Result<(), NotReady> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let silent = |cause: String| NotReady::Silent(self.0.clone(), cause);
        match timeout(PATIENCE, client.get(self.0.clone())).await {
            Err(late) => Err(silent(late.to_string())),
            Ok(Err(error)) => Err(silent(root_cause(&error))),
            Ok(Ok(answer)) if answer.status() == StatusCode::OK => Ok(()),
            Ok(Ok(answer)) => Err(NotReady::Told(self.0.clone(), answer.status())),
        }
    }
}

/// The deepest cause, for it says most.
fn root_cause(error: &dyn Error) -> String {
    std::iter::successors(Some(error), |&error| error.source()).last().unwrap_or(error).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pages() {
        for page in ["http://127.0.0.1:7328", "http://[::1]:7328/", "http://head"] {
            let Probe(url) = page.parse().expect(page);
            assert_eq!(url.to_string(), format!("{}/readyz", page.trim_end_matches('/')));
        }
        for page in ["", "head:7328", "https://head:7328", "http://head/readyz", "http://head/?x", "http:///"]
        {
            assert_eq!(page.parse::<Probe>().expect_err(page), InvalidPage);
        }
    }
}
