//! The one source of randomness: secrets, and names that nobody else may have.

/// Random bytes from the operating system; a system that has none is of no use here.
pub fn random_bytes<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
