//! Who may look: whoever may call as an operator. A browser shows the token once, and then a cookie.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::rejection::FormRejection;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Form};
use nqueens_coordinator::{Bucket, Caller, Guard, Rate};
use nqueens_proto::random_bytes;
use serde::Deserialize;
use subtle::ConstantTimeEq;
use tokio::time::Instant;
use tracing::{debug, info};

use crate::headers::{LOGIN, login_again};

/// Browsers that are let in at once; of more, the first to come have to show their token again.
const SESSIONS_MAX: usize = 64;

/// Time after which a browser must present the token again.
const SESSION_LIFE: Duration = Duration::from_hours(7 * 24);

/// Limit of log lines about wrong tokens at `info`; the rest go to `debug`.
const COMPLAINTS: Rate = Rate { most: 10, each: Duration::from_mins(1) };

const NAME: &str = "nqueens";

/// Access to the page: the rule, and who has come in.
pub(crate) struct Auth {
    operators: Guard,
    /// Whether everybody may look.
    public: bool,
    /// Oldest first.
    sessions: Mutex<VecDeque<(String, Instant)>>,
    complaints: Mutex<Bucket>,
}

impl Auth {
    pub(crate) fn new(operators: Guard, public: bool) -> Self {
        let complaints = Mutex::new(Bucket::new(COMPLAINTS, std::time::Instant::now()));
        Self { operators, public, sessions: Mutex::default(), complaints }
    }

    /// Lets a browser in: the value of its cookie.
    fn begin_session(&self) -> String {
        let value = hex::encode(random_bytes::<32>());
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.push_back((value.clone(), Instant::now()));
        if sessions.len() > SESSIONS_MAX {
            sessions.pop_front();
        }
        value
    }

    fn knows(&self, presented: &str) -> bool {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(_, begun)| begun.elapsed() < SESSION_LIFE);
        // All are looked at, so that the time says nothing.
        sessions
            .iter()
            .fold(false, |known, (value, _)| known | bool::from(value.as_bytes().ct_eq(presented.as_bytes())))
    }

    fn complain(&self) {
        let mut complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let what = "wrong token on the page";
        if complaints.take(std::time::Instant::now()) { info!("{what}") } else { debug!("{what}") }
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == NAME).map(|(_, value)| value)
}

/// Lets a request through, or says why not.
pub(crate) async fn keep(State(auth): State<Arc<Auth>>, request: Request, next: Next) -> Response {
    let is_known = cookie(request.headers()).is_some_and(|value| auth.knows(value));
    match auth.operators.refusal(&request, is_known, auth.public) {
        None => next.run(request).await,
        Some((StatusCode::UNAUTHORIZED, why)) => ask(&request, why),
        Some(refusal) => refusal.into_response(),
    }
}

/// People are led to the form, programs are told.
fn ask(request: &Request, why: String) -> Response {
    if matches!(request.uri().path(), "/" | "/solutions") && !request.headers().contains_key(AUTHORIZATION) {
        return Redirect::to(LOGIN.path).into_response();
    }
    let challenge = [(WWW_AUTHENTICATE, "Bearer realm=\"nqueens\"")];
    (StatusCode::UNAUTHORIZED, challenge, why).into_response()
}

#[derive(Deserialize)]
pub(crate) struct Shown {
    token: String,
}

/// The form comes back: a cookie for the right token.
pub(crate) async fn enter(
    State(auth): State<Arc<Auth>>,
    Extension(caller): Extension<Caller>,
    Extension(scheme): Extension<Scheme>,
    headers: HeaderMap,
    shown: Result<Form<Shown>, FormRejection>,
) -> Response {
    if !shown.is_ok_and(|Form(Shown { token })| auth.operators.accepts(token.trim_ascii().as_bytes())) {
        auth.complain();
        caller.refuse();
        return login_again();
    }
    // Too many calls are refused where they are made.
    drop(caller.admit());
    let value = auth.begin_session();
    // Over TLS, ours or that of a proxy before this, the cookie stays there.
    let secure =
        scheme == Scheme::HTTPS || headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    let secure = if secure { "; Secure" } else { "" };
    let seconds = SESSION_LIFE.as_secs();
    let cookie = format!("{NAME}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response()
}

#[cfg(test)]
mod tests {
    use nqueens_coordinator::Access;

    use super::*;

    fn auth() -> Auth {
        Auth::new(Access::default().operators(), false)
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_after_their_time() {
        let auth = auth();
        let value = auth.begin_session();
        tokio::time::advance(SESSION_LIFE.saturating_sub(Duration::from_secs(1))).await;
        assert!(auth.knows(&value));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!auth.knows(&value));
    }

    #[test]
    fn sessions_are_few_and_their_own() {
        let auth = auth();
        let values: Vec<_> = (0..=SESSIONS_MAX).map(|_| auth.begin_session()).collect();
        assert!(!auth.knows(&values[0]), "the first had to go");
        assert!(values[1..].iter().all(|value| auth.knows(value)));
        assert!(
            values.iter().all(|value| value.len() == 64) && !auth.knows("") && !auth.knows(&values[1][1..])
        );
    }

    #[test]
    fn cookies_among_others() {
        let headers = |line: &str| HeaderMap::from_iter([(COOKIE, line.parse().expect("a value"))]);
        assert_eq!(cookie(&headers("a=b; nqueens=12; c=d")), Some("12"));
        assert_eq!(cookie(&headers("xnqueens=12; nqueens")), None);
    }
}
