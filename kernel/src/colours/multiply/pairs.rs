//! Tiles for somebody who compares all pairs of placements.

use super::super::diagonals::{Colour, Diagonals};
use super::super::lists::{CellClass, Factor, Only, PlacementLists};
use super::super::row_sets::{Stratum, Tile};
use super::{Tiles, columns, in_order};
use crate::engine::{Control, MaskLists, PairCounter, PairWork, Stopped};

/// Bytes of the leaves that are kept, those of the last row set on top.
const LEAVES_BYTES_MAX: usize = 256 << 20;

/// Makes the lists, and has them compared.
#[derive(Debug)]
pub(super) struct PairTiles {
    counter: Box<dyn PairCounter>,
    found: Vec<(u16, u64)>,
    /// By colour.
    lanes: [PlacementLists; 2],
    leaves: [PlacementLists; 2],
    list: PlacementLists,
    leaves_version: u64,
    leaves_bytes_max: usize,
    states: u64,
}

impl PairTiles {
    pub(super) fn new(counter: Box<dyn PairCounter>) -> Self {
        Self {
            counter,
            found: Vec::new(),
            lanes: Default::default(),
            leaves: Default::default(),
            list: PlacementLists::default(),
            leaves_version: 0,
            leaves_bytes_max: LEAVES_BYTES_MAX,
            states: 0,
        }
    }
}

impl Tiles for PairTiles {
    fn count(
        &mut self,
        tile: &Tile<'_>,
        only: [Only; 2],
        found: &mut dyn FnMut(u64, u64),
        control: &Control,
    ) -> Result<(), Stopped> {
        let Stratum { lines, major, .. } = *tile.stratum;
        let minor = major.other();
        let Some(columns) = columns(tile, only) else { return Ok(()) };
        let diagonals = Colour::ALL.map(|colour| Diagonals::new(lines, colour));
        let class = |colour: Colour, rows| CellClass::new(lines, colour, rows, &diagonals[colour as usize]);
        let columns_of = |colour: Colour, rows| &columns[colour.columns(rows) as usize];
        let from = tile.parts.iter().map(|part| part.minors.start).min().unwrap_or(0);
        let to = tile.parts.iter().map(|part| part.minors.end).max().unwrap_or(0);
        let mut first = from;
        while first < to {
            self.leaves_version += 1;
            self.leaves.iter_mut().for_each(PlacementLists::clear);
            let mut end = first;
            while end < to
                && self.leaves.iter().map(PlacementLists::bytes).sum::<usize>() <= self.leaves_bytes_max
            {
                let (rows, _) = tile.block[end];
                for colour in Colour::ALL {
                    let order = in_order(lines, minor, colour.of(lines, minor, rows));
                    let columns = columns_of(colour, minor);
                    self.list.fill(&class(colour, minor), &order, columns, &mut self.found, control)?;
                    self.leaves[colour as usize].append(&self.list);
                }
                end += 1;
            }
            let minors = first..end;
            first = end;
            for part in &tile.parts {
                let own = part.minors.start.max(minors.start)..part.minors.end.min(minors.end);
                if own.is_empty() {
                    continue;
                }
                for colour in Colour::ALL {
                    let order = in_order(lines, major, colour.of(lines, major, part.major.rows));
                    let (class, columns) = (class(colour, major), columns_of(colour, major));
                    self.lanes[colour as usize].fill(&class, &order, columns, &mut self.found, control)?;
                }
                let factors = columns.each_ref().map(|columns| {
                    let pair = |factor: Factor| [factor.any, factor.below];
                    columns.factors(part.major.rank).into_iter().map(pair).collect::<Vec<_>>()
                });
                let work = PairWork {
                    lanes: self.lanes.each_ref().map(PlacementLists::masks),
                    leaves: self.leaves.each_ref().map(PlacementLists::masks),
                    leaves_version: self.leaves_version,
                    row_sets: (own.start - minors.start, own.end - minors.start),
                    factors: [minor, major].map(|rows| &factors[Colour::White.columns(rows) as usize][..]),
                };
                let pairs =
                    (work.row_sets.0..work.row_sets.1).map(|row_set| work.pairs(row_set)).sum::<u64>();
                let sums = self.counter.count(&work, control)?;
                self.states += pairs;
                for (minor, sum) in own.zip(sums) {
                    let weight = tile.stratum.weight(part.major, tile.block[minor].0);
                    let solutions =
                        sum.checked_mul(weight.into()).expect("a row set has fewer than 2^64 solutions");
                    found(part.first + minor as u64, solutions);
                }
            }
        }
        Ok(())
    }

    fn take_states(&mut self) -> u64 {
        std::mem::take(&mut self.states)
    }

    fn fault(&self) -> Option<&str> {
        self.counter.fault()
    }
}

impl PlacementLists {
    fn clear(&mut self) {
        self.starts.clear();
        self.masks.clear();
    }

    /// Adds lists behind these.
    fn append(&mut self, more: &Self) {
        let before = u32::try_from(self.masks.len()).expect("fewer than 2^32 placements");
        self.starts.extend(more.starts.iter().map(|start| before + start));
        self.masks.extend_from_slice(&more.masks);
    }

    fn masks(&self) -> MaskLists<'_> {
        MaskLists { starts: &self.starts, masks: &self.masks }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Multiplier;
    use super::*;
    use crate::board::BoardSize;
    use crate::colours::RowSets;
    use crate::isa::Isa;

    /// The obvious way.
    #[derive(Debug)]
    struct Plain;

    fn fits(one: &[u64], other: &[u64]) -> u64 {
        one.iter().map(|mask| other.iter().filter(|other| **other & mask == 0).count() as u64).sum()
    }

    fn list<'a>(masks: &'a [u64], starts: &[u32], at: usize) -> &'a [u64] {
        &masks[starts[at] as usize..starts[at + 1] as usize]
    }

    impl PairCounter for Plain {
        fn count(&mut self, work: &PairWork<'_>, _: &Control) -> Result<Vec<u64>, Stopped> {
            let [ps, ls] = work.sets();
            let of = |row_set: usize| {
                let mut sum = 0;
                for p in 0..ps {
                    for l in 0..ls {
                        let leaf = |colour: usize, at| {
                            list(work.leaves[colour].masks, work.starts(colour, row_set), at)
                        };
                        let lane =
                            |colour: usize, at| list(work.lanes[colour].masks, work.lanes[colour].starts, at);
                        let [p_factor, l_factor] = [work.factors[0][p], work.factors[1][l]];
                        let factor = p_factor[0] * l_factor[0] + p_factor[1] * l_factor[1];
                        sum +=
                            fits(leaf(0, p), lane(0, l)) * fits(leaf(1, l), lane(1, p)) * u64::from(factor);
                    }
                }
                sum
            };
            Ok((work.row_sets.0..work.row_sets.1).map(of).collect())
        }
    }

    #[test]
    fn all_pairs_give_what_trees_give_orbit_by_orbit() {
        for n in 4..=13 {
            let sets = RowSets::new(BoardSize::new(n).unwrap()).unwrap();
            let of = |mut multiplier: Multiplier| {
                let mut all = vec![0; usize::try_from(sets.len()).unwrap()];
                let mut found = |number, solutions| all[usize::try_from(number).unwrap()] += solutions;
                // In two ranges, which share tiles.
                let middle = sets.len() / 2;
                for range in [0..middle, middle..sets.len()] {
                    multiplier.count_each(&sets, range, &mut found, &Control::default()).unwrap();
                }
                all
            };
            let trees = of(Multiplier::new(Isa::Portable, 1 << 20).unwrap());
            for leaves_bytes_max in [0, 2_000, LEAVES_BYTES_MAX] {
                let tiles = PairTiles { leaves_bytes_max, ..PairTiles::new(Box::new(Plain)) };
                assert_eq!(
                    of(Multiplier { tiles: Box::new(tiles) }),
                    trees,
                    "N = {n}, {leaves_bytes_max} bytes"
                );
            }
        }
    }
}
