//! A device that multiplies colours.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use nqueens_kernel::engine::{ProductWork, TreeStep};

use super::Device;
use super::api::{Argument, Buffer, Context, Event, Kernel, Queue};
use crate::products::{LEFT_OUT, ProductRunner, SETS, groups, longest, sets};
use crate::runner::Fault;
use crate::walk::Walk;

const SOURCE: &str = concat!(include_str!("../dialect.cl"), include_str!("../multiply.cl"));

/// Lanes of a group that joins lists; as in multiply.cl.
const LANES: usize = SETS / 2;

/// Queens of a branch at most: there are no more rows of a parity.
const DEPTH_MAX: usize = 16;

/// Queens that a branch may ask for, at most: programs are made for each of these when it is needed. With less local memory
/// more groups are busy at a time.
const TABLES: [usize; 3] = [64, 128, TABLES_MAX];
const TABLES_MAX: usize = 256;

/// While the device joins lists for one, others are written to it, and results are checked, by another.
const SIDE_BY_SIDE: u64 = 2;

/// Planes of a word's placements, as in multiply.cl.
const PLANES: usize = 65;

/// Memory that is taken of a CPU, in bytes: twice as much as matrices get.
const CPU_MEMORY_MAX: u64 = 1 << 29;

/// Bytes of local memory that a group takes: tables, planes, the lengths of lists, and sums.
fn local_bytes(tables: usize, depth: usize) -> usize {
    LANES * (4 * (tables + PLANES + 2 * (depth + 1)) + 8)
}

/// Trees of a colour, and lists, in the device's memory.
#[derive(Default)]
struct ColourBuffers {
    /// The version of the tree, and chunks of its walk.
    tree: Option<(u64, usize)>,
    depth: usize,
    rest: usize,
    /// Queens that a branch asks for, at most.
    asked_most: usize,
    steps: Buffer<TreeStep>,
    chunks: Buffer<[u32; 2]>,
    asked: Buffer<u32>,
    program: Buffer<u32>,
    starts: Buffer<u32>,
    masks: Buffer<u64>,
    matrix: Buffer<u32>,
    /// Rows of a group's matrix, column sets of the lists, and their longest.
    rows: usize,
    sets: usize,
    longest: usize,
}

impl ColourBuffers {
    /// Bytes that an item writes filtered lists to.
    fn item_bytes(&self) -> usize {
        self.depth.max(1) * self.longest.max(1) * SETS * size_of::<u64>()
    }

    fn set(
        &mut self,
        (context, queue): (&Context, &Queue),
        work: &ProductWork<'_>,
        colour: usize,
        walk: &Walk,
    ) -> Result<(), Fault> {
        let tree = &work.trees[colour];
        if self.tree != Some((tree.version, walk.chunks.len())) {
            self.tree = None;
            let diagonals: Vec<_> =
                tree.asked.iter().map(|queen| u16::from_le_bytes(*queen).into()).collect();
            queue.write(context, &mut self.steps, &walk.steps)?;
            queue.write(context, &mut self.chunks, &walk.chunks)?;
            queue.write(context, &mut self.asked, &diagonals)?;
            // A word more is read than there are.
            self.program.reserve(context, tree.program.len() + 1)?;
            queue.write(context, &mut self.program, tree.program)?;
            let asked = tree.steps.iter().map(|step| (step.asked[1] - step.asked[0]) as usize);
            self.asked_most = asked.max().unwrap_or(0);
            (self.depth, self.rest) = (tree.depth, tree.rest);
            self.tree = Some((tree.version, walk.chunks.len()));
        }
        let (mut starts, mut masks) = (Vec::new(), Vec::new());
        for part in work.parts {
            let list = &part.lists[colour];
            let (first, end) = (list.starts[0], list.starts[list.starts.len() - 1]);
            let before = number(masks.len());
            starts.extend(list.starts.iter().map(|start| before + (start - first)));
            masks.extend_from_slice(&list.masks[first as usize..end as usize]);
        }
        number(masks.len());
        queue.write(context, &mut self.starts, &starts)?;
        queue.write(context, &mut self.masks, &masks)?;
        self.sets = sets(work)[colour];
        self.longest = work.parts.iter().map(|part| longest(part, colour)).max().unwrap_or(0);
        self.rows = work.row_sets * tree.height;
        let cells = work.parts.len() * groups(self.sets) * self.rows * SETS;
        queue.fill(context, &mut self.matrix, 0, cells)
    }
}

fn number(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32")
}

/// A kernel of the program for trees that are no deeper, and whose branches ask for no more queens.
fn kernel(context: &Context, tables: usize, depth: usize, name: &str) -> Result<Kernel, Fault> {
    let options = format!("-DSETS={SETS} -DDEPTH={depth} -DTABLES={tables}");
    context.kernel(SOURCE, &options, name)
}

/// A device that multiplies colours.
pub(crate) struct OpenClProducts {
    context: Arc<Context>,
    queue: Queue,
    /// By what they were made for.
    fits: HashMap<[usize; 2], Kernel>,
    multiply: Kernel,
    colours: [ColourBuffers; 2],
    factors: [Buffer<[u32; 2]>; 2],
    scratch: Buffer<u64>,
    compared: Buffer<u64>,
    sums: Buffer<[u64; 2]>,
    parts: usize,
    row_sets: usize,
    /// Results of what was begun.
    count: usize,
    ended: Option<Event>,
    units: usize,
    /// Bytes for matrices, and for filtered lists.
    matrices_max: u64,
    scratch_max: usize,
    is_cpu: bool,
}

impl OpenClProducts {
    /// Those that share the device; none if it has too little local memory for any tree that may come.
    pub(super) fn all(device: Device) -> Result<Vec<Self>, Fault> {
        if device.local_memory()? < local_bytes(TABLES_MAX, DEPTH_MAX) as u64 {
            return Ok(Vec::new());
        }
        let context = Arc::new(Context::new(device)?);
        (0..SIDE_BY_SIDE).map(|_| Self::new(device, Arc::clone(&context))).collect()
    }

    fn new(device: Device, context: Arc<Context>) -> Result<Self, Fault> {
        let queue = context.queue()?;
        let multiply = kernel(&context, TABLES_MAX, DEPTH_MAX, "multiply")?;
        let is_cpu = device.is_cpu();
        // A CPU's memory belongs to others, too. Each colour has a buffer.
        let memory =
            if is_cpu { device.memory().min(CPU_MEMORY_MAX) } else { device.memory() } / SIDE_BY_SIDE;
        let largest = device.buffer_max()?;
        let (colours, factors, scratch, compared, sums) = Default::default();
        Ok(Self {
            context,
            queue,
            fits: HashMap::new(),
            multiply,
            colours,
            factors,
            scratch,
            compared,
            sums,
            parts: 0,
            row_sets: 0,
            count: 0,
            ended: None,
            units: device.compute_units() as usize,
            matrices_max: (memory / 2).min(largest.saturating_mul(2)),
            scratch_max: usize::try_from((memory / 8).min(largest)).unwrap_or(usize::MAX),
            is_cpu,
        })
    }

    /// The first results of what was begun.
    fn read<T: Clone + Copy + Default>(&self, buffer: &Buffer<T>) -> Result<Vec<T>, Fault> {
        let mut results = vec![T::default(); self.count];
        self.queue.read(buffer, 0, &mut results)?;
        Ok(results)
    }
}

impl ProductRunner for OpenClProducts {
    fn matrices_max(&self) -> u64 {
        self.matrices_max
    }

    fn items_wanted(&self) -> usize {
        self.units * if self.is_cpu { 4 } else { 32 }
    }

    fn items_max(&self, colour: usize) -> usize {
        (self.scratch_max / self.colours[colour].item_bytes()).max(1)
    }

    fn launch_s(&self) -> f64 {
        if self.is_cpu { 0.05 } else { 0.2 }
    }

    fn set(&mut self, work: &ProductWork<'_>, walks: &[Walk; 2]) -> Result<(), Fault> {
        let device = (&*self.context, &self.queue);
        for (colour, (buffers, walk)) in self.colours.iter_mut().zip(walks).enumerate() {
            buffers.set(device, work, colour, walk)?;
            let factors: Vec<_> = work.parts.iter().flat_map(|part| &part.factors[colour]).copied().collect();
            self.queue.write(&self.context, &mut self.factors[colour], &factors)?;
        }
        (self.parts, self.row_sets) = (work.parts.len(), work.row_sets);
        Ok(())
    }

    fn start_fits(&mut self, colour: usize, items: Range<usize>) -> Result<(), Fault> {
        let buffers = &self.colours[colour];
        // A CPU has memory for all tables. Depths are rounded up, so that few programs are made.
        let most = if self.is_cpu { TABLES_MAX } else { buffers.asked_most };
        let tables = TABLES.into_iter().find(|tables| *tables >= most).expect("a program asks by the byte");
        let depth = buffers.depth.next_multiple_of(4);
        assert!(depth <= DEPTH_MAX, "no branch has more queens than there are rows of a parity");
        let fits = match self.fits.entry([tables, depth]) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(missing) => missing.insert(kernel(&self.context, tables, depth, "fits")?),
        };
        self.count = items.len();
        self.scratch.reserve(&self.context, self.count * buffers.item_bytes() / size_of::<u64>())?;
        self.queue.fill(&self.context, &mut self.compared, LEFT_OUT, self.count)?;
        let arguments: [Argument; 16] = [
            (&buffers.steps).into(),
            (&buffers.chunks).into(),
            (&buffers.asked).into(),
            (&buffers.program).into(),
            number(buffers.depth).into(),
            number(buffers.rest).into(),
            number(buffers.rows).into(),
            (&buffers.starts).into(),
            (&buffers.masks).into(),
            number(buffers.sets).into(),
            number(self.parts).into(),
            (&self.scratch).into(),
            number(buffers.longest.max(1)).into(),
            number(items.start).into(),
            (&buffers.matrix).into(),
            (&self.compared).into(),
        ];
        // SAFETY: the arguments are those of `fits` in multiply.cl. It reads the tree and the lists of this work, which `set`
        // has put there, within their starts; each group writes its own part of `scratch`, of `depth` lists that are none
        // longer than `longest`, at most `asked_most` tables, cells of the `rows` of its matrix, and its place of `compared`.
        // All buffers have room for that.
        let event = unsafe { self.queue.launch(fits, &arguments, [self.count * LANES, 1, 1], LANES) };
        self.ended = Some(event?);
        Ok(())
    }

    fn start_products(&mut self) -> Result<(), Fault> {
        let [ps, ls] = [0, 1].map(|colour| self.colours[colour].sets);
        self.count = self.parts * self.row_sets * groups(ps) * groups(ls);
        self.sums.reserve(&self.context, self.count)?;
        let items = [groups(ls) * SETS, groups(ps), self.parts * self.row_sets];
        let arguments = [
            (&self.colours[0].matrix).into(),
            (&self.colours[1].matrix).into(),
            (&self.factors[0]).into(),
            (&self.factors[1]).into(),
            number(ps).into(),
            number(ls).into(),
            number(self.row_sets).into(),
            (&self.sums).into(),
        ];
        // SAFETY: the arguments are those of `multiply` in multiply.cl. It reads the matrices and the factors of this work, in
        // groups and parts as many as there are, and writes `count` sums; the buffers have room for these.
        let event = unsafe { self.queue.launch(&mut self.multiply, &arguments, items, SETS) };
        self.ended = Some(event?);
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, Fault> {
        self.ended.as_ref().expect("it was begun").has_ended()
    }

    fn compared(&mut self) -> Result<Vec<u64>, Fault> {
        self.read(&self.compared)
    }

    fn sums(&mut self) -> Result<Vec<[u64; 2]>, Fault> {
        self.read(&self.sums)
    }

    fn cells(
        &mut self,
        colour: usize,
        part: usize,
        group: usize,
        rows: Range<usize>,
    ) -> Result<Vec<[u32; SETS]>, Fault> {
        let buffers = &self.colours[colour];
        let first = (part * groups(buffers.sets) + group) * buffers.rows + rows.start;
        let mut cells = vec![[0; SETS]; rows.len()];
        self.queue.read(&buffers.matrix, first * SETS, cells.as_flattened_mut())?;
        Ok(cells)
    }
}
