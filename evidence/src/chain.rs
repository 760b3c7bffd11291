//! Lines of JSON, each with a hash over itself and all lines before it.

use std::io::{self, BufRead, Read, Write};

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The hash before the first line: 64 zeros.
const START: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Every line ends with `,"chain":"` and its hash, 64 digits, and `"}`.
const BEFORE_HASH: &str = ",\"chain\":\"";
const AFTER_HASH: &str = "\"}";
const HASH_LENGTH: usize = 64;
const SEAL_LENGTH: usize = BEFORE_HASH.len() + HASH_LENGTH + AFTER_HASH.len();

/// The longest line that is read; a job of the most and longest prefixes takes a quarter of it.
const LINE_MAX: u64 = 1 << 18;

/// The hash of a line: over the hash of the line before it, as 64 digits, and the line up to its seal.
fn link(before: &str, unsealed: &str) -> String {
    hex::encode(Sha256::new().chain_update(before).chain_update(unsealed).finalize())
}

#[derive(Debug)]
pub struct ChainWriter<W> {
    out: W,
    hash: String,
    lines: u64,
}

impl<W: Write> ChainWriter<W> {
    pub fn new(out: W) -> Self {
        Self { out, hash: START.to_owned(), lines: 0 }
    }

    /// Writes one line: something that is a JSON object with at least one field.
    pub fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        assert!(text.ends_with('}') && text.len() > 2, "a line is an object with fields");
        text.pop();
        self.hash = link(&self.hash, &text);
        self.lines += 1;
        writeln!(self.out, "{text}{BEFORE_HASH}{}{AFTER_HASH}", self.hash)
    }

    /// Ends the file; returns the number of its lines, and the hash that stands for all of it.
    pub fn finish(mut self) -> io::Result<(u64, String)> {
        self.out.flush()?;
        Ok((self.lines, self.hash))
    }
}

#[derive(Debug)]
pub struct ChainReader<R> {
    input: R,
    hash: String,
    lines: u64,
    broken: Vec<u64>,
}

/// Lines whose hash is wrong of which the number is kept.
const BROKEN_MAX: usize = 10;

impl<R: BufRead> ChainReader<R> {
    pub fn new(input: R) -> Self {
        Self { input, hash: START.to_owned(), lines: 0, broken: Vec::new() }
    }

    /// The next line without its seal, an object again; `None` at the end of the file. The inner error says why the line is
    /// none of ours; a wrong hash alone is only noted.
    pub fn next_line(&mut self) -> io::Result<Result<Option<String>, String>> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(Ok(None));
        }
        self.lines += 1;
        Ok(self.unseal(bytes).map(Some).map_err(|what| format!("line {} {what}", self.lines)))
    }

    fn unseal(&mut self, mut bytes: Vec<u8>) -> Result<String, &'static str> {
        if bytes.pop() != Some(b'\n') {
            return Err(if bytes.len() as u64 + 1 == LINE_MAX {
                "is longer than a line can be"
            } else {
                "does not end: the file is cut off"
            });
        }
        let mut text = String::from_utf8(bytes).map_err(|_| "is no text")?;
        let seal = text.len().checked_sub(SEAL_LENGTH).and_then(|at| text.get(at..));
        let hash = seal.and_then(|seal| seal.strip_prefix(BEFORE_HASH)?.strip_suffix(AFTER_HASH));
        let hash = hash.ok_or("does not end with its hash")?.to_owned();
        text.truncate(text.len() - SEAL_LENGTH);
        if link(&self.hash, &text) != hash && self.broken.len() < BROKEN_MAX {
            self.broken.push(self.lines);
        }
        self.hash = hash;
        text.push('}');
        Ok(text)
    }

    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// The hash of the last line, as it says itself.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The first lines whose hash is not that of what stands there.
    pub fn broken(&self) -> &[u64] {
        &self.broken
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written() -> (String, String) {
        let mut bytes = Vec::new();
        let mut writer = ChainWriter::new(&mut bytes);
        for number in 0..3 {
            writer.write(&json!({ "number": number })).unwrap();
        }
        let (lines, hash) = writer.finish().unwrap();
        assert_eq!(lines, 3);
        (String::from_utf8(bytes).unwrap(), hash)
    }

    fn read(text: &str) -> (Result<Vec<String>, String>, Vec<u64>, String) {
        let mut reader = ChainReader::new(text.as_bytes());
        let lines = std::iter::from_fn(|| reader.next_line().unwrap().transpose()).collect();
        (lines, reader.broken().to_vec(), reader.hash().to_owned())
    }

    #[test]
    fn what_is_written_is_read() {
        let (text, hash) = written();
        // As sha256sum says of 64 zeros and {"number":0
        let first = "27e7f7fda9e583efd747995970f62b4a8707a32159155c1b43e59d01cb79f379";
        assert!(text.starts_with(&format!("{{\"number\":0,\"chain\":\"{first}\"}}\n")), "{text}");
        let lines = [0, 1, 2].map(|number| format!("{{\"number\":{number}}}"));
        assert_eq!(read(&text), (Ok(lines.to_vec()), vec![], hash));
    }

    #[test]
    fn a_change_breaks_its_own_link_or_the_next() {
        let (text, hash) = written();
        assert_eq!(read(&text.replace("\"number\":1", "\"number\":7")).1, [2]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(read(&format!("{}\n{}\n", lines[0], lines[2])).1, [2]);
        assert_eq!(read(&format!("{}\n{}\n{}\n", lines[1], lines[0], lines[2])).1, [1, 2, 3]);
        assert_ne!(read(&format!("{}\n{}\n", lines[0], lines[1])).2, hash, "cut off at a line's end");
    }

    #[test]
    fn other_lines_are_told() {
        let (text, _) = written();
        let cut = read(&text[..text.len() - 1]).0;
        assert_eq!(cut, Err("line 3 does not end: the file is cut off".to_owned()));
        for other in ["\n", "{}\n", "{\"number\":0}\n", "\u{fc}\n"] {
            assert_eq!(read(other).0, Err("line 1 does not end with its hash".to_owned()));
        }
        let long = format!("{{\"number\":{}}}\n", "1".repeat(1 << 20));
        assert_eq!(read(&long).0, Err("line 1 is longer than a line can be".to_owned()));
        let mut reader = ChainReader::new(&b"\xff\xfe\n"[..]);
        assert_eq!(reader.next_line().unwrap(), Err("line 1 is no text".to_owned()));
    }
}
