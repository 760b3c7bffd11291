//! Conversion from wire to domain types, with every check that is possible on a single message, and back.

mod worker;

use nqueens_kernel::board::BoardSize;
use nqueens_model::id::{RunId, WorkerId};
use strum::VariantArray;

/// A message that no honest peer sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid message: {field} {problem}")]
pub struct InvalidMessage {
    /// The field at fault, as the `.proto` file names it.
    pub field: &'static str,
    pub problem: String,
}

fn invalid(field: &'static str, problem: impl ToString) -> InvalidMessage {
    InvalidMessage { field, problem: problem.to_string() }
}

/// What a message has to have in this field.
fn present<Wire, Domain>(field: &'static str, wire: Option<Wire>) -> Result<Domain, InvalidMessage>
where
    Domain: TryFrom<Wire, Error = InvalidMessage>,
{
    wire.ok_or_else(|| invalid(field, "is missing"))?.try_into()
}

/// The variant that the wire has as this one.
fn variant<Wire, Domain>(field: &'static str, wire: Wire) -> Result<Domain, InvalidMessage>
where
    Wire: From<Domain> + PartialEq,
    Domain: VariantArray + Copy,
{
    let known = Domain::VARIANTS.iter().copied().find(|known| Wire::from(*known) == wire);
    known.ok_or_else(|| invalid(field, "is missing or of a later version"))
}

fn board(n: u32) -> Result<BoardSize, InvalidMessage> {
    BoardSize::new(n).map_err(|error| invalid("n", error))
}

fn run_id(field: &'static str, number: u64) -> Result<RunId, InvalidMessage> {
    RunId::new(number).ok_or_else(|| invalid(field, "must be in 1..2^48"))
}

fn worker_id(field: &'static str, number: u64) -> Result<WorkerId, InvalidMessage> {
    WorkerId::new(number).ok_or_else(|| invalid(field, "must be in 1..2^63"))
}

/// A number that fits the 63 bits that the database has for it.
fn stored(field: &'static str, number: u64) -> Result<u64, InvalidMessage> {
    i64::try_from(number).map(|_| number).map_err(|_| invalid(field, "must be below 2^63"))
}
