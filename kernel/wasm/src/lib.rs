//! The ladder of the kernel for `page/`: functions of numbers that a browser calls, as WebAssembly.
//!
//! An instance of the module has one search. [`begin`] and [`step`] go through it queen by queen; [`count`] counts a
//! board at once. The other functions tell what was found so far. `deploy/ladder` builds the module and the page.
//!
//! `no_mangle` is unsafe where two symbols could have one name. These are the only ones of the module.

use std::cell::RefCell;

use nqueens_kernel::board::BoardSize;
use nqueens_kernel::ladder::{Form, LadderCount, Rung, Step};

struct Search {
    n: BoardSize,
    steps: Box<dyn Iterator<Item = Step>>,
    last: Option<Step>,
    count: LadderCount,
}

thread_local! {
    static SEARCH: RefCell<Search> = RefCell::new(Search::new(Rung::Bitmap, BoardSize::MIN));
}

impl Search {
    fn new(rung: Rung, n: BoardSize) -> Self {
        Self { n, steps: rung.steps(n), last: None, count: LadderCount::default() }
    }

    fn step(&mut self) -> bool {
        self.last = self.steps.next();
        let Some(step) = self.last else { return false };
        self.count.states += 1;
        if let Some((board, stands_for)) = step.found {
            self.count.add(&board, stands_for);
        }
        true
    }
}

fn tell<T>(what: impl FnOnce(&Search) -> T) -> T {
    SEARCH.with_borrow(what)
}

/// What the search knows of its last step.
fn tell_last(what: impl FnOnce(&Step) -> u32) -> u32 {
    tell(|search| search.last.as_ref().map_or(0, what))
}

fn rung_and_board(rung: u32, n: u32) -> (Rung, BoardSize) {
    (Rung::ALL[rung as usize], BoardSize::new(n).expect("a board"))
}

/// Begins a search: a rung by its place on the ladder, from 0, and a board.
#[unsafe(no_mangle)]
pub extern "C" fn begin(rung: u32, n: u32) {
    let (rung, n) = rung_and_board(rung, n);
    SEARCH.replace(Search::new(rung, n));
}

/// Puts down the next queen; 0 if the search is over.
#[unsafe(no_mangle)]
pub extern "C" fn step() -> u32 {
    SEARCH.with_borrow_mut(Search::step).into()
}

/// Counts a board by a rung's recursive form.
#[unsafe(no_mangle)]
pub extern "C" fn count(rung: u32, n: u32) {
    let (rung, n) = rung_and_board(rung, n);
    let count = rung.count(Form::Recursive, n);
    SEARCH.replace(Search { count, ..Search::new(rung, n) });
}

/// The row of the last queen, from 0 at the top.
#[unsafe(no_mangle)]
pub extern "C" fn row() -> u32 {
    tell_last(|step| u32::try_from(step.row).expect("at most 31 rows"))
}

/// Her column, from 0 on the left.
#[unsafe(no_mangle)]
pub extern "C" fn column() -> u32 {
    tell_last(|step| step.column.into())
}

/// The cells of her row that the rung does not leave out: bit `c` is column `c`.
#[unsafe(no_mangle)]
pub extern "C" fn allowed() -> u32 {
    tell_last(|step| step.allowed)
}

/// For how many solutions the board with her was counted; 0 if it was not.
#[unsafe(no_mangle)]
pub extern "C" fn members() -> u32 {
    tell(|search| {
        let found = search.last.and_then(|step| step.found);
        found.map_or(0, |(_, stands_for)| stands_for.members(search.n).into())
    })
}

/// Queens put down.
#[unsafe(no_mangle)]
pub extern "C" fn states() -> u64 {
    tell(|search| search.count.states)
}

/// Solutions counted.
#[unsafe(no_mangle)]
pub extern "C" fn total() -> u64 {
    tell(|search| u64::try_from(search.count.total).expect("a small board"))
}

/// The same up to rotation and reflection.
#[unsafe(no_mangle)]
pub extern "C" fn unique() -> u64 {
    tell(|search| {
        let unique = search.count.orbits.unique(search.n).expect("a small board");
        u64::try_from(unique).expect("a small board")
    })
}
