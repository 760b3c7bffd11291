//! Fingerprints: a digest that tells any two plans apart.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::{Plan, PlanKind};
use crate::board::BoardSize;
use crate::colours::RowSets;
use crate::job::{Class, Job};

/// The SHA-256 of a plan and all its jobs: two plans with the same fingerprint are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The sample of row sets that [`Fingerprint::of_all_plans`] uses, out of this number.
fn sample(sets: u64) -> impl Iterator<Item = u64> {
    const SAMPLE: u64 = 64;
    (0..SAMPLE).map(move |at| at * sets / SAMPLE)
}

impl Fingerprint {
    /// The fingerprint of all plans together: two programs with the same one split boards in the same way, and mean
    /// the same by every job and by its parts.
    ///
    /// Small boards represent all boards. But jobs of colours only contain numbers of row sets, so the meaning of these
    /// numbers is sampled on every board.
    pub fn of_all_plans() -> Self {
        let mut digest = Sha256::new();
        for n in BoardSize::MIN.up_to(BoardSize::MAX) {
            if n.get() <= 10 {
                for kind in PlanKind::ALL.into_iter().chain([PlanKind::Cells]) {
                    digest.update(Plan::new(n, kind).fingerprint().0);
                }
                digest.update(parts_of_first_jobs(n));
            }
            if let Some(sets) = RowSets::new(n) {
                digest.update(sets.len().to_be_bytes());
                let some: Vec<_> = sample(sets.len()).map(|number| sets.get(number)).collect();
                for set in &some {
                    // Which column sets count is part of what a row set means: that of another one's rows does or not.
                    let others = some.iter().map(|other| set.columns_weight(other.rows));
                    digest.update([set.rows, set.weight, others.sum()].map(u32::to_be_bytes).concat());
                }
            }
        }
        Self(digest.finalize().into())
    }
}

/// The parts of the first job of each plan, were it as large as jobs get.
fn parts_of_first_jobs(n: BoardSize) -> Vec<u8> {
    let kinds = PlanKind::ALL.into_iter().chain([PlanKind::Cells]);
    let jobs = kinds.filter_map(|kind| Plan::new(n, kind).jobs().next());
    jobs.flat_map(|job| job.parts(u64::MAX)).flat_map(|part| part.encode()).collect()
}

impl fmt::Display for Fingerprint {
    /// 64 lowercase hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidFingerprint)?;
        if text.contains(char::is_uppercase) { Err(InvalidFingerprint) } else { Ok(Self(bytes)) }
    }
}

/// What was given is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 lowercase hexadecimal digits")]
pub struct InvalidFingerprint;

/// Computes the fingerprint of a plan from its jobs, one at a time.
#[derive(Clone, Debug)]
pub struct Fingerprinter(Sha256);

impl Fingerprinter {
    /// Starts with the plan; all its jobs follow, in order.
    pub fn new(plan: &Plan) -> Self {
        let (n, kind, states_per_job) = (plan.n(), plan.kind(), plan.states_per_job());
        let head = format!("nqueens plan 1\nn {n}\nkind {kind}\nstates-per-job {states_per_job}\n");
        let cells = plan.cells().map(|cells| format!("{cells}\n")).unwrap_or_default();
        Self(Sha256::new_with_prefix(head).chain_update(cells))
    }

    /// The next job.
    pub fn add(&mut self, job: &Job) {
        self.add_encoded(job.class(), job.bound1(), &job.encode());
    }

    /// The next job, as [`Job::encode`] gave it. It need not be decoded: a wrong one makes a wrong fingerprint.
    pub fn add_encoded(&mut self, class: Class, bound1: u8, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("an encoded job is a few kilobytes");
        self.0.update(class.name());
        self.0.update([bound1]);
        self.0.update(length.to_be_bytes());
        self.0.update(bytes);
    }

    /// The fingerprint of the plan and the jobs that were added.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_read_as_they_are_written() {
        let print = Fingerprint(std::array::from_fn(|at| u8::try_from(at * 8).unwrap()));
        assert_eq!(print.to_string().parse(), Ok(print));
        let text = print.to_string();
        for wrong in
            ["", "00", &text[1..], &format!("{text}00"), &text.to_uppercase(), &text.replace('8', "+")]
        {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(InvalidFingerprint), "{wrong}");
        }
    }
}
