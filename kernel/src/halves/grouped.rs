//! What row-0 queens leave of lists, by groups.

use super::generate::RowList;
use super::geometry::Criterion;
use super::operations::{Mask, SLACK};
use super::split::{Tools, squeeze};
use super::windows::Weighted;

/// Groups of a list: one for each column of the row-1 queen.
pub(super) const GROUPS: usize = 32;

/// Where groups begin in a list that has first the untied elements, then the tied ones, each by group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Where each group's untied elements begin, and the end.
    untied: [usize; GROUPS + 1],
    /// Where each group's tied elements begin, and the end.
    tied: [usize; GROUPS + 1],
}

impl Bounds {
    const NONE: Self = Self { untied: [0; GROUPS + 1], tied: [0; GROUPS + 1] };

    /// Elements of all groups.
    pub(super) fn len(&self) -> usize {
        self.tied[GROUPS]
    }

    /// Elements of a group.
    pub(super) fn size(&self, group: usize) -> usize {
        self.untied[group + 1] - self.untied[group] + self.tied[group + 1] - self.tied[group]
    }
}

/// Which elements of a list are left.
#[derive(Debug)]
pub(super) struct Chosen {
    untied: Vec<u64>,
    tied: Vec<u64>,
    pub(super) bounds: Bounds,
}

impl Chosen {
    pub(super) fn new() -> Self {
        Self { untied: Vec::new(), tied: Vec::new(), bounds: Bounds::NONE }
    }

    /// Finds which elements of a list stand beside the other half's row-0 queen on `other`.
    pub(super) fn choose(&mut self, tools: Tools<'_>, list: RowList<'_>, other: usize, criterion: Criterion) {
        let conflict = list.conflict(other);
        let early = list.early(criterion.early).unwrap_or(conflict);
        let tie = criterion.tie.and_then(|j| list.early(j));
        let Self { untied, tied, bounds } = self;
        for bits in [&mut *untied, &mut *tied] {
            bits.resize(list.blocks(), 0);
        }
        let mut ends = [0; 2];
        // Without groups all is in the last.
        let groups = if list.is_grouped() { 0..GROUPS } else { GROUPS - 1..GROUPS };
        for starts in [&mut bounds.untied, &mut bounds.tied] {
            starts[..groups.start].fill(0);
        }
        for group in groups {
            [bounds.untied[group], bounds.tied[group]] = ends;
            let blocks = list.group(group);
            if blocks.is_empty() {
                continue;
            }
            let found = tools.operations.standing(
                [&conflict[blocks.clone()], &early[blocks.clone()]],
                tie.map(|tie| &tie[blocks.clone()]),
                &mut untied[blocks.clone()],
                &mut tied[blocks],
            );
            ends = [ends[0] + found[0], ends[1] + found[1]];
        }
        [bounds.untied[GROUPS], bounds.tied[GROUPS]] = ends;
        bounds.tied.iter_mut().for_each(|start| *start += ends[0]);
    }
}

/// What is left of a list.
#[derive(Debug)]
pub(super) struct Grouped<M = u64> {
    masks: Vec<M>,
    pub(super) bounds: Bounds,
}

impl<M: Mask> Grouped<M> {
    pub(super) fn new() -> Self {
        Self { masks: Vec::new(), bounds: Bounds::NONE }
    }

    pub(super) fn all(&self) -> Weighted<'_, M> {
        Weighted { masks: &self.masks[..self.bounds.len()], untied: self.bounds.untied[GROUPS] }
    }

    /// The untied and the tied elements of a group.
    pub(super) fn parts(&self, group: usize) -> [&[M]; 2] {
        let Bounds { untied, tied } = &self.bounds;
        [&self.masks[untied[group]..untied[group + 1]], &self.masks[tied[group]..tied[group + 1]]]
    }

    /// Becomes the chosen elements of a list.
    pub(super) fn pick(&mut self, tools: Tools<'_>, masks: &[M], chosen: &Chosen) {
        self.bounds = chosen.bounds;
        let untied = self.bounds.untied[GROUPS];
        grow(&mut self.masks, untied + masks.len());
        if untied > 0 {
            M::of(tools.operations).pick(masks, &chosen.untied, &mut self.masks);
        }
        M::of(tools.operations).pick(masks, &chosen.tied, &mut self.masks[untied..]);
    }
}

impl Grouped {
    /// Becomes what is left of `from` without the elements that have any of `bits`. Unless `grouped`, all are in
    /// the last group.
    pub(super) fn sift(&mut self, tools: Tools<'_>, from: &Self, bits: u64, grouped: bool) {
        grow(&mut self.masks, from.bounds.len());
        let mut end = 0;
        let Bounds { untied, tied } = &mut self.bounds;
        for (starts, from_starts) in [(untied, &from.bounds.untied), (tied, &from.bounds.tied)] {
            if grouped {
                for group in 0..GROUPS {
                    starts[group] = end;
                    let part = &from.masks[from_starts[group]..from_starts[group + 1]];
                    if !part.is_empty() {
                        end += tools.operations.sift(part, bits, &mut self.masks[end..]);
                    }
                }
            } else {
                starts.fill(end);
                let all = &from.masks[from_starts[0]..from_starts[GROUPS]];
                end += tools.operations.sift(all, bits, &mut self.masks[end..]);
            }
            starts[GROUPS] = end;
        }
    }

    /// The same with short masks.
    pub(super) fn squeeze(&self, tools: Tools<'_>, live: u64, to: &mut Grouped<u32>) {
        to.bounds = self.bounds;
        squeeze(tools, self.all().masks, live, &mut to.masks);
    }
}

/// Makes room for `len` elements and what operations overwrite beyond.
pub(super) fn grow<M: Mask>(buffer: &mut Vec<M>, len: usize) {
    if buffer.len() < len + 2 * SLACK {
        buffer.resize(len + 2 * SLACK, M::default());
    }
}
