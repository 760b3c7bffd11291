//! The operators' end of a coordinator's JSON API: over the same connections as the workers' calls.

use std::error::Error;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Bytes;
use tonic::codegen::http::header::{CONTENT_TYPE, HeaderValue};
use tonic::codegen::http::{Method, Request, StatusCode};
use tonic::transport::Channel;
use tower::ServiceExt;

use crate::request_id;
use crate::token::Token;

/// A call without an answer fails after this time.
const CALL_TIMEOUT: Duration = Duration::from_secs(35);

/// Bytes of an answer.
const ANSWER_MAX: usize = 64 << 20;

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallFailure {
    /// The coordinator says so.
    #[error("{1}")]
    Refused(StatusCode, String),
    /// The connection, or what came of it.
    #[error(transparent)]
    Broken(Box<dyn Error + Send + Sync>),
    #[error("no answer in time")]
    Late,
}

/// Calls one coordinator; clones share the connection.
#[derive(Clone, Debug)]
pub struct JsonClient {
    channel: Channel,
    token: Option<Token>,
}

impl JsonClient {
    pub fn new(channel: Channel, token: Option<Token>) -> Self {
        Self { channel, token }
    }

    pub async fn get<Answer: DeserializeOwned>(&self, path: &str) -> Result<Answer, CallFailure> {
        self.call(Method::GET, path, Vec::new()).await
    }

    /// Asks whether the coordinator is ready; needs no token.
    pub async fn ready(&self) -> Result<(), CallFailure> {
        self.send(Method::GET, "/readyz", Vec::new()).await.map(drop)
    }

    pub async fn post<Answer: DeserializeOwned>(
        &self,
        path: &str,
        message: &impl Serialize,
    ) -> Result<Answer, CallFailure> {
        let message = serde_json::to_vec(message).map_err(|error| CallFailure::Broken(error.into()))?;
        self.call(Method::POST, path, message).await
    }

    async fn call<Answer: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        message: Vec<u8>,
    ) -> Result<Answer, CallFailure> {
        let answer = self.send(method, path, message).await?;
        serde_json::from_slice(&answer).map_err(|error| CallFailure::Broken(error.into()))
    }

    async fn send(&self, method: Method, path: &str, message: Vec<u8>) -> Result<Bytes, CallFailure> {
        let broken = |error: Box<dyn Error + Send + Sync>| CallFailure::Broken(error);
        let mut request = Request::builder().method(method).uri(path).body(Body::new(Full::from(message)));
        let request = request.as_mut().map_err(|error| CallFailure::Broken(error.to_string().into()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request_id::identify(headers, path, self.token.as_ref());
        let request = std::mem::replace(request, Request::new(Body::empty()));
        let calling = async {
            let answer = self.channel.clone().oneshot(request).await.map_err(|error| broken(error.into()))?;
            let status = answer.status();
            let body =
                Limited::new(answer.into_body(), ANSWER_MAX).collect().await.map_err(broken)?.to_bytes();
            if !status.is_success() {
                let text = String::from_utf8_lossy(&body).into_owned();
                return Err(CallFailure::Refused(status, text));
            }
            Ok(body)
        };
        timeout(CALL_TIMEOUT, calling).await.unwrap_or(Err(CallFailure::Late))
    }
}
