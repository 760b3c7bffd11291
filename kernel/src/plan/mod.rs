//! Plans: how N becomes independent jobs of about equal work.
//!
//! A plan is nothing but N, its kind and the target size of a job, and the board of a plan `cells`; the
//! jobs follow from these, in the same order on every machine, and a fingerprint proves it.

mod fingerprint;
pub(crate) mod kind;
mod size;

use crate::board::BoardSize;
use crate::cells::{Cells, file_stem, subject};
use crate::colours::RowSets;
use crate::counts::{Overflow, Totals};
use crate::engine::Kernel;
use crate::job::{Class, Job, Weight};
use crate::prefix::Prefix;
pub use fingerprint::{Fingerprint, Fingerprinter, InvalidFingerprint};
pub use kind::PlanKind;
pub use size::PlanSize;

/// The fastest plan for boards of `n`, if this engine counts; `None`: GPUs.
///
/// Seconds of CPU time of one thread by `border` and by `colours`, tables included (`nqueens bench`): for N = 16 with AVX-512 on
/// a Sapphire Rapids core 0.066 and 0.044, with AVX2 0.103 and 0.046, in plain code 0.26 and 0.08; for N = 15 as long. Below,
/// either takes less than a tenth of a second, and `border` tells orbits apart besides. On GPUs smaller boards wait for lists of
/// placements: N = 20 took an H100 2.7 and 4.8 s. The plain engines do not multiply.
pub fn fastest(n: BoardSize, kernel: Option<Kernel>) -> PlanKind {
    let colours_from = match kernel {
        Some(Kernel::Reference | Kernel::Scalar) => u32::MAX,
        Some(Kernel::Portable | Kernel::Avx2 | Kernel::Avx512) => 16,
        None => 21,
    };
    if n.get() < colours_from { PlanKind::Border } else { PlanKind::Colours }
}

/// How one N is cut into jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plan {
    n: BoardSize,
    kind: PlanKind,
    /// Of plan `cells`, and of no other.
    cells: Option<Cells>,
    states_per_job: u64,
}

impl Plan {
    /// A job that any engine counts in about a second or less than a minute.
    const STATES_PER_JOB: u128 = 20_000_000_000;
    /// Maximum number of jobs, for the sake of the ledger.
    const JOBS_MAX: u128 = 2_000_000;
    /// For jobs of colours, whose states are nanoseconds: as many orbits as share most of their work, but from twenty
    /// seconds to a quarter of an hour, and not less than 0.3 s, however few jobs that makes: in jobs of N = 20 of a tenth
    /// of a second a fifth of the time goes to tables that are not shared.
    const ROW_SETS_PER_JOB: u128 = 50;
    const STATES_PER_ROW_SETS: [u128; 2] = [Self::STATES_PER_JOB, 45 * Self::STATES_PER_JOB];
    const STATES_PER_ROW_SETS_MIN: u64 = 300_000_000;
    /// Maximum number of jobs of colours, which are small to keep. They end where orbits end that share work, which makes up
    /// to a third more of them.
    const ROW_SETS_MAX: u128 = 3_000_000;
    /// Fewer jobs than this show no progress and starve threads.
    const JOBS_MIN: u128 = 1_000;
    /// One or two milliseconds of a thread with AVX-512: smaller jobs cost too much to keep.
    const STATES_PER_JOB_MIN: u64 = 4_000_000;
    /// Prefixes a job: keeps its encoding to a few kilobytes.
    const PREFIXES_PER_JOB_MAX: usize = 1_000;

    /// A plan with jobs of a size that suits N. That of kind `cells` is of the open board.
    pub fn new(n: BoardSize, kind: PlanKind) -> Self {
        Self::with_states_per_job(n, kind, 1).with_suitable_jobs()
    }

    /// A plan for a board with given queens and blocked cells, with jobs of a size that suits it.
    pub fn of_cells(cells: Cells) -> Self {
        Self::of_cells_with(cells, 1).with_suitable_jobs()
    }

    /// The same with jobs of about this many states each; a hint, in `1..2^63`.
    pub fn of_cells_with(cells: Cells, states_per_job: u64) -> Self {
        let open = Self::with_states_per_job(cells.n(), PlanKind::Cells, states_per_job);
        Self { cells: Some(cells), ..open }
    }

    /// The plan that is told by these; `None` unless a plan `cells` has a board of N rows, and no other has one.
    pub fn stored(n: BoardSize, kind: PlanKind, cells: Option<Cells>, states_per_job: u64) -> Option<Self> {
        let is_board = |cells: &Cells| cells.n() == n;
        let fits = (kind == PlanKind::Cells) == cells.is_some() && cells.iter().all(is_board);
        fits.then(|| Self { cells, ..Self::with_states_per_job(n, kind, states_per_job) })
    }

    fn with_suitable_jobs(self) -> Self {
        let states_per_job = match self.row_sets() {
            Some(sets) => {
                let total = sets.work_of_all();
                let wanted = total / u128::from(sets.len()) * Self::ROW_SETS_PER_JOB;
                let [least, most] = Self::STATES_PER_ROW_SETS;
                let jobs = (total / wanted.clamp(least, most)).clamp(Self::JOBS_MIN, Self::ROW_SETS_MAX);
                u64::try_from(total / jobs).expect("less than all").max(Self::STATES_PER_ROW_SETS_MIN)
            }
            None => self.states_per_group().max(Self::STATES_PER_JOB_MIN),
        };
        Self { states_per_job: sized(states_per_job), ..self }
    }

    /// For jobs of prefixes.
    fn states_per_group(&self) -> u64 {
        let total = self.work();
        let jobs = (total / Self::STATES_PER_JOB).clamp(Self::JOBS_MIN, Self::JOBS_MAX);
        u64::try_from(total / jobs).unwrap_or(u64::MAX)
    }

    /// A guess at the states of all prefixes.
    fn work(&self) -> u128 {
        self.sound_prefixes().map(|prefix| u128::from(prefix.states_estimate())).sum()
    }

    /// A plan with jobs of about this many states each; a hint, in `1..2^63`.
    pub fn with_states_per_job(n: BoardSize, kind: PlanKind, states_per_job: u64) -> Self {
        let cells = (kind == PlanKind::Cells).then(|| Cells::open(n));
        Self { n, kind, cells, states_per_job: sized(states_per_job) }
    }

    /// Board size.
    pub fn n(&self) -> BoardSize {
        self.n
    }

    /// The kind of its jobs.
    pub fn kind(&self) -> PlanKind {
        self.kind
    }

    /// All solutions that the sums over its jobs stand for. The one of N = 1 has no job, but where the board has cells.
    pub fn total(&self, found: Totals) -> Result<u128, Overflow> {
        if self.cells.is_some() { Ok(found.solutions) } else { found.total(self.n) }
    }

    /// What it counts, in a few words: `N = 8`, or `N = 8 with 46 of 64 cells open`.
    pub fn subject(&self) -> String {
        subject(self.n, self.cells.as_ref())
    }

    /// What files about a run are called, but for their endings.
    pub fn file_stem(&self) -> String {
        file_stem(self.n, self.cells.as_ref())
    }

    /// The board of a plan `cells`, which no other has.
    pub fn cells(&self) -> Option<Cells> {
        self.cells
    }

    fn masks(&self) -> &[u32] {
        self.cells.as_ref().map_or(&[], Cells::masks)
    }

    /// The target size of a job, in estimated states.
    pub fn states_per_job(&self) -> u64 {
        self.states_per_job
    }

    /// Its jobs, made one by one: together they have every orbit of solutions once. Always the same in the same
    /// order. None for N < 4, where there is nothing to search.
    pub fn jobs(&self) -> impl Iterator<Item = Job> + Send + use<> {
        self.weighed_jobs().map(|(job, _)| job)
    }

    /// Its jobs, each with its [weight](Job::weight).
    pub fn weighed_jobs(&self) -> Box<dyn Iterator<Item = (Job, Weight)> + Send> {
        if let Some(sets) = self.row_sets() {
            let (n, ranges) = (self.n, sets.ranges(self.states_per_job));
            return Box::new(
                ranges.map(move |range| (Job::of_row_sets(n, range.clone()), sets.weight(&range))),
            );
        }
        let heavy = self.states_per_job;
        let light = split_while(self.roots(), move |prefix| prefix.states_estimate() > heavy);
        Box::new(Groups::new(*self, light))
    }

    /// The row sets that its jobs are ranges of, if they are.
    fn row_sets(&self) -> Option<&'static RowSets> {
        if self.kind == PlanKind::Colours { RowSets::shared(self.n) } else { None }
    }

    /// The proof of which plan it is. Makes all jobs: [`Fingerprinter`] saves that to those who make them anyway.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut fingerprinter = Fingerprinter::new(self);
        for job in self.jobs() {
            fingerprinter.add(&job);
        }
        fingerprinter.finish()
    }

    fn roots(&self) -> impl Iterator<Item = Prefix> + use<> {
        let classes: &[_] = match self.kind {
            PlanKind::Rows => &[Class::Corner, Class::Edge],
            PlanKind::Border | PlanKind::Colours => &[Class::Border],
            PlanKind::Cells => &[Class::Cells],
        };
        let (n, masks) = (self.n, self.masks().to_vec());
        classes.iter().flat_map(move |&class| Prefix::shortest(n, class, &masks))
    }

    /// The shortest prefixes whose guess at the work is good enough: that at a whole class is poor.
    pub(crate) fn sound_prefixes(&self) -> impl Iterator<Item = Prefix> + use<> {
        split_while(self.roots(), |prefix| prefix.queens.len() < 3)
    }
}

fn sized(states_per_job: u64) -> u64 {
    states_per_job.clamp(1, i64::MAX.unsigned_abs())
}

/// These prefixes, or in place of one all that it splits into, for as long as `heavy` says so.
fn split_while(
    mut roots: impl Iterator<Item = Prefix>,
    heavy: impl Fn(&Prefix) -> bool,
) -> impl Iterator<Item = Prefix> {
    let mut stack = Vec::new();
    std::iter::from_fn(move || {
        loop {
            let prefix = stack.pop().or_else(|| roots.next())?;
            match if heavy(&prefix) { prefix.split() } else { None } {
                Some(parts) => stack.extend(parts.into_iter().rev()),
                None => return Some(prefix),
            }
        }
    })
}

/// Gathers the prefixes of one class, BOUND1 and width into jobs.
struct Groups<P: Iterator> {
    plan: Plan,
    prefixes: std::iter::Peekable<P>,
    /// Class and BOUND1 of the open groups.
    key: Option<(Class, u8)>,
    /// The open group of each width; empty ones hold no bytes.
    open: Vec<Group>,
}

/// Prefixes of one width, one after the other.
#[derive(Clone, Default)]
struct Group {
    bytes: Vec<u8>,
    prefixes: usize,
    weight: Weight,
}

impl<P: Iterator<Item = Prefix>> Groups<P> {
    fn new(plan: Plan, prefixes: P) -> Self {
        Self { plan, prefixes: prefixes.peekable(), key: None, open: Vec::new() }
    }

    /// Puts a prefix into its group, and gives the group's width if that is a job now.
    fn gather(&mut self, prefix: &Prefix) -> Option<usize> {
        let width = prefix.queens.len();
        if self.open.len() <= width {
            self.open.resize(width + 1, Group::default());
        }
        let group = &mut self.open[width];
        group.bytes.extend(&prefix.queens);
        group.prefixes += 1;
        group.weight = group.weight.plus(prefix.weight());
        let full =
            group.weight.states >= self.plan.states_per_job || group.prefixes == Plan::PREFIXES_PER_JOB_MAX;
        full.then_some(width)
    }

    /// Closes the group of this width.
    fn close(&mut self, width: usize) -> (Job, Weight) {
        let key = self.key.expect("a group has a key");
        let group = std::mem::take(&mut self.open[width]);
        let width = u8::try_from(width).expect("a queen a row, a corner's twice");
        (Job::new(self.plan.n, key, self.plan.masks().to_vec(), width, group.bytes), group.weight)
    }
}

impl<P: Iterator<Item = Prefix>> Iterator for Groups<P> {
    type Item = (Job, Weight);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = self.prefixes.peek().map(|prefix| (prefix.class, prefix.bound1));
            if key != self.key {
                if let Some(width) = self.open.iter().position(|group| group.prefixes > 0) {
                    return Some(self.close(width));
                }
                self.key = key;
            }
            let prefix = self.prefixes.next()?;
            if let Some(width) = self.gather(&prefix) {
                return Some(self.close(width));
            }
        }
    }
}
