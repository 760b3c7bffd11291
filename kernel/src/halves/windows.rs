//! What the leaf of the join works on, and what that costs: blocks of a list, and tables of windows of diagonals.

use super::geometry::Exchange;

/// Elements of a block.
pub(super) const BLOCK: usize = 512;
/// Blocks that are asked at once: what a query's indices cost is then shared by both.
pub(super) const BLOCKS_MAX: usize = 2;
/// Windows of a table.
pub(super) const WINDOWS_MAX: usize = 7;
/// Rows of a window, which has at most 8 diagonals.
pub(super) const WINDOW_ROWS: usize = 256;
/// A row for each of [`BLOCKS_MAX`] blocks, by window and index.
pub(super) type Table = [[WindowRow; BLOCKS_MAX]; WINDOWS_MAX * WINDOW_ROWS];

/// One bit for each element of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct WindowRow(pub(super) [u64; 8]);

impl WindowRow {
    /// What an index is shifted by to become the offset of its rows in a table, in bytes.
    #[cfg(target_arch = "x86_64")]
    pub(super) const SHIFT: u32 = size_of::<[Self; BLOCKS_MAX]>().trailing_zeros();
}

/// A list whose first `untied` elements count double against each other, and all others once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighted<'a, M = u64> {
    pub(super) masks: &'a [M],
    pub(super) untied: usize,
}

impl<M> Weighted<'_, M> {
    pub(super) fn len(&self) -> usize {
        self.masks.len()
    }

    /// The list in pieces of `size`; the last may be shorter.
    pub(super) fn parts(self, size: usize) -> impl Iterator<Item = Self> {
        self.masks.chunks(size).enumerate().map(move |(number, masks)| {
            let untied = self.untied.saturating_sub(number * size).min(masks.len());
            Self { masks, untied }
        })
    }
}

/// How the diagonals in use are dealt out to windows: in order, so many to each, the last one gets what is left.
/// A query's indices are the bits of its mask at [`live`](Self::live), moved together, from the lowest on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// The bits of the queries' masks that are in use.
    pub(super) live: u64,
    /// Bits of a window, 1..=8.
    pub(super) width: u32,
    /// For each bit in use the bit of the blocks' masks that it meets.
    partners: [u8; Windows::BITS_MAX],
    bits: usize,
}

impl Windows {
    /// Bits that can be dealt out.
    const BITS_MAX: usize = 8 * WINDOWS_MAX;

    /// Windows for the diagonals `live`, at least one, as the query side calls them; `None` if they are too many.
    ///
    /// Fewer windows make a query cheaper, narrower ones a block.
    pub(super) fn new(exchange: Exchange, live: u64, queries: usize, costs: Costs) -> Option<Self> {
        let bits = live.count_ones() as usize;
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let queries = queries as f64;
        let mut best = None;
        let mut least = f64::INFINITY;
        for (width, &[windows, rows]) in (1..).zip(Self::SHAPES.get(bits)?) {
            let cost = costs.row * f64::from(rows) + costs.window * f64::from(windows) * queries;
            if windows as usize <= WINDOWS_MAX && cost < least {
                best = Some(width);
                least = cost;
            }
        }
        let width = best?;
        let mut partners = [0; Self::BITS_MAX];
        let mut rest = live;
        for partner in &mut partners[..bits] {
            *partner = exchange.bit(rest.trailing_zeros()).to_le_bytes()[0];
            rest &= rest - 1;
        }
        Some(Self { live, width, partners, bits })
    }

    /// How many windows so many bits take, and how many rows in all, by the number of bits and the width, from 1.
    const SHAPES: [[[u32; 2]; 8]; Self::BITS_MAX + 1] = {
        let mut shapes = [[[0; 2]; 8]; Self::BITS_MAX + 1];
        let mut at = 8;
        while (at as usize) < 8 * (Self::BITS_MAX + 1) {
            let [bits, width] = [at / 8, at % 8 + 1];
            let whole = (bits - 1) / width;
            let rows = (whole << width) + (1 << (bits - whole * width));
            shapes[bits as usize][width as usize - 1] = [whole + 1, rows];
            at += 1;
        }
        shapes
    };

    /// Number of windows, 1..=[`WINDOWS_MAX`].
    pub(super) fn len(&self) -> usize {
        self.bits.div_ceil(self.width as usize)
    }

    /// For each window the bits of the blocks' masks that its index bits meet.
    pub(super) fn partners(&self) -> impl Iterator<Item = &[u8]> {
        self.partners[..self.bits].chunks(self.width as usize)
    }
}

/// What the parts of a join cost, in cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// A block of 512: its bit planes and tables.
    pub(super) block: f64,
    /// A query of a block.
    pub(super) query: f64,
    /// A row of a block's tables.
    pub(super) row: f64,
    /// A window of a query of a block.
    pub(super) window: f64,
    /// An element looked at by a filter.
    pub(super) sift: f64,
}
