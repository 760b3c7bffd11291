//! Row sets that have most of their rows in common.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::lines::{Lines, Parity};

/// Distributes sets of lines of a parity among families, each with `size` lines in common, which it returns as well: few
/// families, by choosing again and again the lines that most of the sets left have, and among equals the central ones.
pub(super) fn families(lines: Lines, parity: Parity, sets: &[u32], size: u32) -> Vec<(u32, Vec<u32>)> {
    let mut left = sets.to_vec();
    let has = |set: &u32, common: u32| set & common == common;
    let gain = |left: &[u32], common| left.iter().filter(|set| has(set, common)).count();
    let distance = |common: u32| {
        lines.central_lines(parity).zip(0..).filter(move |(line, _): &(u32, u32)| common >> line & 1 == 1)
    };
    let mut candidates: BinaryHeap<_> = lines
        .sets(parity, size)
        .map(|common| {
            let distance: u32 = distance(common).map(|(_, place)| place).sum();
            (gain(&left, common), Reverse(distance), common)
        })
        .filter(|(gain, ..)| *gain > 0)
        .collect();
    let mut families = Vec::new();
    while let Some((_, distance, common)) = candidates.pop() {
        // Gains only fall, so who is ahead with the present one is the best.
        let now = (gain(&left, common), distance, common);
        if now.0 > 0 && candidates.peek().is_some_and(|next| now < *next) {
            candidates.push(now);
        } else if now.0 > 0 {
            let (own, others) = left.into_iter().partition(|set| has(set, common));
            left = others;
            families.push((common, own));
        }
    }
    families
}
