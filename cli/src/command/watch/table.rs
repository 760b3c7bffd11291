//! A list on the screen: its filter, its order, and the selected row.

use std::cmp::Ordering;

/// How somebody looks at a list. Rows are known by a number of their own, so that the selection stays on its row
/// wherever that goes.
#[derive(Clone, Debug, Default)]
pub(super) struct ListView {
    /// Only rows that have this text in them, in upper or lower case.
    pub(super) filter: String,
    /// Which of the list's orders.
    pub(super) order: usize,
    /// Whether it goes the other way round.
    pub(super) reversed: bool,
    selected: Option<u64>,
}

impl ListView {
    /// The rows to be shown.
    pub(super) fn arrange<'a, Row>(
        &self,
        rows: &'a [Row],
        text: impl Fn(&Row) -> String,
        compare: impl Fn(&Row, &Row) -> Ordering,
    ) -> Vec<&'a Row> {
        let filter = self.filter.to_lowercase();
        let mut rows: Vec<_> = rows.iter().filter(|row| text(row).to_lowercase().contains(&filter)).collect();
        rows.sort_by(|a, b| compare(a, b));
        if self.reversed {
            rows.reverse();
        }
        rows
    }

    /// Where the selected row is among those shown; the first if it has gone.
    pub(super) fn position(&self, shown: &[u64]) -> usize {
        self.selected.and_then(|selected| shown.iter().position(|id| *id == selected)).unwrap_or(0)
    }

    /// Selects the row so many further down, or the last there is.
    pub(super) fn step(&mut self, shown: &[u64], rows: isize) {
        let last = shown.len().saturating_sub(1);
        self.selected = shown.get(self.position(shown).saturating_add_signed(rows).min(last)).copied();
    }

    /// Selects a row.
    pub(super) fn select(&mut self, id: u64) {
        self.selected = Some(id);
    }

    /// Holds on to the row that is selected now, before it moves.
    pub(super) fn settle(&mut self, shown: &[u64]) {
        self.step(shown, 0);
    }
}
