//! Variants of the problem: queens given and cells blocked, and queens on a torus.
//!
//! A variant has [plans](crate::plan) of its own, whose jobs have each solution once. Nothing is sorted into orbits: given
//! queens and blocked cells leave the board no symmetry in general, and the torus has other ones.

mod cells;
mod torus;

use std::fmt;

use sha2::{Digest, Sha256};

use crate::board::BoardSize;
use crate::known;
use crate::solution::Solution;
pub use cells::{Cell, Cells, InvalidCells};
pub use torus::TorusPiece;
pub(crate) use torus::{has_solutions, start, with_queen};

/// What is to be counted in place of all solutions of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Those with the given queens and without blocked cells.
    Cells(Cells),
    /// Toroidal (modular) queens: those of the board whose opposite sides are joined.
    Torus(BoardSize),
}

impl Variant {
    /// Board size.
    pub fn n(&self) -> BoardSize {
        match self {
            Self::Cells(cells) => cells.n(),
            Self::Torus(n) => *n,
        }
    }

    /// Its solutions in ascending order, found one at a time as they are asked for.
    pub fn solutions(&self) -> Box<dyn Iterator<Item = Solution>> {
        match self {
            Self::Cells(cells) => Box::new(cells.solutions()),
            Self::Torus(n) => Box::new(torus::solutions(*n)),
        }
    }

    /// A few letters and digits: another variant of the board has others.
    fn tag(&self) -> String {
        match self {
            Self::Cells(cells) => hex::encode(&Sha256::digest(cells.to_string())[..4]),
            Self::Torus(_) => "torus".to_owned(),
        }
    }

    /// How many are published: of every torus, and of no board with given queens or blocked cells.
    pub fn published(&self) -> Option<u128> {
        match self {
            Self::Cells(_) => None,
            Self::Torus(n) => Some(known::toroidal(*n)),
        }
    }
}

/// What files about the solutions of a board are called, but for their endings: `nqueens-8`, of a variant
/// `nqueens-8-torus`. Files of other variants have other names.
pub fn file_stem(n: BoardSize, variant: Option<&Variant>) -> String {
    let tag = variant.map_or_else(String::new, |variant| format!("-{}", variant.tag()));
    format!("nqueens-{n}{tag}")
}

impl fmt::Display for Variant {
    /// In a few words: `N = 8, 2 queens given, 3 cells blocked`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, cells) = match self {
            Self::Torus(n) => return write!(f, "N = {n} on a torus"),
            Self::Cells(cells) => (cells.n(), cells),
        };
        let number = |number: usize, one: &str, many: &str| match number {
            0 => String::new(),
            1 => format!(", 1 {one}"),
            _ => format!(", {number} {many}"),
        };
        let given = number(cells.given().len(), "queen given", "queens given");
        let blocked = number(cells.blocked() as usize, "cell blocked", "cells blocked");
        write!(f, "N = {n}{given}{blocked}")
    }
}
