//! Headers of every response, and the files of the page.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::{IntoResponse, Response};

/// Nothing but what this server itself gives out, no script or style within a page, and no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub(crate) async fn guard(mut response: Response) -> Response {
    let all = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in all {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) path: &'static str,
    kind: &'static str,
    text: &'static str,
}

impl IntoResponse for File {
    fn into_response(self) -> Response<Body> {
        ([(CONTENT_TYPE, self.kind)], self.text).into_response()
    }
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The parts of the first page.
pub(crate) const INDEX: &str = include_str!("../page/index.html");
pub(crate) const SCRIPT_FILE: &str = include_str!("../page/page.js");
pub(crate) const PICTURES: &str = include_str!("../page/pictures.js");
pub(crate) const STYLE_TEXT: &str = include_str!("../page/style.css");

/// For those who were let in.
pub(crate) const FILES: [File; 6] = [
    File { path: "/", kind: HTML, text: INDEX },
    File { path: "/solutions", kind: HTML, text: include_str!("../page/solutions.html") },
    File { path: "/page.js", kind: SCRIPT, text: SCRIPT_FILE },
    File { path: "/pictures.js", kind: SCRIPT, text: PICTURES },
    File { path: "/solutions.js", kind: SCRIPT, text: include_str!("../page/solutions.js") },
    File { path: "/icon.svg", kind: "image/svg+xml", text: include_str!("../page/icon.svg") },
];

/// For everybody: the page that asks for the token looks like the others.
pub(crate) const STYLE: File = File { path: "/style.css", kind: "text/css; charset=utf-8", text: STYLE_TEXT };

/// The page that asks for the token.
pub(crate) const LOGIN: File = File { path: "/login", kind: HTML, text: include_str!("../page/login.html") };

/// The same after a wrong one.
pub(crate) fn login_again() -> Response {
    let page =
        LOGIN.text.replace("<!-- wrong -->", "<p class=\"wrong\" role=\"alert\">That is not the token.</p>");
    (StatusCode::UNAUTHORIZED, [(CONTENT_TYPE, LOGIN.kind)], page).into_response()
}
