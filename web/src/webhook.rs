//! Posts each event to a URL as JSON.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use nqueens_coordinator::Events;
use nqueens_model::operator::Event;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{debug, warn};

use crate::json;

/// One try takes no longer.
const TRY_TIMEOUT: Duration = Duration::from_secs(10);

/// Tries of one event: at once, after about 1, 2, 4, ... seconds; some two minutes in all.
const TRIES: usize = 7;

/// Where events are posted to. Such a URL often holds a secret: nothing prints it.
#[derive(Clone)]
pub struct Webhook(Uri);

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Webhook(..)")
    }
}

/// What was given is no URL to post to; says why, and not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a webhook is a URL like https://host/path, without a user name in it")]
pub struct InvalidWebhook;

impl FromStr for Webhook {
    type Err = InvalidWebhook;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let uri: Uri = text.trim_ascii().parse().map_err(|_| InvalidWebhook)?;
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        let has_host = uri.authority().is_some_and(|host| !host.as_str().contains('@'));
        (is_web && has_host).then_some(Self(uri)).ok_or(InvalidWebhook)
    }
}

impl Webhook {
    /// Gets ready to post. For `https` that means to read the system's certificates, and fails where there are none.
    pub fn connect(self) -> io::Result<WebhookSender> {
        let client = Client::builder(TokioExecutor::new());
        let poster = if self.0.scheme_str() == Some("https") {
            let connector =
                HttpsConnectorBuilder::new().with_native_roots()?.https_only().enable_http1().build();
            Poster::Tls(client.build(connector))
        } else {
            Poster::Plain(client.build_http())
        };
        Ok(WebhookSender { poster, uri: self.0 })
    }
}

/// Posts events to a webhook.
pub struct WebhookSender {
    poster: Poster,
    uri: Uri,
}

enum Poster {
    Plain(Client<HttpConnector, Full<Bytes>>),
    Tls(Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

#[derive(Debug)]
struct Failure {
    why: String,
    /// Whether it may do better later.
    passing: bool,
}

impl Failure {
    fn passing(why: impl ToString) -> Self {
        Self { why: why.to_string(), passing: true }
    }
}

impl WebhookSender {
    /// Posts each event after number `told`, in order, until the coordinator ends. It delays nobody: while an event is
    /// retried, the others wait in the list of events, and those that drop out of it are missed.
    pub async fn tell(self, mut events: watch::Receiver<Events>, mut told: u64) {
        loop {
            let next = events.borrow_and_update().iter().find(|event| event.number > told).cloned();
            let Some(event) = next else {
                if events.changed().await.is_err() {
                    return;
                }
                continue;
            };
            if event.number > told + 1 {
                warn!(missed = event.number - told - 1, "events came faster than the webhook accepted them");
            }
            told = event.number;
            self.deliver(&event).await;
        }
    }

    async fn deliver(&self, event: &Event) {
        let body = Bytes::from(json::event(event).to_string());
        let patience = ExponentialBuilder::default().with_jitter().with_max_times(TRIES - 1);
        let posting = (|| self.post(body.clone())).retry(patience).when(|failure| failure.passing);
        match posting.await {
            Ok(()) => debug!(event = event.number, "the webhook accepted an event"),
            Err(Failure { why, .. }) => {
                let kind = event.kind.name();
                warn!(event = event.number, kind, why, "an event could not be posted to the webhook");
            }
        }
    }

    /// One try. What it says of a failure does not tell the URL.
    async fn post(&self, body: Bytes) -> Result<(), Failure> {
        let request =
            Request::post(self.uri.clone()).header(CONTENT_TYPE, "application/json").body(Full::new(body));
        let request = request.expect("a URL and a fixed header");
        let sending = match &self.poster {
            Poster::Plain(client) => client.request(request),
            Poster::Tls(client) => client.request(request),
        };
        let answer =
            timeout(TRY_TIMEOUT, sending).await.map_err(Failure::passing)?.map_err(Failure::passing)?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => {
                let passing = status.is_server_error()
                    || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
                Err(Failure { why: format!("it answered {status}"), passing })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_can_be_posted_to() {
        for url in ["https://chat.example/hooks/secret", " http://127.0.0.1:9/x?y=z\n"] {
            let webhook: Webhook = url.parse().expect(url);
            assert_eq!(format!("{webhook:?}"), "Webhook(..)");
        }
        for url in
            ["", "chat.example", "/hooks", "ftp://chat.example/", "https://me:secret@chat.example/", "https:"]
        {
            assert_eq!(url.parse::<Webhook>().expect_err(url), InvalidWebhook);
        }
    }
}
