//! Published counts for N = 1..27, against which every run is held.
//!
//! Source: the OEIS, under the numbers that [`Sequence`](crate::sequence::Sequence) has.

use std::sync::LazyLock;

use crate::board::BoardSize;
use crate::counts::Totals;

/// What is published about the solutions of one N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// All solutions.
    pub total: u128,
    /// Solutions up to rotation and reflection.
    pub unique: u128,
    /// Solutions equal to their half turn.
    pub half_turn: u64,
    /// Solutions equal to their quarter turn.
    pub quarter_turn: u64,
    /// The three orbit counts; all zero for N = 1, whose solution is an orbit of one.
    pub orbits: Totals,
}

impl Published {
    /// The last board whose solutions are published.
    pub const N_MAX: u32 = 27;
}

/// Who counted the board first; `None` up to N = 20, where the sources name nobody.
pub fn first_counted(n: BoardSize) -> Option<&'static str> {
    match n.get() {
        21..=23 => Some("Sylvain Pion and Joel-Yann Fourr\u{e9}"),
        24 => Some("Kenji Kise and others, 2004"),
        25 => Some("the ProActive team at INRIA, 2005"),
        26 => Some("project Queens@TUD, 2009; confirmed by project MC#, 2009"),
        27 => Some("project Q27 (Thomas B. Preu\u{df}er, Matthias R. Engelhardt), 2016"),
        _ => None,
    }
}

/// Read once: planning a million jobs asks for each.
static TABLE: LazyLock<Vec<Published>> =
    LazyLock::new(|| (1..).zip(include_str!("../data/known_counts.csv").lines().skip(1)).map(read).collect());

/// The published counts of an `n` by `n` board; `None` beyond [`Published::N_MAX`].
pub fn published(n: BoardSize) -> Option<Published> {
    TABLE.get(n.index() - 1).copied()
}

/// The line for the `n`-th board size.
fn read((n, line): (u128, &str)) -> Published {
    let mut fields =
        line.split(',').map(|field| if field.is_empty() { 0 } else { field.parse().expect("a count") });
    let mut next = || fields.next().expect("eight fields");
    let narrow = |count: u128| u64::try_from(count).expect("symmetric counts fit 64 bits");
    assert_eq!(next(), n, "the table has one line for each N, in order");
    Published {
        total: next(),
        unique: next(),
        half_turn: narrow(next()),
        quarter_turn: narrow(next()),
        orbits: Totals { count2: next(), count4: next(), count8: next(), solutions: 0 },
    }
}
