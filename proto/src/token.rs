//! Bearer tokens: they tell the role of a caller.

use std::fmt;
use std::str::FromStr;

use subtle::ConstantTimeEq;
use tonic::codegen::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};

/// What stands before a token in the field `authorization` (RFC 6750).
const SCHEME: &str = "Bearer ";

/// Fewer characters can be guessed.
const LENGTH_MIN: usize = 16;

/// More than anybody needs.
const LENGTH_MAX: usize = 256;

/// A shared secret, 16 to 256 visible ASCII characters. Nothing prints it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Puts the token into a request's headers, marked as one that is not to be logged.
    pub fn attach(&self, headers: &mut HeaderMap) {
        let value = format!("{SCHEME}{}", self.0);
        let mut value = HeaderValue::try_from(value).expect("visible ASCII");
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }

    /// Whether a request's headers carry this very token. Takes the same time for every wrong one of its length.
    pub fn authorizes(&self, headers: &HeaderMap) -> bool {
        let presented = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let presented = presented.and_then(|value| value.strip_prefix(SCHEME.as_bytes()));
        presented.is_some_and(|presented| self.is(presented))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether this is the very same token. Takes the same time for every wrong one of its length.
    pub fn is(&self, presented: &[u8]) -> bool {
        presented.ct_eq(self.0.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What was given is no token; says why, and not what it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has {LENGTH_MIN} to {LENGTH_MAX} visible ASCII characters without spaces, {0}")]
pub struct InvalidToken(String);

impl FromStr for Token {
    type Err = InvalidToken;

    /// White space around it is dropped, for files end with a newline.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim_ascii();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken("this one has other characters".to_owned()));
        }
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&text.len()) {
            return Err(InvalidToken(format!("this one has {}", text.len())));
        }
        Ok(Self(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "correct-horse-battery";

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, value.parse().expect("ASCII"))])
    }

    #[test]
    fn only_the_very_same_token_authorizes() {
        let token: Token = format!(" {SECRET}\n").parse().expect("a token");
        let mut own = HeaderMap::new();
        token.attach(&mut own);
        assert!(token.authorizes(&own));
        assert!(token.authorizes(&headers(&format!("Bearer {SECRET}"))));
        let wrong = ["", "Bearer ", SECRET, "Basic correct-horse-battery", "Bearer correct-horse-batterz"];
        for value in wrong.into_iter().chain(["Bearer correct-horse-batter", "Bearer correct-horse-battery1"])
        {
            assert!(!token.authorizes(&headers(value)), "'{value}'");
        }
        assert!(!token.authorizes(&HeaderMap::new()));
    }

    #[test]
    fn tokens_are_long_enough_and_never_printed() {
        let refused = |text: &str| text.parse::<Token>().expect_err("no token").to_string();
        assert!(refused("").ends_with("this one has 0"));
        assert!(refused("fifteen-letters").ends_with("this one has 15"));
        assert!(refused(&"x".repeat(257)).ends_with("this one has 257"));
        for text in ["with a blank in it", "sixteen-or-more-\u{e9}", "new\nline-new-line"] {
            assert!(refused(text).ends_with("this one has other characters"), "{text:?}");
        }
        assert!("x".repeat(16).parse::<Token>().is_ok() && "x".repeat(256).parse::<Token>().is_ok());

        let token: Token = SECRET.parse().expect("a token");
        let mut headers = HeaderMap::new();
        token.attach(&mut headers);
        assert!(!format!("{token:?} {headers:?}").contains("horse"));
    }
}
