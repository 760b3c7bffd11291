//! A device that multiplies colours.

use std::ops::Range;

use nqueens_kernel::engine::{ProductWork, TreeStep};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::Buffer;
use opencl3::program::Program;
use opencl3::types::CL_TRUE;

use super::{Device, buffer, fault, has_ended, lost, write};
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
const TABLES: [usize; 3] = [64, 128, 256];

/// Memory that is taken of a CPU, in bytes: twice as much as matrices get.
const CPU_MEMORY_MAX: u64 = 1 << 29;

/// A list in the device's memory.
struct List<T> {
    buffer: Buffer<T>,
    room: usize,
}

impl<T> List<T> {
    fn new(context: &Context) -> Result<Self, Fault> {
        Ok(Self { buffer: buffer(context, 0)?, room: 1 })
    }

    fn reserve(&mut self, context: &Context, length: usize) -> Result<(), Fault> {
        if self.room < length {
            let room = length + length / 4;
            self.room = 0;
            self.buffer = buffer(context, room)?;
            self.room = room;
        }
        Ok(())
    }

    fn set(&mut self, context: &Context, queue: &CommandQueue, data: &[T]) -> Result<(), Fault> {
        self.reserve(context, data.len())?;
        if data.is_empty() { Ok(()) } else { write(queue, &mut self.buffer, data) }
    }
}

/// Trees of a colour, and lists, in the device's memory.
struct ColourBuffers {
    /// The version of the tree, and chunks of its walk.
    tree: Option<(u64, usize)>,
    depth: u32,
    rest: u32,
    /// Queens that a branch asks for, at most.
    asked_most: usize,
    steps: List<TreeStep>,
    chunks: List<[u32; 2]>,
    asked: List<u32>,
    program: List<u32>,
    starts: List<u32>,
    masks: List<u64>,
    matrix: List<u32>,
    /// Rows of a group's matrix, column sets of the lists, and their longest.
    rows: usize,
    sets: usize,
    longest: usize,
}

impl ColourBuffers {
    fn new(context: &Context) -> Result<Self, Fault> {
        Ok(Self {
            tree: None,
            depth: 1,
            rest: 0,
            asked_most: 0,
            steps: List::new(context)?,
            chunks: List::new(context)?,
            asked: List::new(context)?,
            program: List::new(context)?,
            starts: List::new(context)?,
            masks: List::new(context)?,
            matrix: List::new(context)?,
            rows: 0,
            sets: 0,
            longest: 0,
        })
    }

    /// Bytes that an item writes filtered lists to.
    fn item_bytes(&self) -> usize {
        self.depth as usize * self.longest.max(1) * SETS * size_of::<u64>()
    }

    fn set(
        &mut self,
        (context, queue): (&Context, &CommandQueue),
        work: &ProductWork<'_>,
        colour: usize,
        walk: &Walk,
    ) -> Result<(), Fault> {
        let tree = &work.trees[colour];
        if self.tree != Some((tree.version, walk.chunks.len())) {
            self.tree = None;
            let diagonals: Vec<u32> = tree.asked.iter().copied().map(diagonals).collect();
            self.steps.set(context, queue, &walk.steps)?;
            self.chunks.set(context, queue, &walk.chunks)?;
            self.asked.set(context, queue, &diagonals)?;
            self.program.set(context, queue, tree.program)?;
            let asked = tree.steps.iter().map(|step| (step.asked[1] - step.asked[0]) as usize);
            self.asked_most = asked.max().unwrap_or(0);
            [self.depth, self.rest] = [tree.depth, tree.rest].map(number);
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
        self.starts.set(context, queue, &starts)?;
        self.masks.set(context, queue, &masks)?;
        self.sets = sets(work)[colour];
        self.longest = work.parts.iter().map(|part| longest(part, colour)).max().unwrap_or(0);
        self.rows = work.row_sets * tree.height;
        let cells = work.parts.len() * groups(self.sets) * self.rows * SETS;
        self.matrix.reserve(context, cells)?;
        fill(queue, &mut self.matrix.buffer, 0, cells)
    }
}

/// The diagonals of a queen, as the device takes them: their numbers in the lowest two bytes. 64 is one that nobody is on.
fn diagonals(queen: u64) -> u32 {
    if queen == 0 { 64 << 8 | 64 } else { queen.ilog2() << 8 | queen.trailing_zeros() }
}

fn number(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32")
}

/// Which kernel is for a tree whose branches ask for so many queens at most. A CPU has memory for all.
fn tables(asked: usize, is_cpu: bool) -> usize {
    let most = if is_cpu { TABLES[TABLES.len() - 1] } else { asked };
    TABLES.iter().position(|tables| *tables >= most).expect("a program asks by the byte")
}

/// A kernel of the program for trees whose branches ask for so many queens at most.
fn kernel(context: &Context, tables: usize, name: &str) -> Result<Kernel, Fault> {
    let options = format!("-DSETS={SETS} -DDEPTH_MAX={DEPTH_MAX} -DTABLES={tables}");
    let program = Program::create_and_build_from_source(context, SOURCE, &options)
        .map_err(|log| Fault::Lost(format!("its compiler says: {log}")))?;
    Kernel::create(&program, name).map_err(lost)
}

/// Fills the beginning of a buffer.
fn fill<T>(queue: &CommandQueue, buffer: &mut Buffer<T>, value: T, length: usize) -> Result<(), Fault> {
    let bytes = length * size_of::<T>();
    // SAFETY: callers have made the buffer long enough; the value is copied by the call.
    unsafe { queue.enqueue_fill_buffer(buffer, &[value], 0, bytes, &[]) }.map(drop).map_err(fault)
}

/// A device that multiplies colours.
pub(crate) struct OpenClProducts {
    context: Context,
    queue: CommandQueue,
    /// By [`TABLES`].
    fits: [Option<Kernel>; TABLES.len()],
    multiply: Kernel,
    colours: [ColourBuffers; 2],
    factors: [List<[u32; 2]>; 2],
    scratch: List<u64>,
    compared: List<u64>,
    sums: List<[u64; 2]>,
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
    pub(super) fn new(Device(device): Device) -> Result<Self, Fault> {
        let context = Context::from_device(&device).map_err(lost)?;
        let queue = CommandQueue::create_default(&context, 0).map_err(lost)?;
        let multiply = kernel(&context, TABLES[0], "multiply")?;
        let colours = [ColourBuffers::new(&context)?, ColourBuffers::new(&context)?];
        let factors = [List::new(&context)?, List::new(&context)?];
        let (scratch, compared) = (List::new(&context)?, List::new(&context)?);
        let sums = List::new(&context)?;
        let [memory, largest] = [device.global_mem_size(), device.max_mem_alloc_size()];
        let (memory, largest) = (memory.map_err(lost)?, largest.map_err(lost)?);
        let is_cpu = Device(device).is_cpu();
        let units = device.max_compute_units().map_err(lost)?.max(1) as usize;
        // A CPU's memory belongs to others, too. Each colour has a buffer.
        let memory = if is_cpu { memory.min(CPU_MEMORY_MAX) } else { memory };
        let matrices_max = (memory / 2).min(largest.saturating_mul(2));
        let scratch_max = usize::try_from((memory / 8).min(largest)).unwrap_or(usize::MAX);
        Ok(Self {
            context,
            queue,
            fits: [const { None }; TABLES.len()],
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
            units,
            matrices_max,
            scratch_max,
            is_cpu,
        })
    }

    fn begin(&mut self, event: Result<Event, ClError>) -> Result<(), Fault> {
        self.ended = Some(event.map_err(fault)?);
        self.queue.flush().map_err(lost)
    }

    /// The first results of what was begun.
    fn read<T: Clone + Default>(&self, list: &List<T>) -> Result<Vec<T>, Fault> {
        let mut results = vec![T::default(); self.count];
        // SAFETY: the buffer has room for `count` results at least; the call returns when they were written.
        let read = unsafe { self.queue.enqueue_read_buffer(&list.buffer, CL_TRUE, 0, &mut results, &[]) };
        read.map(|_| results).map_err(fault)
    }
}

impl ProductRunner for OpenClProducts {
    fn matrices_max(&self) -> u64 {
        self.matrices_max
    }

    fn items_wanted(&self) -> usize {
        self.units * if self.is_cpu { 4 } else { 128 }
    }

    fn items_max(&self, colour: usize) -> usize {
        (self.scratch_max / self.colours[colour].item_bytes()).max(1)
    }

    fn launch_s(&self) -> f64 {
        if self.is_cpu { 0.05 } else { 0.2 }
    }

    fn set(&mut self, work: &ProductWork<'_>, walks: &[Walk; 2]) -> Result<(), Fault> {
        let device = (&self.context, &self.queue);
        for (colour, (buffers, walk)) in self.colours.iter_mut().zip(walks).enumerate() {
            buffers.set(device, work, colour, walk)?;
            let factors: Vec<_> = work.parts.iter().flat_map(|part| &part.factors[colour]).copied().collect();
            self.factors[colour].set(device.0, device.1, &factors)?;
        }
        (self.parts, self.row_sets) = (work.parts.len(), work.row_sets);
        Ok(())
    }

    fn start_fits(&mut self, colour: usize, items: Range<usize>) -> Result<(), Fault> {
        let buffers = &self.colours[colour];
        let at = tables(buffers.asked_most, self.is_cpu);
        if self.fits[at].is_none() {
            self.fits[at] = Some(kernel(&self.context, TABLES[at], "fits")?);
        }
        let fits = self.fits[at].as_ref().expect("just made");
        self.count = items.len();
        self.scratch.reserve(&self.context, self.count * buffers.item_bytes() / size_of::<u64>())?;
        self.compared.reserve(&self.context, self.count)?;
        fill(&self.queue, &mut self.compared.buffer, LEFT_OUT, self.count)?;
        let room = number(buffers.longest.max(1));
        let [rows, sets, parts, first] = [buffers.rows, buffers.sets, self.parts, items.start].map(number);
        let mut call = ExecuteKernel::new(fits);
        // SAFETY: the arguments are those of `fits` in multiply.cl. It reads the tree and the lists of this work, which `set`
        // has put there, within their starts; each group writes its own part of `scratch`, of `depth` lists that are none
        // longer than `room`, at most `asked_most` tables, cells of the `rows` of its matrix, and its place of `compared`. All buffers have room for that and stay alive until the launch has ended, as OpenCL holds on to them.
        let event = unsafe {
            call.set_arg(&buffers.steps.buffer)
                .set_arg(&buffers.chunks.buffer)
                .set_arg(&buffers.asked.buffer)
                .set_arg(&buffers.program.buffer)
                .set_arg(&buffers.depth)
                .set_arg(&buffers.rest)
                .set_arg(&rows)
                .set_arg(&buffers.starts.buffer)
                .set_arg(&buffers.masks.buffer)
                .set_arg(&sets)
                .set_arg(&parts)
                .set_arg(&self.scratch.buffer)
                .set_arg(&room)
                .set_arg(&first)
                .set_arg(&buffers.matrix.buffer)
                .set_arg(&self.compared.buffer)
                .set_global_work_size(self.count * LANES)
                .set_local_work_size(LANES)
                .enqueue_nd_range(&self.queue)
        };
        self.begin(event)
    }

    fn start_products(&mut self) -> Result<(), Fault> {
        let [ps, ls] = [0, 1].map(|colour| self.colours[colour].sets);
        self.count = self.parts * self.row_sets * groups(ps) * groups(ls);
        self.sums.reserve(&self.context, self.count)?;
        let sizes = [groups(ls) * SETS, groups(ps), self.parts * self.row_sets];
        let [ps, ls, row_sets] = [ps, ls, self.row_sets].map(number);
        let mut call = ExecuteKernel::new(&self.multiply);
        // SAFETY: the arguments are those of `multiply` in multiply.cl. It reads the matrices and the factors of this work, in
        // groups and parts as many as there are, and writes `count` sums; the buffers have room for these and stay alive until
        // the launch has ended, as OpenCL holds on to them.
        let event = unsafe {
            call.set_arg(&self.colours[0].matrix.buffer)
                .set_arg(&self.colours[1].matrix.buffer)
                .set_arg(&self.factors[0].buffer)
                .set_arg(&self.factors[1].buffer)
                .set_arg(&ps)
                .set_arg(&ls)
                .set_arg(&row_sets)
                .set_arg(&self.sums.buffer)
                .set_global_work_sizes(&sizes)
                .set_local_work_sizes(&[SETS, 1, 1])
                .enqueue_nd_range(&self.queue)
        };
        self.begin(event)
    }

    fn is_done(&mut self) -> Result<bool, Fault> {
        has_ended(self.ended.as_ref())
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
        let words = cells.as_flattened_mut();
        let offset = first * SETS * size_of::<u32>();
        // SAFETY: the matrix has these rows; the call returns when they were written.
        let read =
            unsafe { self.queue.enqueue_read_buffer(&buffers.matrix.buffer, CL_TRUE, offset, words, &[]) };
        read.map(|_| cells).map_err(fault)
    }
}
