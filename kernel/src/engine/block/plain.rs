//! Vectors of plain code, which have one lane: the compiler makes wider ones of loops over many.
//!
//! What it can't do is to pick the few lanes that move. Their places are listed first, eight at a time from a table, and
//! then they are moved one by one. No branch depends on a board.

use super::vector::{Nodes, Vector, Word, Work};

/// Vectors searched at a time: as many as a byte can tell apart.
pub(super) const PLACES: usize = 256;

impl<W: Word> Vector for W {
    type Word = W;
    type Mask = bool;
    const LANES: usize = 1;
    const POPS: usize = 2;

    #[inline(always)]
    unsafe fn none() -> W {
        W::default()
    }
    #[inline(always)]
    fn splat(self, bitmap: W) -> W {
        bitmap
    }
    #[inline(always)]
    fn load(self, words: &[W]) -> W {
        words[0]
    }
    #[inline(always)]
    fn lowest(self) -> W {
        self & self.wrapping_neg()
    }
    #[inline(always)]
    fn raise(self, rows: u32) -> W {
        self.unbounded_shl(rows)
    }
    #[inline(always)]
    fn lower(self, rows: u32) -> W {
        self.unbounded_shr(rows)
    }
    #[inline(always)]
    fn equals(self, other: W) -> bool {
        self == other
    }
    #[inline(always)]
    fn is_empty(self) -> bool {
        self == W::default()
    }
    #[inline(always)]
    fn count(mask: bool) -> u32 {
        mask.into()
    }

    /// Nodes with candidates move up, and others follow them.
    fn refill<const VECTORS: usize>(
        work: &mut Work<W, VECTORS>,
        from: [&[W]; 3],
        left: usize,
        allowed: W,
    ) -> usize {
        let Work { nodes, candidates, used } = work;
        let (busy, mut list) = (candidates.map(|columns| !columns.is_empty()), [0; LIST]);
        let places = places_of(&busy[..*used], &mut list);
        for (to, &place) in places.iter().enumerate() {
            nodes.put(to, nodes.at(place.into()));
            candidates[to] = candidates[usize::from(place)];
        }
        let taken = left.min(VECTORS - places.len());
        let fresh = places.len()..places.len() + taken;
        let idle = fresh.end..VECTORS;
        nodes.left[fresh.clone()].copy_from_slice(&from[0][..taken]);
        nodes.right[fresh.clone()].copy_from_slice(&from[1][..taken]);
        nodes.free[fresh.clone()].copy_from_slice(&from[2][..taken]);
        for place in fresh {
            candidates[place] = nodes.at(place).open(allowed);
        }
        *used = idle.start.next_multiple_of(8).min(VECTORS);
        candidates[idle.clone()].fill(W::default());
        nodes.free[idle].fill(W::default());
        taken
    }

    fn pack<const VECTORS: usize>(keep: &[bool], nodes: &Nodes<W, VECTORS>, to: [&mut [W]; 3]) -> usize {
        let mut list = [0; LIST];
        let places = places_of(keep, &mut list);
        let [left, right, free] = to;
        for (((&place, left), right), free) in places.iter().zip(left).zip(right).zip(free) {
            let node = nodes.at(place.into());
            (*left, *right, *free) = (node.left, node.right, node.free);
        }
        places.len()
    }
}

/// Room for a list of places, and for the zeros behind it.
const LIST: usize = PLACES + 8;

/// The places chosen, ascending; their number is a multiple of eight.
fn places_of<'a>(chosen: &[bool], list: &'a mut [u8; LIST]) -> &'a [u8] {
    let (mut len, mut first) = (0, 0_u64);
    for eight in chosen.as_chunks::<8>().0 {
        let flags = u64::from_le_bytes(eight.map(u8::from));
        // Byte k moves to bit k of the highest byte; then the sum of all bytes does.
        let [.., choice] = flags.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
        let [.., count] = flags.wrapping_mul(0x0101_0101_0101_0101).to_le_bytes();
        let places = u64::from_le_bytes(CHOSEN[usize::from(choice)]) | first;
        list[len..len + 8].copy_from_slice(&places.to_le_bytes());
        len += usize::from(count);
        first = first.wrapping_add(0x0808_0808_0808_0808);
    }
    &list[..len]
}

/// For each choice of eight places, their numbers in ascending order, and zeros behind.
pub(super) static CHOSEN: [[u8; 8]; 256] = {
    let mut lists = [[0; 8]; 256];
    let mut choice = 0;
    while choice < 256 {
        let (mut place, mut listed) = (0, 0);
        while place < 8 {
            if choice >> place & 1 == 1 {
                lists[choice][listed] = place;
                listed += 1;
            }
            place += 1;
        }
        choice += 1;
    }
    lists
};
