//! Bytes for the tests that need no fuzzer: at random, or those of a corpus with damage.

use proptest::prelude::*;
use proptest::sample::Index;

/// The files of a target's corpus.
pub(crate) fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect(&folder).map(|file| file.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} is empty");
    files.iter().map(|file| std::fs::read(file).expect("a file")).collect()
}

/// One place where bytes are replaced by others, by none, or by more.
fn edit() -> impl Strategy<Value = (Index, usize, Vec<u8>)> {
    (any::<Index>(), 0..6_usize, prop::collection::vec(any::<u8>(), 0..6))
}

/// Bytes as they may come.
pub(crate) fn bytes(target: &str) -> impl Strategy<Value = Vec<u8>> {
    let whole = prop::sample::select(corpus(target));
    let damaged = (whole, prop::collection::vec(edit(), 0..8)).prop_map(|(mut bytes, edits)| {
        for (place, less, more) in edits {
            let start = place.index(bytes.len() + 1);
            let end = (start + less).min(bytes.len());
            bytes.splice(start..end, more);
        }
        bytes
    });
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..300), 9 => damaged]
}
