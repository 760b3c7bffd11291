//! Takes jobs apart.

use nqueens_kernel::job::{Class, InvalidJob, Job};
use nqueens_model::message::Lease;

use super::queue::{PartCounts, Piece};
use crate::crew::Crew;

/// A job of more states than this is spread over the threads.
const SPREAD_STATES: u64 = 200_000_000;

/// The same of colours, whose states are nanoseconds.
const SPREAD_NS: u64 = 10_000_000;

/// Pieces for each thread of a job that is spread: enough that all threads end together.
const PIECES_PER_THREAD: usize = 8;

/// A job's independent pieces: many enough for all threads if it is heavy. Of jobs of colours, whose pieces each make tables that
/// a whole job makes once, no more than all threads need with those `waiting`. And what will be found in its parts: prefixes are
/// counted part by part; of orbits, whose neighbours share work, each tells its own.
pub(super) fn pieces(
    crew: &Crew,
    lease: &Lease,
    waiting: usize,
    leaf_test: bool,
) -> Result<(Vec<Piece>, PartCounts), InvalidJob> {
    let threads = crew.threads.get();
    let job = lease.job.decode()?;
    let parts = job.parts(lease.states);
    let found = PartCounts::new(&parts);
    let whole = if job.row_sets().is_some() { vec![job] } else { parts };
    let units =
        |(part, job): (usize, Job)| job.units(leaf_test).into_iter().map(move |unit| Piece { unit, part });
    let mut pieces: Vec<_> = whole.into_iter().enumerate().flat_map(units).collect();
    let multiplied = lease.job.class == Class::Colours;
    let (wanted, whole_max) = if multiplied {
        (threads.div_ceil(waiting + 1), SPREAD_NS)
    } else {
        (threads * PIECES_PER_THREAD, SPREAD_STATES)
    };
    if threads > 1 && lease.states > whole_max {
        // Twice is enough: each splitting makes about N pieces of one.
        for _ in 0..2 {
            if pieces.len() < wanted {
                pieces = pieces.into_iter().flat_map(Piece::split).collect();
            }
        }
    }
    Ok((pieces, found))
}
