//! Placements of one class of cells, by the columns that they use.

use std::ops::RangeInclusive;

use super::diagonals::{Colour, Diagonals};
use super::lines::{Lines, Parity};
use crate::board::take_lowest;
use crate::engine::{Control, Stopped};

/// The sets of white columns of one parity that are counted for the row sets of a batch, in a fixed order.
#[derive(Clone, Debug)]
pub(super) struct ColumnSets {
    lines: Lines,
    parity: Parity,
    /// White queens in even rows.
    white: u32,
    /// First those that count alike for all row sets of the batch, then the others; in both such that neighbours have
    /// their outer columns in common, for what a branch leaves of their lists is then of similar length.
    sets: Vec<u32>,
    /// For every set its place among them, or [`NONE`](Self::NONE).
    places: Vec<u16>,
}

/// Which column sets of a parity are wanted: those that have of the columns `given` the `white` ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Only {
    pub(super) given: u32,
    pub(super) white: u32,
}

/// How often a column set counts for a row set, split by what the other parity's column set is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Factor {
    /// If the other one is counted at all.
    pub(super) any: u32,
    /// As often again if the other one is below the row set's rank.
    pub(super) below: u32,
}

impl ColumnSets {
    pub(super) const NONE: u16 = u16::MAX;

    /// The sets of columns that are counted for row sets of some of these ranks with `white` queens in even rows.
    pub(super) fn new(
        lines: Lines,
        parity: Parity,
        white: u32,
        ranks: RangeInclusive<u32>,
        only: Only,
    ) -> Self {
        let mirrored = if lines.mirrored(white) == Some(parity) { 2 } else { 1 };
        let weigh = |set| lines.weigh(parity, white, set, *ranks.end()).map(|weight| (weight, set));
        let central: Vec<u32> = lines.central_lines(parity).collect();
        let outer_first =
            |set: &u32| (0..).zip(&central).fold(0, |key, (i, line)| key | (set >> line & 1) << i);
        let mut sets: Vec<u32> = lines.sets(parity, lines.white(parity, white)).collect();
        sets.sort_by_cached_key(outer_first);
        let (alike, others): (Vec<_>, Vec<_>) =
            sets.into_iter().filter(|&set| set & only.given == only.white).filter_map(weigh).partition(
                |(weight, set)| weight.mirrored == mirrored && lines.rank(parity, *set) < *ranks.start(),
            );
        let sets: Vec<u32> = alike.iter().chain(&others).map(|(_, set)| *set).collect();
        let mut places = vec![Self::NONE; 1 << lines.count(parity)];
        for (place, set) in sets.iter().enumerate() {
            places[*set as usize] = u16::try_from(place).expect("at most 12,870 sets");
        }
        Self { lines, parity, white, sets, places }
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The place of the set of white columns that goes with queens of one colour on `columns`.
    #[inline]
    pub(super) fn place(&self, colour: Colour, columns: u32) -> u16 {
        let full = self.places.len() - 1;
        match colour {
            Colour::White => self.places[columns as usize],
            Colour::Black => self.places[full & !(columns as usize)],
        }
    }

    /// The opposite: the columns of the queens of one colour that go with the set at a place.
    pub(super) fn used(&self, colour: Colour, place: usize) -> u32 {
        colour.of(self.lines, self.parity, self.sets[place])
    }

    /// How often each set counts for row sets of this rank.
    pub(super) fn factors(&self, rank: u32) -> Vec<Factor> {
        let factor = |&set: &u32| match self.lines.weigh(self.parity, self.white, set, rank) {
            Some(weight) => {
                Factor { any: weight.mirrored, below: if weight.below { weight.mirrored } else { 0 } }
            }
            None => Factor::default(),
        };
        self.sets.iter().map(factor).collect()
    }
}

/// Queens placed in some rows of a class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placed {
    pub(super) columns: u32,
    rising: u64,
    falling: u64,
}

/// A class of cells: the rows and the columns of certain parities.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellClass<'a> {
    pub(super) colour: Colour,
    pub(super) rows: Parity,
    full: u32,
    pub(super) diagonals: &'a Diagonals,
}

impl<'a> CellClass<'a> {
    pub(super) fn new(lines: Lines, colour: Colour, rows: Parity, diagonals: &'a Diagonals) -> Self {
        Self { colour, rows, full: lines.full(colour.columns(rows)), diagonals }
    }

    /// The columns of a row, bit by bit, that queens placed before do not attack.
    #[inline]
    pub(super) fn free(&self, placed: Placed, row: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the columns are the lowest bits")]
        let attacked = placed.columns | (placed.rising >> row | placed.falling >> (16 - row)) as u32;
        self.full & !attacked
    }

    /// With one more queen, in the column of `bit`.
    #[inline]
    pub(super) fn place(placed: Placed, row: u32, bit: u32) -> Placed {
        Placed {
            columns: placed.columns | bit,
            rising: placed.rising | u64::from(bit) << row,
            falling: placed.falling | u64::from(bit) << (16 - row),
        }
    }

    /// The diagonals of a queen, in the column of `bit`.
    #[inline]
    pub(super) fn cell(&self, row: u32, bit: u32) -> u64 {
        self.diagonals.cell(self.rows, row as usize, bit.trailing_zeros() as usize)
    }
}

/// For each column set all placements that use these columns, as masks of diagonals.
#[derive(Debug, Default)]
pub(super) struct PlacementLists {
    /// The first of each column set, by its place; the end of the last.
    pub(super) starts: Vec<u32>,
    pub(super) masks: Vec<u64>,
}

impl PlacementLists {
    /// The lists of all placements on these rows, given in the order in which they are filled. If these are more than
    /// `found_max`, they are searched twice: kept in `found` until all are sorted they would take several times the memory of the
    /// lists.
    pub(super) fn new(
        class: &CellClass<'_>,
        rows: &[u32],
        columns: &ColumnSets,
        found: &mut Vec<(usize, u64)>,
        found_max: usize,
        control: &Control,
    ) -> Result<Self, Stopped> {
        let mut starts = vec![0; columns.len() + 1];
        found.clear();
        let search = |listed: &mut dyn FnMut(usize, u64)| {
            search(class, rows, Placed::default(), 0, control, &mut |placed, mask| {
                let place = columns.place(class.colour, placed.columns);
                if place != ColumnSets::NONE {
                    listed(place.into(), mask);
                }
            })
        };
        search(&mut |place, mask| {
            starts[place + 1] += 1;
            if found.len() < found_max {
                found.push((place, mask));
            }
        })?;
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let count = starts[columns.len()] as usize;
        let mut masks = vec![0; count];
        let mut next = starts.clone();
        let mut list = |place: usize, mask| {
            masks[next[place] as usize] = mask;
            next[place] += 1;
        };
        if found.len() == count {
            for &(place, mask) in &*found {
                list(place, mask);
            }
        } else {
            search(&mut list)?;
        }
        Ok(Self { starts, masks })
    }

    /// The number of placements with the column set at `place`.
    pub(super) fn length(&self, place: usize) -> u32 {
        self.starts[place + 1] - self.starts[place]
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.masks[..])
    }
}

/// All placements on these rows and columns, as masks of diagonals: there are as many of both.
pub(super) fn placements(class: &CellClass<'_>, rows: &[u32], columns: u32) -> Vec<u64> {
    let class = CellClass { full: columns, ..*class };
    let mut found = Vec::new();
    search(&class, rows, Placed::default(), 0, &Control::default(), &mut |_, mask| found.push(mask))
        .expect("nobody stops it");
    found
}

/// Rows left where a search asks whether it is wanted still.
const ROWS_ASKED: usize = 4;

fn search(
    class: &CellClass<'_>,
    rows: &[u32],
    placed: Placed,
    mask: u64,
    control: &Control,
    found: &mut impl FnMut(Placed, u64),
) -> Result<(), Stopped> {
    let Some((&row, rest)) = rows.split_first() else {
        found(placed, mask);
        return Ok(());
    };
    if rest.len() == ROWS_ASKED {
        control.advance(0)?;
    }
    let mut free = class.free(placed, row);
    while let Some(bit) = take_lowest(&mut free) {
        let (placed, mask) = (CellClass::place(placed, row, bit), mask | class.cell(row, bit));
        if rest.is_empty() {
            found(placed, mask);
        } else {
            search(class, rest, placed, mask, control, found)?;
        }
    }
    Ok(())
}
