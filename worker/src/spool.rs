//! Results on disk until they are acknowledged, so that they outlive the worker's process.
//!
//! ```text
//! DIR/results    what the coordinator has not acknowledged yet
//! DIR/rejected   what it does not know: results of another database, set aside for somebody to look at
//! ```
//!
//! Both are sequences of records: length and CRC-32C, four bytes each, little-endian, then so many bytes of
//! `v1::JobResult`. The checksum covers the length too. `results` only grows, until all in it is acknowledged; then
//! it is emptied. Results that were acknowledged but not yet emptied out are simply reported again: the coordinator
//! recognises them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crc::{CRC_32_ISCSI, Crc};
use nqueens_proto::message::JobResult;
use nqueens_proto::{InvalidMessage, v1};
use prost::Message;
use tracing::warn;

/// Bytes before a record's payload.
const HEADER: usize = 8;

/// No result is longer, in bytes; a length beyond is damage.
const PAYLOAD_MAX: usize = 1_024;

static CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Why a spool can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process has it.
    #[error("another worker uses the spool {0}; give each worker a --spool of its own")]
    InUse(PathBuf),
    /// The directory can't be made, read or written.
    #[error("can't use the spool {dir}: {source}; choose another --spool")]
    Unusable {
        /// The spool's directory.
        dir: PathBuf,
        /// In the system's words.
        source: io::Error,
    },
    /// Undamaged, and yet not to be understood.
    #[error(
        "the spool {dir} holds a result that this version can't read ({problem}); start the one that wrote it"
    )]
    Foreign {
        /// The spool's directory.
        dir: PathBuf,
        /// What is wrong with the result.
        problem: String,
    },
}

/// A directory that keeps results, of one process at a time.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    /// Locked as long as it is open.
    results: File,
    recovered: Vec<JobResult>,
}

impl Spool {
    /// Opens a spool, creates it if need be, and reads what an earlier process left in it.
    ///
    /// Damage costs the records that it hit and no others; it is logged.
    pub fn open(dir: &Path) -> Result<Self, SpoolError> {
        let unusable = |source: io::Error| SpoolError::Unusable { dir: dir.to_owned(), source };
        std::fs::create_dir_all(dir).map_err(unusable)?;
        let options = OpenOptions::new().read(true).append(true).create(true).clone();
        let mut results = options.open(dir.join("results")).map_err(unusable)?;
        results.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SpoolError::InUse(dir.to_owned()),
            TryLockError::Error(error) => unusable(error),
        })?;
        sync_directory(dir).map_err(unusable)?;
        let mut bytes = Vec::new();
        results.read_to_end(&mut bytes).map_err(unusable)?;
        let contents = Contents::read(&bytes);
        let recovered: Result<Vec<_>, _> = contents.payloads.into_iter().map(decode).collect();
        let recovered = recovered.map_err(|problem| SpoolError::Foreign { dir: dir.to_owned(), problem })?;
        if contents.unreadable > 0 {
            warn!(
                spool = %dir.display(),
                bytes = contents.unreadable,
                results = recovered.len(),
                "part of the spool is torn or damaged: its jobs will be counted again, the other results are kept"
            );
            results.set_len(contents.end as u64).map_err(unusable)?;
        }
        Ok(Self { dir: dir.to_owned(), results, recovered })
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What an earlier process left; the first call takes it.
    pub(crate) fn take_recovered(&mut self) -> Vec<JobResult> {
        std::mem::take(&mut self.recovered)
    }

    /// Puts results on disk, all of them or none; they are safe when it returns.
    pub(crate) fn append(&self, results: &[JobResult]) -> io::Result<()> {
        append(&self.results, results)
    }

    /// Empties it: all that was in it is acknowledged.
    pub(crate) fn clear(&self) -> io::Result<()> {
        self.results.set_len(0)
    }

    /// Sets results aside for good, apart from those to be reported.
    pub(crate) fn reject(&self, results: &[JobResult]) -> io::Result<()> {
        let file = OpenOptions::new().append(true).create(true).open(self.dir.join("rejected"))?;
        append(&file, results)?;
        sync_directory(&self.dir)
    }
}

/// Makes the names in a directory safe.
fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn append(mut file: &File, results: &[JobResult]) -> io::Result<()> {
    let records: Vec<u8> = results.iter().flat_map(|result| record(*result)).collect();
    let length = file.metadata()?.len();
    let written = file.write_all(&records).and_then(|()| file.sync_data());
    if written.is_err() {
        // What stays behind if this fails too is found damaged, or reported twice; either does no harm.
        let _ = file.set_len(length);
    }
    written
}

fn record(result: JobResult) -> Vec<u8> {
    let payload = v1::JobResult::from(result).encode_to_vec();
    assert!((1..=PAYLOAD_MAX).contains(&payload.len()), "a result takes about 60 bytes");
    let length = u32::try_from(payload.len()).expect("checked above").to_le_bytes();
    let checksum = checksum(&length, &payload).to_le_bytes();
    [&length[..], &checksum, &payload].concat()
}

fn checksum(length: &[u8], payload: &[u8]) -> u32 {
    let mut digest = CRC_32C.digest();
    digest.update(length);
    digest.update(payload);
    digest.finalize()
}

fn decode(payload: &[u8]) -> Result<JobResult, String> {
    let wire = v1::JobResult::decode(payload).map_err(|error| error.to_string())?;
    JobResult::try_from(wire).map_err(|error: InvalidMessage| error.to_string())
}

/// What the bytes of a file hold.
struct Contents<'a> {
    /// Of the undamaged records.
    payloads: Vec<&'a [u8]>,
    /// Bytes that belong to no undamaged record.
    unreadable: usize,
    /// Where the last undamaged record ends.
    end: usize,
}

impl<'a> Contents<'a> {
    /// Finds all undamaged records, wherever they stand.
    fn read(bytes: &'a [u8]) -> Self {
        let mut contents = Self { payloads: Vec::new(), unreadable: 0, end: 0 };
        let mut at = 0;
        while at < bytes.len() {
            if let Some(payload) = first_record(&bytes[at..]) {
                contents.payloads.push(payload);
                at += HEADER + payload.len();
                contents.end = at;
            } else {
                contents.unreadable += 1;
                at += 1;
            }
        }
        contents
    }
}

/// The payload of the record that the bytes begin with, if it is whole and undamaged.
fn first_record(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (expected, rest) = rest.split_first_chunk::<4>()?;
    let size = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let payload = rest.get(..size).filter(|_| (1..=PAYLOAD_MAX).contains(&size))?;
    (checksum(length, payload) == u32::from_le_bytes(*expected)).then_some(payload)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nqueens_kernel::counts::Counts;
    use nqueens_kernel::engine::Kernel;
    use nqueens_proto::id::{Incarnation, JobId, LeaseToken, RunId};
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn result(seed: u64) -> JobResult {
        let job = JobId { run: RunId::from_random(seed.wrapping_mul(0x9e37)), number: 7 };
        let incarnation = Incarnation::from_random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let token = LeaseToken { job, epoch: NonZeroU32::MIN, incarnation };
        let counts = Counts { count4: seed % 3, count8: seed, ..Counts::ZERO };
        JobResult { token, counts, kernel: Kernel::ALL[0], states: seed, elapsed_us: seed / 2 }
    }

    fn results(count: u64) -> Vec<JobResult> {
        (1..=count).map(|number| result(number * 12_345)).collect()
    }

    fn read(bytes: &[u8]) -> Vec<JobResult> {
        Contents::read(bytes).payloads.into_iter().map(|payload| decode(payload).expect("ours")).collect()
    }

    #[test]
    fn results_outlive_their_process() {
        let place = TempDir::new().expect("a directory");
        let dir = place.path().join("deep/spool");
        let spool = Spool::open(&dir).expect("a new spool");
        assert!(matches!(Spool::open(&dir), Err(SpoolError::InUse(_))), "it is locked");
        spool.append(&results(2)).expect("stored");
        spool.append(&[result(9)]).expect("stored");
        drop(spool);

        let mut spool = Spool::open(&dir).expect("the lock went with its holder");
        assert_eq!(spool.take_recovered(), [results(2), vec![result(9)]].concat());
        assert_eq!(spool.take_recovered(), []);
        spool.reject(&[result(9)]).expect("set aside");
        spool.reject(&[result(10)]).expect("set aside");
        spool.clear().expect("emptied");
        spool.append(&[result(5)]).expect("stored behind what was cleared");
        drop(spool);

        assert_eq!(Spool::open(&dir).expect("a spool").take_recovered(), [result(5)]);
        let rejected = std::fs::read(dir.join("rejected")).expect("a file");
        assert_eq!(read(&rejected), [result(9), result(10)]);
    }

    #[test]
    fn a_torn_tail_costs_only_itself() {
        let (first, second) = (record(result(1)), record(result(2)));
        let bytes = [first.clone(), second].concat();
        for end in 0..=bytes.len() {
            let whole = usize::from(end >= first.len()) + usize::from(end == bytes.len());
            assert_eq!(read(&bytes[..end]), [result(1), result(2)][..whole], "cut at {end}");
        }
        // And the file is cut so that what comes next stands behind whole records.
        let place = TempDir::new().expect("a directory");
        std::fs::write(place.path().join("results"), &bytes[..bytes.len() - 1]).expect("a file");
        let mut spool = Spool::open(place.path()).expect("a spool");
        assert_eq!(spool.take_recovered(), [result(1)]);
        spool.append(&[result(3)]).expect("stored");
        drop(spool);
        let bytes = std::fs::read(place.path().join("results")).expect("a file");
        assert_eq!(Contents::read(&bytes).unreadable, 0);
        assert_eq!(read(&bytes), [result(1), result(3)]);
    }

    #[test]
    fn zeros_that_a_power_cut_left_are_no_records() {
        let bytes = [record(result(1)), vec![0; 200]].concat();
        let contents = Contents::read(&bytes);
        assert_eq!((contents.payloads.len(), contents.unreadable), (1, 200));
    }

    #[test]
    fn unusable_places_are_refused() {
        let place = TempDir::new().expect("a directory");
        let file = place.path().join("file");
        std::fs::write(&file, "").expect("a file");
        let refused = Spool::open(&file.join("spool")).expect_err("no directory can be there").to_string();
        assert!(
            refused.contains("file/spool: Not a directory") && refused.ends_with("another --spool"),
            "{refused}"
        );

        let mut later = v1::JobResult::from(result(1));
        later.kernel = "abacus".to_owned();
        let payload = later.encode_to_vec();
        let length = u32::try_from(payload.len()).expect("short").to_le_bytes();
        let bytes = [&length[..], &checksum(&length, &payload).to_le_bytes(), &payload].concat();
        std::fs::write(place.path().join("results"), &bytes).expect("a file");
        let refused = Spool::open(place.path()).expect_err("of a later version").to_string();
        assert!(refused.contains("abacus"), "{refused}");
        assert_eq!(std::fs::read(place.path().join("results")).expect("a file"), bytes, "left as it was");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// A burst of damage costs the records that it touches and no others.
        #[test]
        fn damage_costs_only_what_it_hit(
            count in 1_u64..20,
            place in any::<prop::sample::Index>(),
            damage in prop::collection::vec(any::<u8>(), 1..40),
        ) {
            let results = results(count);
            let mut bytes = Vec::new();
            let mut spans = Vec::new();
            for result in &results {
                let begin = bytes.len();
                bytes.extend(record(*result));
                spans.push(begin..bytes.len());
            }
            let begin = place.index(bytes.len());
            let original = bytes.clone();
            for (byte, damage) in bytes[begin..].iter_mut().zip(&damage) {
                *byte ^= damage;
            }
            let untouched = results.iter().zip(&spans).filter(|(_, span)| bytes[(*span).clone()] == original[(*span).clone()]);
            let untouched: Vec<_> = untouched.map(|(result, _)| *result).collect();
            prop_assert_eq!(read(&bytes), untouched);
        }
    }
}
