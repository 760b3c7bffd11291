//! The lines of an exported ledger: a header, every job with its result, the workers, the total.
//!
//! Numbers that can outgrow 2^53 are decimal strings.

use std::str::FromStr;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::cells::Cells;
use nqueens_kernel::counts::{Counts, Totals};
use nqueens_kernel::job::Class;
use nqueens_kernel::plan::{Fingerprint, Plan, PlanKind};
use nqueens_model::id::RunId;
use nqueens_model::json::{optional_text, text};
use nqueens_model::kernel::KernelName;
use nqueens_model::operator::WallTime;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// The version of the format; a file of another one is refused.
pub const FORMAT: u32 = 1;

/// A line, by what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
pub enum Line {
    Ledger(Header),
    /// One for each job, in the order of the plan.
    Job(JobLine),
    /// One for each other result of the job above.
    Other(OtherLine),
    /// One for each worker whose results stand above.
    Worker(WorkerLine),
    Total(TotalLine),
}

/// What was counted, by which plan, and what it came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub format: u32,
    #[serde(with = "text")]
    pub run: RunId,
    #[serde(with = "board")]
    pub n: BoardSize,
    #[serde(with = "text")]
    pub plan: PlanKind,
    /// The board of a plan `cells`, as it is drawn, and of no other.
    #[serde(default, with = "optional_text", skip_serializing_if = "Option::is_none")]
    pub cells: Option<Cells>,
    #[serde(with = "text")]
    pub states_per_job: u64,
    pub jobs: u32,
    #[serde(with = "text")]
    pub fingerprint: Fingerprint,
    /// Fixed the order in which the jobs left.
    #[serde(with = "text")]
    pub seed: u64,
    /// When the run was submitted, in milliseconds since 1970.
    pub created_at_ms: WallTime,
    pub finished_at_ms: Option<WallTime>,
    pub build: String,
    #[serde(with = "text")]
    pub total: u128,
}

impl Header {
    /// The plan that it names; `None` if it has not the cells that the plan takes.
    pub fn plan(&self) -> Option<Plan> {
        Plan::stored(self.n, self.plan, self.cells, self.states_per_job)
    }
}

/// A job and its accepted result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLine {
    pub number: u32,
    #[serde(with = "text")]
    pub class: Class,
    pub bound1: u8,
    /// The job as `Job::encode` gives it, in hexadecimal digits.
    #[serde(with = "hex")]
    pub bytes: Vec<u8>,
    pub result: LedgerResult,
}

/// A result that does not stand: it was voided, or is a second count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherLine {
    pub number: u32,
    pub verdict: OtherVerdict,
    pub result: LedgerResult,
}

/// What a worker found in a job. The database gives the same object (`ledger_result`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerResult {
    #[serde(with = "CountsText")]
    pub counts: Counts,
    #[serde(with = "text")]
    pub kernel: KernelName,
    pub worker: u64,
    /// Number of the lease, among those that were given for the job.
    pub epoch: u32,
    #[serde(with = "text")]
    pub states: u64,
    /// Thread time.
    #[serde(with = "text")]
    pub elapsed_us: u64,
    /// Processor time; `None` where it was not measured.
    #[serde(default, with = "optional_text", skip_serializing_if = "Option::is_none")]
    pub cpu_us: Option<u64>,
    /// When it arrived, in milliseconds since 1970.
    pub reported_at_ms: WallTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OtherVerdict {
    /// It was accepted and later voided: wrong, or in doubt.
    Voided,
    /// It is equal to the result that was accepted at the time.
    Duplicate,
    /// It differs from the result that was accepted at the time.
    Conflict,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerLine {
    pub worker: u64,
    pub name: String,
    /// Of the token or certificate that it has shown, unless that is the one of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    pub build: String,
    /// Its engines, separated by commas.
    pub kernels: String,
    /// What these run on: instruction sets, or devices with their drivers; some workers don't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    pub threads: u32,
    /// How many of the results above are its own.
    pub jobs: u32,
    #[serde(with = "CountsText")]
    pub counts: Totals,
}

/// What the results add up to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TotalLine {
    #[serde(with = "CountsText")]
    pub counts: Totals,
    /// The same, sorted into orbits: there are no plain solutions left.
    #[serde(with = "CountsText")]
    pub orbits: Totals,
    #[serde(with = "text")]
    pub total: u128,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Counts", deny_unknown_fields)]
#[serde(bound(serialize = "T: ToString", deserialize = "T: FromStr + ToString"))]
struct CountsText<T> {
    #[serde(with = "text")]
    count2: T,
    #[serde(with = "text")]
    count4: T,
    #[serde(with = "text")]
    count8: T,
    #[serde(with = "text")]
    solutions: T,
}

mod board {
    use nqueens_kernel::board::BoardSize;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(super) fn serialize<S: Serializer>(n: &BoardSize, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(n.get())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BoardSize, D::Error> {
        BoardSize::new(u32::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
