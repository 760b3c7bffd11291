//! Results as bytes of a file, each with a checksum.

use crc::{CRC_32_ISCSI, Crc};
use nqueens_model::message::JobResult;
use nqueens_proto::{InvalidMessage, v1};
use prost::Message;

/// Bytes before a record's payload.
const HEADER: usize = 8;

/// No result is longer, in bytes; a length beyond is damage. 64 parts have four numbers of up to nine bytes each.
const PAYLOAD_MAX: usize = 4_096;

static CRC_32C: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// A record with a result in it.
pub(super) fn record(result: &JobResult) -> Vec<u8> {
    let payload = v1::JobResult::from(result.clone()).encode_to_vec();
    assert!(
        (1..=PAYLOAD_MAX).contains(&payload.len()),
        "a result takes about 60 bytes, and 40 for a part at most"
    );
    let length = u32::try_from(payload.len()).expect("checked above").to_le_bytes();
    let checksum = checksum(&length, &payload).to_le_bytes();
    [&length[..], &checksum, &payload].concat()
}

pub(super) fn checksum(length: &[u8], payload: &[u8]) -> u32 {
    let mut digest = CRC_32C.digest();
    digest.update(length);
    digest.update(payload);
    digest.finalize()
}

/// The result in a record's payload, or why it can't be understood.
pub(super) fn decode(payload: &[u8]) -> Result<JobResult, String> {
    let wire = v1::JobResult::decode(payload).map_err(|error| error.to_string())?;
    JobResult::try_from(wire).map_err(|error: InvalidMessage| error.to_string())
}

/// What the bytes of a file hold.
pub(super) struct Contents<'a> {
    /// Of the undamaged records.
    pub(super) payloads: Vec<&'a [u8]>,
    /// Bytes that belong to no undamaged record.
    pub(super) unreadable: usize,
    /// Where the last undamaged record ends.
    pub(super) end: usize,
}

impl<'a> Contents<'a> {
    /// Finds all undamaged records, wherever they stand.
    pub(super) fn read(bytes: &'a [u8]) -> Self {
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
