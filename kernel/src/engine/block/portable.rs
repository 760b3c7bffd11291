//! Any CPU: plain loops over arrays of nodes, which compilers turn into vectors of whatever the machine has.
//!
//! Parents are laid out on a desk, each at its place. A round pops one candidate of each and looks at the children,
//! all in vectors. What plain code can't do in vectors is to pick the few children that pass, and the parents with
//! candidates left: their places are listed first, eight at a time from a table, and then they are moved one by one.
//! No branch depends on a board.

#![expect(clippy::needless_bitwise_bool, reason = "lazy operators are branches")]

use super::Steps;
use super::schedule::{AHEAD_MAX, Level};
use super::stacks::{Parents, Stack};
use super::word::Word;

/// Places on the desk: as many as a byte can tell apart.
const PLACES: usize = 256;
/// Rounds between two clearings of the desk. More leave more places idle, fewer move more parents.
const ROUNDS: usize = 2;

/// Lanes of `u32`.
#[derive(Clone, Copy)]
pub(super) struct Wide;

/// Lanes of `u16`.
#[derive(Clone, Copy)]
pub(super) struct Narrow;

macro_rules! plain_steps {
    ($isa:ident, $word:ty) => {
        impl Steps for $isa {
            type Word = $word;

            fn expand<const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(
                self,
                level: &Level,
                parents: &Parents<'_, $word>,
                children: &mut Stack<'_, $word>,
            ) {
                expand::<$word, ADJACENT, AHEAD, COVER>(level, parents, children);
            }
            fn leaf<const ADJACENT: bool>(self, level: &Level, parents: &Parents<'_, $word>) -> u64 {
                leaf::<$word, ADJACENT>(level, parents)
            }
        }
    };
}

plain_steps!(Wide, u32);
plain_steps!(Narrow, u16);

fn expand<W: Word, const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(
    level: &Level,
    parents: &Parents<'_, W>,
    children: &mut Stack<'_, W>,
) {
    let rows = Rows::<W, ADJACENT>::new(level);
    let mut desk = Desk::default();
    let mut parents = parents.slices();
    loop {
        desk.refill(&mut parents, rows.allowed[0]);
        if desk.len == 0 {
            break;
        }
        for _ in 0..ROUNDS {
            desk.pop::<ADJACENT, AHEAD, COVER>(&rows);
            desk.store(children);
        }
        desk.clear();
    }
}

fn leaf<W: Word, const ADJACENT: bool>(level: &Level, parents: &Parents<'_, W>) -> u64 {
    let rows = Rows::<W, ADJACENT>::new(level);
    let [left, right, free] = parents.slices().map(|words| words.chunks(PLACES));
    // So few that their completions fit into 16 bits, lane by lane.
    let of_some = |((left, right), free): ((&[W], &[W]), &[W])| {
        let nodes = left.iter().zip(right).zip(free);
        nodes.map(|((&left, &right), &free)| rows.completions(Node { left, right, free })).sum::<u16>()
    };
    left.zip(right).zip(free).map(|nodes| u64::from(of_some(nodes))).sum()
}

/// A node's diagonals that move to higher columns (`left`) and to lower ones (`right`), and its free columns.
#[derive(Clone, Copy)]
struct Node<W> {
    left: W,
    right: W,
    free: W,
}

/// A level's masks and gaps.
struct Rows<W, const ADJACENT: bool> {
    allowed: [W; AHEAD_MAX + 2],
    gaps: [u32; AHEAD_MAX + 2],
}

impl<W: Word, const ADJACENT: bool> Rows<W, ADJACENT> {
    fn new(level: &Level) -> Self {
        Self { allowed: level.allowed.map(W::narrow), gaps: level.gaps }
    }

    /// `gaps[K]`.
    #[inline(always)]
    fn gap<const K: u32>(&self) -> u32 {
        match (ADJACENT, K) {
            (false, _) => self.gaps[K as usize],
            (true, 0) => 1,
            (true, _) => K,
        }
    }

    /// Open cells of a node.
    #[inline(always)]
    fn candidates(&self, node: Node<W>) -> W {
        node.free & !(node.left | node.right) & self.allowed[0]
    }

    /// The child of a node by a queen on column `queen`, as seen from the next row.
    #[inline(always)]
    fn child(&self, node: Node<W>, queen: W) -> Node<W> {
        Node {
            left: (node.left | queen).raise(self.gap::<0>()),
            right: (node.right | queen).lower(self.gap::<0>()),
            free: node.free ^ queen,
        }
    }

    /// Open cells of a child in the `K`-th row below its own.
    #[inline(always)]
    fn open_below<const K: u32>(&self, child: Node<W>) -> W {
        let (left, right) = match K {
            0 => (child.left, child.right),
            _ => (child.left.raise(self.gap::<K>()), child.right.lower(self.gap::<K>())),
        };
        child.free & !(left | right) & self.allowed[K as usize + 1]
    }

    /// Whether the child's row and `AHEAD` rows more all have an open cell and, with `COVER`, its free columns all
    /// have one in these rows.
    #[inline(always)]
    fn passes<const AHEAD: usize, const COVER: bool>(&self, child: Node<W>) -> bool {
        let mut covered = self.open_below::<0>(child);
        let mut passes = covered != W::default();
        macro_rules! look {
            ($K:literal) => {
                if AHEAD >= $K {
                    let open = self.open_below::<$K>(child);
                    passes &= open != W::default();
                    covered = covered | open;
                }
            };
        }
        look!(1);
        look!(2);
        look!(3);
        look!(4);
        passes & (!COVER | (covered == child.free))
    }

    /// Completions of a node that has three rows left.
    #[inline(always)]
    fn completions(&self, node: Node<W>) -> u16 {
        let (mut candidates, mut completions) = (self.candidates(node), 0);
        for _ in 0..3 {
            let queen = candidates.lowest();
            candidates = candidates ^ queen;
            let ways = self.ways(self.child(node, queen));
            completions += if queen == W::default() { 0 } else { ways };
        }
        completions
    }

    /// Completions of a child that has two rows left.
    ///
    /// There are two ways to fill two rows and two columns, and any at all only if the columns are not on one
    /// diagonal, both rows have an open cell and both columns are open in some row; then there is one way, or two
    /// if all four cells are open.
    #[inline(always)]
    fn ways(&self, child: Node<W>) -> u16 {
        let none = W::default();
        let (above, below) = (self.open_below::<0>(child), self.open_below::<1>(child));
        let on_a_diagonal = child.free.raise(self.gap::<1>()) & child.free;
        let both_rows = (above != none) & (below != none);
        let one = both_rows & (on_a_diagonal == none) & (above | below == child.free);
        let two = one & (above & below == child.free);
        u16::from(one) + u16::from(two)
    }
}

/// A node on each place.
struct Nodes<W> {
    left: [W; PLACES],
    right: [W; PLACES],
    free: [W; PLACES],
}

impl<W: Word> Default for Nodes<W> {
    fn default() -> Self {
        let none = [W::default(); PLACES];
        Self { left: none, right: none, free: none }
    }
}

impl<W: Word> Nodes<W> {
    #[inline(always)]
    fn at(&self, place: usize) -> Node<W> {
        Node { left: self.left[place], right: self.right[place], free: self.free[place] }
    }

    #[inline(always)]
    fn put(&mut self, place: usize, node: Node<W>) {
        (self.left[place], self.right[place], self.free[place]) = (node.left, node.right, node.free);
    }
}

/// The parents at work, and one child of each.
struct Desk<W> {
    parents: Nodes<W>,
    /// Those not popped yet; none behind the last parent.
    candidates: [W; PLACES],
    /// Number of parents.
    len: usize,
    children: Nodes<W>,
    choice: ChosenPlaces,
}

impl<W: Word> Default for Desk<W> {
    fn default() -> Self {
        let candidates = [W::default(); PLACES];
        let (parents, children) = (Nodes::default(), Nodes::default());
        Self { parents, candidates, len: 0, children, choice: ChosenPlaces::default() }
    }
}

impl<W: Word> Desk<W> {
    /// Places in use, up to a whole vector.
    fn places(&self) -> usize {
        self.len.next_multiple_of(8).min(PLACES)
    }

    /// Moves parents from the front of these arrays to the places behind the last parent.
    fn refill(&mut self, arrays: &mut [&[W]; 3], allowed: W) {
        let fresh = arrays[0].len().min(PLACES - self.len);
        let places = self.len..self.len + fresh;
        self.len += fresh;
        let [left, right, free] =
            arrays.each_mut().map(|array| array.split_off(..fresh).expect("so many are left"));
        self.parents.left[places.clone()].copy_from_slice(left);
        self.parents.right[places.clone()].copy_from_slice(right);
        self.parents.free[places.clone()].copy_from_slice(free);
        for (((candidates, &left), &right), &free) in
            self.candidates[places].iter_mut().zip(left).zip(right).zip(free)
        {
            *candidates = free & !(left | right) & allowed;
        }
        self.candidates[self.len..].fill(W::default());
    }

    /// Pops a candidate of each parent that has one, and chooses the children to keep.
    fn pop<const ADJACENT: bool, const AHEAD: usize, const COVER: bool>(&mut self, rows: &Rows<W, ADJACENT>) {
        for place in 0..self.places() {
            let queen = self.candidates[place].lowest();
            self.candidates[place] = self.candidates[place] ^ queen;
            let child = rows.child(self.parents.at(place), queen);
            self.children.put(place, child);
            let keep = rows.passes::<AHEAD, COVER>(child) & (queen != W::default());
            self.choice.chosen[place] = keep.into();
        }
    }

    /// Stores the children chosen.
    fn store(&mut self, children: &mut Stack<'_, W>) {
        let places = self.choice.places(self.places());
        let [left, right, free] = children.spare();
        for (((&place, left), right), free) in places.iter().zip(left).zip(right).zip(free) {
            let child = self.children.at(place.into());
            (*left, *right, *free) = (child.left, child.right, child.free);
        }
        children.grow(places.len());
    }

    /// Takes away the parents without candidates; the others move up.
    fn clear(&mut self) {
        for place in 0..self.places() {
            self.choice.chosen[place] = (self.candidates[place] != W::default()).into();
        }
        let places = self.choice.places(self.places());
        for (to, &place) in places.iter().enumerate() {
            self.parents.put(to, self.parents.at(place.into()));
            self.candidates[to] = self.candidates[usize::from(place)];
        }
        self.len = places.len();
    }
}

/// Some of the places.
struct ChosenPlaces {
    /// One on each place chosen, zero on the others.
    chosen: [u8; PLACES],
    /// Room for a list of them, and for the zeros behind it.
    list: [u8; PLACES + 8],
}

impl Default for ChosenPlaces {
    fn default() -> Self {
        Self { chosen: [0; PLACES], list: [0; PLACES + 8] }
    }
}

impl ChosenPlaces {
    /// The places chosen, ascending, of the first `among`, a multiple of eight.
    fn places(&mut self, among: usize) -> &[u8] {
        let (mut len, mut first) = (0, 0_u64);
        for eight in self.chosen[..among].as_chunks::<8>().0 {
            let flags = u64::from_le_bytes(*eight);
            // Byte k moves to bit k of the highest byte; then the sum of all bytes does.
            let [.., choice] = flags.wrapping_mul(0x0102_0408_1020_4080).to_le_bytes();
            let [.., count] = flags.wrapping_mul(0x0101_0101_0101_0101).to_le_bytes();
            let places = LISTS[usize::from(choice)] | first;
            self.list[len..len + 8].copy_from_slice(&places.to_le_bytes());
            len += usize::from(count);
            first = first.wrapping_add(0x0808_0808_0808_0808);
        }
        &self.list[..len]
    }
}

/// For each choice of eight places, their numbers in ascending order, one a byte from the lowest on.
static LISTS: [u64; 256] = {
    let mut lists = [0; 256];
    let mut choice = 0;
    while choice < 256 {
        let (mut place, mut listed) = (0, 0);
        while place < 8 {
            if choice >> place & 1 == 1 {
                lists[choice] |= place << (8 * listed);
                listed += 1;
            }
            place += 1;
        }
        choice += 1;
    }
    lists
};
