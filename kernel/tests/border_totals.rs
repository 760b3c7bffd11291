//! Every engine counts all solutions by way of the border configurations.

mod common;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::engine::{Control, Kernel};
use nqueens_kernel::known;

#[test]
fn every_engine_adds_up_to_the_published_total() {
    for kernel in Kernel::ALL {
        let Some(mut engine) = kernel.engine() else { continue };
        for n in BoardSize::new(2).unwrap().up_to(BoardSize::new(13).unwrap()) {
            let control = Control::default();
            let mut total = 0;
            for (images, board) in common::border_configurations(n) {
                total += images * engine.count(&board, &control).unwrap().completions;
            }
            assert_eq!(u128::from(total), known::published(n).unwrap().total, "N = {n}, {kernel}");
        }
    }
}
