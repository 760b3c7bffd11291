//! Rung 1, brute force: put the queens down in every possible way, and look afterwards.
//!
//! A queen attacks along its row, so a solution has one queen in each row and a board is nothing but a list of N
//! columns. There are N^N such lists. This rung writes down every one and asks, once all queens stand, whether
//! two attack each other.
//!
//! It is the definition of the problem turned into a program, so simple that it can hardly be wrong, and that is
//! its use: the other rungs are trusted because they find what it finds. But already 8 queens take 16,777,216
//! boards for 92 solutions. Nearly every board is spoiled by its first two or three queens, and it
//! still goes on to place the others in all the ways there are.

use crate::board::BoardSize;
use crate::solution::no_two_attack;

pub(super) fn search(n: BoardSize, visit: &mut dyn FnMut(&[u8])) -> u64 {
    descend(n, &mut Vec::with_capacity(n.index()), visit)
}

fn descend(n: BoardSize, queens: &mut Vec<u8>, visit: &mut dyn FnMut(&[u8])) -> u64 {
    if queens.len() == n.index() {
        if no_two_attack(queens) {
            visit(queens);
        }
        return 0;
    }
    let mut states = 0;
    for column in n.lines() {
        queens.push(column);
        states += 1 + descend(n, queens, visit);
        queens.pop();
    }
    states
}
