//! The header that identifies a call in the logs of both ends.
//!
//! Every caller draws a random `x-request-id` for each call and logs it at `debug`. The coordinator's log lines of a
//! call are in a span with this id, those of the writer's transaction too. A malformed id is not logged.

use tonic::codegen::http::{HeaderMap, HeaderValue};
use tracing::debug;

use crate::random::random_bytes;
use crate::token::Token;

const HEADER: &str = "x-request-id";

/// Says who calls, and by what name both sides' logs have the call.
pub fn identify(headers: &mut HeaderMap, call: &str, token: Option<&Token>) {
    if let Some(token) = token {
        token.attach(headers);
    }
    let id = format!("{:016x}", u64::from_be_bytes(random_bytes()));
    debug!(call, request = %id, "calling");
    headers.insert(HEADER, HeaderValue::try_from(id).expect("hexadecimal digits"));
}

/// The name of a call; `None` if the header is anything else, so that no stranger writes into a log.
pub fn read(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(HEADER)?.to_str().ok()?;
    (id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_drawn_and_nothing_else_is() {
        let mut headers = HeaderMap::new();
        identify(&mut headers, "sync", None);
        assert_eq!(read(&headers).map(str::as_bytes), headers.get(HEADER).map(HeaderValue::as_bytes));
        let is_read = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).expect("a header");
            read(&HeaderMap::from_iter([(HEADER.parse().expect("a name"), value)])).is_some()
        };
        assert!(is_read(b"0123456789abcdef"));
        for value in ["", "ab", "+123456789abcdef", "123456789abcdefg", "0123456789abcdef0"] {
            assert!(!is_read(value.as_bytes()), "{value:?}");
        }
        assert!(!is_read(&[0xff; 16]));
    }
}
