//! A table that can go back to the beginning of a transaction.

use std::collections::BTreeMap;

/// A table that remembers how it was when the transaction began.
#[derive(Clone, Debug)]
pub(super) struct Table<K, V> {
    pub(super) rows: BTreeMap<K, V>,
    pub(super) before: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), before: Vec::new() }
    }
}

impl<K: Ord + Clone, V: Clone> Table<K, V> {
    pub(super) fn put(&mut self, key: K, row: V) {
        let before = self.rows.insert(key.clone(), row);
        self.before.push((key, before));
    }

    pub(super) fn insert(&mut self, key: K, row: V) {
        assert!(!self.rows.contains_key(&key), "a key is unique");
        self.put(key, row);
    }

    /// The row, to change it; the key must be there.
    pub(super) fn change(&mut self, key: &K) -> &mut V {
        let row = self.rows.get_mut(key).expect("what changes is there");
        self.before.push((key.clone(), Some(row.clone())));
        row
    }

    pub(super) fn remove(&mut self, key: &K) {
        let before = self.rows.remove(key);
        self.before.push((key.clone(), before));
    }

    pub(super) fn roll_back(&mut self) {
        for (key, before) in self.before.drain(..).rev() {
            match before {
                Some(row) => drop(self.rows.insert(key, row)),
                None => drop(self.rows.remove(&key)),
            }
        }
    }
}
