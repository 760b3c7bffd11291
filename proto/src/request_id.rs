//! Names of calls, by which the logs of both ends can be held together.

use std::fmt;

use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// Names one call: 64 bits that the caller draws at random, shown as 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId(u64);

impl RequestId {
    /// The header that carries it.
    pub const HEADER: &str = "x-request-id";

    /// A call's name from random bits.
    pub const fn from_random(bits: u64) -> Self {
        Self(bits)
    }

    /// Names a request.
    pub fn attach(self, metadata: &mut MetadataMap) {
        let value = AsciiMetadataValue::try_from(self.to_string()).expect("hexadecimal digits");
        metadata.insert(Self::HEADER, value);
    }

    /// The name in a header's value; `None` if that is anything else, so that no stranger writes into a log.
    pub fn read(value: &[u8]) -> Option<Self> {
        let text = str::from_utf8(value).ok().filter(|_| value.len() == 16)?;
        let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_attached_is_read_and_nothing_else() {
        for bits in [0, 0xab, u64::MAX] {
            let mut metadata = MetadataMap::new();
            let id = RequestId::from_random(bits);
            id.attach(&mut metadata);
            let value = metadata.get(RequestId::HEADER).expect("attached");
            assert_eq!(RequestId::read(value.as_bytes()), Some(id));
        }
        let strange =
            ["", "ab", "+123456789abcdef", "123456789abcdefg", "0123456789abcdef0", "one line\nanother"];
        for value in strange {
            assert_eq!(RequestId::read(value.as_bytes()), None, "{value:?}");
        }
        assert_eq!(RequestId::read(&[0xff; 16]), None);
    }
}
