//! Counting engines as other programs know them: by name, and by what their own programs say of them.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayString;
use nqueens_kernel::engine::Kernel;

/// Bytes of a name, at most.
const LENGTH_MAX: usize = 32;

/// Name of an engine, in the words of whoever wrote it: 1 to 32 lower-case ASCII letters, digits and hyphens. A name that
/// means nothing here is kept as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelName(ArrayString<LENGTH_MAX>);

/// Name of a search. Engines of one family share it, and its errors.
pub type Family = KernelName;

/// What a worker's program says of the engine in use, once it has tried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its family where it counts boards.
    pub family: Family,
    /// What it runs on: an instruction set, or a device; a [name](crate::name::check).
    pub device: String,
    /// States that all the worker's threads visit in a second; at least 1.
    pub states_per_s: u64,
}

impl KernelName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Kernel> for KernelName {
    fn from(kernel: Kernel) -> Self {
        kernel.name().parse().expect("our own names are names")
    }
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for KernelName {
    type Err = InvalidKernelName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let clean = !text.is_empty() && text.bytes().all(is_plain);
        let name = if clean { ArrayString::from(text).ok() } else { None };
        name.map(Self).ok_or(InvalidKernelName)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an engine's name has 1 to {LENGTH_MAX} lower-case letters, digits and hyphens")]
pub struct InvalidKernelName;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for text in ["avx512", "cuda-sm90", "2", &"x".repeat(32)] {
            assert_eq!(text.parse::<KernelName>().map(|name| name.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "AVX2", "a b", "a,b", "caf\u{e9}", "a\n", &"x".repeat(33)] {
            assert_eq!(text.parse::<KernelName>(), Err(InvalidKernelName), "{text:?}");
        }
    }
}
