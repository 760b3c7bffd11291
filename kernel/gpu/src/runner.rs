//! What runs tasks: a device, or in tests something that fails.

use std::thread;
use std::time::Duration;

use nqueens_kernel::engine::{COUNTS_WRONG, Stopped};

/// A node of the search, as the device takes it: diagonals to the left, doubled, and to the right as seen from its row,
/// free columns, and the number of its board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Task {
    pub(crate) left: u32,
    pub(crate) right: u32,
    pub(crate) free: u32,
    pub(crate) board: u32,
}

impl Task {
    /// Rows to fill.
    pub(crate) fn rows(&self) -> usize {
        self.free.count_ones() as usize
    }
}

/// What a task came to. Before a launch all are [`Outcome::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Outcome {
    /// Completions, or [`UNFINISHED`](Self::UNFINISHED).
    pub(crate) completions: u32,
    /// Rounds of [`STEPS`] steps.
    pub(crate) rounds: u32,
}

impl Outcome {
    /// Nobody has counted the task.
    pub(crate) const NONE: Self = Self { completions: Self::UNFINISHED, rounds: 0 };

    /// The completions of a task that took too many rounds.
    pub(crate) const UNFINISHED: u32 = u32::MAX;
}

/// Steps of a lane between two looks for work.
pub(crate) const STEPS: u32 = 4;

/// Rows of a task, at most.
pub(crate) const ROWS: u32 = 16;

/// Rounds of a task, at most: a million steps, or 0.1 s of a lane.
pub(crate) const ROUNDS_MAX: u32 = 1 << 18;

/// Why a device can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It has no memory for a launch of this size.
    #[error("the device has no memory left")]
    OutOfMemory,
    /// It does not answer, or refuses to.
    #[error("the device is lost: {0}")]
    Lost(String),
    /// It has counted wrong.
    #[error("{}: {}", COUNTS_WRONG, .0)]
    Wrong(String),
}

/// Why something was not counted.
pub(crate) enum Interruption {
    Stopped,
    Fault(Fault),
}

impl From<Stopped> for Interruption {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<Fault> for Interruption {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Time between two looks at the device and at the control.
const LOOK: Duration = Duration::from_micros(250);

/// Looks at a launch, at most: two minutes, some hundred times as much as it should take.
const LOOKS_MAX: u32 = if cfg!(test) { 100 } else { 480_000 };

/// Waits for a launch; `look` may end that. What does not end is lost, and its device with it.
pub(crate) fn wait(
    mut is_done: impl FnMut() -> Result<bool, Fault>,
    mut look: impl FnMut() -> Result<(), Stopped>,
) -> Result<(), Interruption> {
    for _ in 0..LOOKS_MAX {
        if is_done()? {
            return Ok(());
        }
        look()?;
        thread::sleep(LOOK);
    }
    Err(Fault::Lost("a launch does not end".to_owned()).into())
}

/// One of two launches, of which one is prepared while the other runs.
pub(crate) type Slot = usize;

/// Number of slots.
pub(crate) const SLOTS: usize = 2;

/// Runs launches, each of a number of tasks, one after the other.
pub(crate) trait Runner: Send {
    /// Tasks that are counted at the same time.
    fn lanes(&self) -> usize;

    /// Longest time of a launch in seconds.
    fn launch_s(&self) -> f64;

    /// Makes the masks of the boards known, while nothing runs.
    fn set_masks(&mut self, masks: &[[u32; 32]]) -> Result<(), Fault>;

    /// Begins to count these tasks, and does not wait for it.
    fn start(&mut self, slot: Slot, tasks: &[Task]) -> Result<(), Fault>;

    /// Whether the slot's launch has ended.
    fn is_done(&mut self, slot: Slot) -> Result<bool, Fault>;

    /// The outcomes of a launch that has ended.
    fn outcomes(&mut self, slot: Slot, outcomes: &mut Vec<Outcome>) -> Result<(), Fault>;
}
