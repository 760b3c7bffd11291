//! Which calls a caller may make. Workers have tokens, operators another one.
//!
//! The role comes from the bearer token, compared in constant time. The credential of a worker is the name of its token. A
//! missing or wrong token is `UNAUTHENTICATED` (401), the other role's token is `PERMISSION_DENIED` (403). The check is made
//! before the message is read.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request as HttpRequest, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use nqueens_model::credential::Credential;
use nqueens_proto::Token;
use tonic::service::Interceptor;
use tonic::{Code, Request, Status};
use tracing::debug;

use crate::error::Error;
use crate::listener::{Caller, CallerLimits, Holder, Tls};

/// What a coordinator asks callers for, and what it lets them take up.
#[derive(Clone, Debug, Default)]
pub struct Access {
    workers: Vec<(Credential, Token)>,
    operator: Option<Token>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: CallerLimits,
}

impl Access {
    /// Asks workers for one of these tokens, and operators for another one; or either for nothing where there is none.
    pub fn new(workers: Vec<(Credential, Token)>, operator: Option<Token>) -> Result<Self, Error> {
        let tokens: Vec<_> = workers.iter().map(|(_, token)| token).chain(&operator).collect();
        let is_twice =
            |(at, token): (usize, &&Token)| tokens[..at].iter().any(|other| other.is(token.as_bytes()));
        if tokens.iter().enumerate().any(is_twice) {
            return Err(Error::SameTokens);
        }
        Ok(Self { workers, operator, tls: None, limits: CallerLimits::default() })
    }

    /// Speaks TLS only, with this certificate and its key (PEM).
    pub fn with_tls(self, certificate: &[u8], key: &[u8]) -> Result<Self, Error> {
        Ok(Self { tls: Some(Tls::new(certificate, key)?), ..self })
    }

    /// Sets the limits on callers.
    #[must_use]
    pub fn with_limits(self, limits: CallerLimits) -> Self {
        Self { limits, ..self }
    }

    /// Whether nobody is let in without a token.
    pub fn is_complete(&self) -> bool {
        !self.workers.is_empty() && self.operator.is_some()
    }

    pub(crate) fn workers(&self) -> Guard {
        Guard::new(WORKER, &self.workers, &self.operators_tokens())
    }

    /// Decides which requests an operator may make.
    pub fn operators(&self) -> Guard {
        Guard::new("operator", &self.operators_tokens(), &self.workers)
    }

    fn operators_tokens(&self) -> Vec<(Credential, Token)> {
        self.operator.iter().map(|token| (Credential::shared(), token.clone())).collect()
    }
}

/// The role of those who take jobs and report results.
const WORKER: &str = "worker";

/// Looks at who calls before anything else of a call is read.
#[derive(Clone)]
pub struct Guard {
    /// `worker` or `operator`.
    role: &'static str,
    wanted: Arc<[(Credential, Token)]>,
    /// The other service's tokens: known, but not for these calls.
    other: Arc<[(Credential, Token)]>,
}

impl Guard {
    fn new(role: &'static str, wanted: &[(Credential, Token)], other: &[(Credential, Token)]) -> Self {
        Self { role, wanted: wanted.into(), other: other.into() }
    }

    /// Whether anybody may call.
    fn is_open(&self) -> bool {
        self.wanted.is_empty()
    }

    /// What the caller has shown, if it may call.
    fn admit(&self, headers: &HeaderMap, caller: &Caller) -> Result<Credential, Status> {
        let credential = self.check(headers).inspect_err(|refusal| {
            debug!(caller = %caller.address(), reason = refusal.message(), "call refused");
            caller.refuse();
        })?;
        let holder =
            if self.role == WORKER { Holder::Workers(credential.clone()) } else { Holder::Operators };
        caller.admit_holder(&holder)?;
        Ok(credential)
    }

    /// What the caller has shown, if that is enough.
    fn check(&self, headers: &HeaderMap) -> Result<Credential, Status> {
        let shown = |tokens: &[(Credential, Token)]| {
            // All are compared, so that the time tells nothing.
            let found = tokens.iter().filter(|(_, token)| token.authorizes(headers));
            found.fold(None, |_, (credential, _)| Some(credential.clone()))
        };
        let role = self.role;
        if self.is_open() {
            Ok(Credential::shared())
        } else if let Some(credential) = shown(&self.wanted) {
            Ok(credential)
        } else if shown(&self.other).is_some() {
            Err(Status::permission_denied(format!("this token is not for {role}s; give the {role}'s")))
        } else {
            Err(Status::unauthenticated(format!("the {role}'s token is missing or wrong")))
        }
    }

    /// Why a request over HTTP is not let in, if that is so. `is_known` says that its caller is known by something else
    /// than a token, `is_public` that it need not be known.
    pub fn refusal(
        &self,
        request: &HttpRequest,
        is_known: bool,
        is_public: bool,
    ) -> Option<(StatusCode, String)> {
        let caller = Caller::of(request);
        if self.is_open() && caller.address().ip().to_canonical().is_loopback() && !names_loopback(request) {
            let why = "without a token, call a coordinator on this machine as localhost or 127.0.0.1";
            return Some((StatusCode::MISDIRECTED_REQUEST, why.to_owned()));
        }
        let admitted = if is_known {
            caller.admit()
        } else if is_public && self.check(request.headers()).is_err() {
            caller.admit_holder(&Holder::Public)
        } else {
            self.admit(request.headers(), &caller).map(drop)
        };
        let refusal = admitted.err()?;
        let status = match refusal.code() {
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        Some((status, refusal.message().to_owned()))
    }

    /// Whether this is the token that is asked for.
    pub fn accepts(&self, token: &[u8]) -> bool {
        self.wanted.iter().fold(false, |found, (_, wanted)| found | wanted.is(token))
    }
}

impl Interceptor for Guard {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let caller = request.extensions().get().expect("each connection has its caller");
        let credential = self.admit(request.metadata().as_ref(), caller)?;
        request.extensions_mut().insert(credential);
        Ok(request)
    }
}

/// Lets calls of operators through. Web pages make none, also where nothing is asked for: a browser names the page's origin with each change, and all else that a page may read it calls by the page's own host.
pub(crate) async fn guard(State(guard): State<Guard>, request: HttpRequest, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) {
        return (StatusCode::MISDIRECTED_REQUEST, "web pages can't call").into_response();
    }
    match guard.refusal(&request, false, false) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    }
}

/// Whether a request's own words name this machine. A web page from elsewhere whose name was made to lead here (DNS
/// rebinding) calls it by that name.
fn names_loopback(request: &HttpRequest) -> bool {
    let is_loopback = |authority: &str| {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    };
    let hosts = request.headers().get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    let mut names = hosts.chain(request.uri().authority().map(Authority::as_str)).peekable();
    names.peek().is_some() && names.all(is_loopback)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn request(target: &str, host: &str) -> HttpRequest {
        HttpRequest::builder().uri(target).header(HOST, host).body(Body::empty()).expect("a request")
    }

    #[test]
    fn names_of_this_machine() {
        for host in ["localhost", "LOCALHOST:7327", "127.0.0.1:80", "127.3.2.1", "[::1]:7327"] {
            assert!(names_loopback(&request("/", host)), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.2", "", "[::2]"]
        {
            assert!(!names_loopback(&request("/", host)), "{host}");
        }
        assert!(names_loopback(&request("http://localhost/", "localhost")));
        assert!(!names_loopback(&request("http://evil.example/", "localhost")));
        assert!(!names_loopback(&HttpRequest::new(Body::empty())));
        let mut request = HttpRequest::new(Body::empty());
        // As in HTTP/2.
        *request.uri_mut() = "http://[::1]:7327/v1/runs".parse().expect("an address");
        assert!(names_loopback(&request));
    }
}
