//! Where the nodes wait: one stack a level, all in one buffer that a thread keeps from job to job.

use super::schedule::Schedule;
use super::vector::Word;

/// Words beyond the room of each array, so that all lanes that are searched at a time can be moved at its end.
const SLACK: usize = 256;
/// Size and alignment of the pages asked for, in bytes.
const PAGE: usize = 2 << 20;

/// Memory for stacks, zeroed. It only grows; pages that no job ever reached take no memory.
#[derive(Default)]
pub(super) struct Buffer {
    memory: Vec<u32>,
}

impl Buffer {
    /// Empty stacks with the room that `schedule` asks for. Sizes are those of words of 32 bits, whatever `W`.
    pub(super) fn stacks<W: Word>(&mut self, schedule: &Schedule) -> Vec<Stack<'_, W>> {
        self.reserve_for(schedule);
        let start = self.memory.as_ptr().align_offset(PAGE);
        let mut rest = cast(&mut self.memory[start..]);
        let mut take = |room: usize| {
            let (array, tail) = std::mem::take(&mut rest).split_at_mut(stride(room));
            rest = tail;
            array
        };
        let rooms = schedule.levels.iter().map(|level| level.room);
        rooms
            .map(|room| Stack { left: take(room), right: take(room), free: take(room), len: 0, room })
            .collect()
    }

    /// Makes the buffer large enough for any job that asks for no more room than `schedule`.
    pub(super) fn reserve_for(&mut self, schedule: &Schedule) {
        let words: usize = schedule.levels.iter().map(|level| 3 * stride(level.room)).sum();
        let with_alignment = words + PAGE / size_of::<u32>();
        if self.memory.len() < with_alignment {
            self.memory = Vec::new();
            self.memory = vec![0; with_alignment];
            prefer_huge_pages(&mut self.memory);
        }
    }

    /// Its size.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.memory)
    }
}

/// Words taken by an array of `room` nodes: whole small pages, which measured 5 % faster than packing them closer.
fn stride(room: usize) -> usize {
    (room + SLACK).next_multiple_of(1024)
}

/// The same memory in words of another width, of which it holds as many or more.
fn cast<W: Word>(memory: &mut [u32]) -> &mut [W] {
    // SAFETY: `Word` is `u32` or `u16`; every bit pattern is a value of either, and neither asks for more
    // alignment than `u32`.
    let (before, words, after) = unsafe { memory.align_to_mut::<W>() };
    assert!(before.is_empty() && after.is_empty(), "u32 memory is aligned for narrower words");
    words
}

/// Asks the system for huge pages; it is no matter if it has none.
#[cfg(all(target_os = "linux", not(miri)))]
fn prefer_huge_pages(memory: &mut [u32]) {
    use std::ffi::c_void;

    unsafe extern "C" {
        fn madvise(address: *mut c_void, length: usize, advice: i32) -> i32;
    }
    const MADV_HUGEPAGE: i32 = 14;

    let start = memory.as_ptr().align_offset(PAGE);
    let whole = &mut memory[start..];
    let pages = size_of_val(whole) / PAGE * PAGE;
    // SAFETY: the range is whole pages inside `memory`; MADV_HUGEPAGE changes what backs them, not what they hold.
    unsafe { madvise(whole.as_mut_ptr().cast(), pages, MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn prefer_huge_pages(_: &mut [u32]) {}

/// The nodes that wait on one level, as three arrays: diagonals that move to higher columns (`left`) and to lower
/// ones (`right`), both as seen from the level's row, and free columns.
pub(super) struct Stack<'a, W> {
    left: &'a mut [W],
    right: &'a mut [W],
    free: &'a mut [W],
    len: usize,
    room: usize,
}

impl<W: Word> Stack<'_, W> {
    /// Nodes on the stack.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a node: left and right diagonals, free columns.
    pub(super) fn push(&mut self, node: [u32; 3]) {
        let [left, right, free] =
            node.map(|word| W::try_from(word).expect("a board that the lanes can hold"));
        (self.left[self.len], self.right[self.len], self.free[self.len]) = (left, right, free);
        self.grow(1);
    }

    /// Takes off at most `limit` nodes from the top. They stay readable while the result lives.
    pub(super) fn take(&mut self, limit: usize) -> Parents<'_, W> {
        let count = self.len.min(limit);
        self.free[self.len..][..SLACK].fill(W::default());
        self.len -= count;
        Parents {
            left: &self.left[self.len..],
            right: &self.right[self.len..],
            free: &self.free[self.len..],
            count,
        }
    }

    /// The room for the next nodes' three words, and [`SLACK`] more.
    pub(super) fn spare(&mut self) -> [&mut [W]; 3] {
        [&mut self.left[self.len..], &mut self.right[self.len..], &mut self.free[self.len..]]
    }

    /// Says that `count` nodes were written to [`spare`](Self::spare).
    pub(super) fn grow(&mut self, count: usize) {
        self.len += count;
        assert!(self.len <= self.room, "the room of a level is an upper bound");
    }
}

/// Nodes to expand: the first `count` of each array, and behind them [`SLACK`] without free columns.
pub(super) struct Parents<'a, W> {
    left: &'a [W],
    right: &'a [W],
    free: &'a [W],
    count: usize,
}

impl<W: Word> Parents<'_, W> {
    /// Number of nodes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The three arrays: left and right diagonals, free columns.
    pub(super) fn arrays(&self) -> [&[W]; 3] {
        [self.left, self.right, self.free]
    }

    /// The `k`-th node: left and right diagonals, free columns.
    #[cfg(test)]
    pub(super) fn node(&self, k: usize) -> [u32; 3] {
        assert!(k < self.count);
        [self.left[k], self.right[k], self.free[k]].map(W::into)
    }
}
