//! A device that multiplies colours.

use nqueens_kernel::engine::{MaskLists, PairWork};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::event::Event;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::Buffer;
use opencl3::program::Program;
use opencl3::types::CL_TRUE;

use super::{Device, buffer, fault, has_ended, lost, write};
use crate::pairs::{PairRunner, STRIPES};
use crate::runner::Fault;

const SOURCE: &str = include_str!("../multiply.cl");

/// Lanes of a group that multiplies.
const WIDTH: usize = 64;

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

/// Placements in the device's memory.
struct DeviceLists {
    starts: List<u32>,
    masks: List<u64>,
}

impl DeviceLists {
    fn new(context: &Context) -> Result<Self, Fault> {
        Ok(Self { starts: List::new(context)?, masks: List::new(context)? })
    }

    fn set(&mut self, context: &Context, queue: &CommandQueue, lists: MaskLists<'_>) -> Result<(), Fault> {
        self.starts.set(context, queue, lists.starts)?;
        self.masks.set(context, queue, lists.masks)
    }
}

/// A device that multiplies colours.
pub(crate) struct OpenClPairs {
    context: Context,
    queue: CommandQueue,
    kernel: Kernel,
    leaves: [DeviceLists; 2],
    leaves_version: Option<u64>,
    lanes: [DeviceLists; 2],
    factors: [List<[u32; 2]>; 2],
    sums: List<[u64; 2]>,
    /// Sums of the launch.
    count: usize,
    ended: Option<Event>,
    width: usize,
    is_cpu: bool,
}

impl OpenClPairs {
    pub(super) fn new(Device(device): Device) -> Result<Self, Fault> {
        let context = Context::from_device(&device).map_err(lost)?;
        let queue = CommandQueue::create_default(&context, 0).map_err(lost)?;
        let widest = device.max_work_group_size().map_err(lost)?.clamp(1, WIDTH);
        // The largest power of two.
        let width = 1 << widest.ilog2();
        let program = Program::create_and_build_from_source(&context, SOURCE, &format!("-DGROUP={width}"))
            .map_err(|log| Fault::Lost(format!("its compiler says: {log}")))?;
        let kernel = Kernel::create(&program, "multiply").map_err(lost)?;
        let lists = || DeviceLists::new(&context);
        let (leaves, lanes) = ([lists()?, lists()?], [lists()?, lists()?]);
        let factors = [List::new(&context)?, List::new(&context)?];
        let sums = List::new(&context)?;
        let is_cpu = Device(device).is_cpu();
        let (leaves_version, count, ended) = (None, 0, None);
        Ok(Self {
            context,
            queue,
            kernel,
            leaves,
            leaves_version,
            lanes,
            factors,
            sums,
            count,
            ended,
            width,
            is_cpu,
        })
    }
}

impl PairRunner for OpenClPairs {
    fn width(&self) -> usize {
        self.width
    }

    fn launch_s(&self) -> f64 {
        if self.is_cpu { 0.05 } else { 0.2 }
    }

    fn set(&mut self, work: &PairWork<'_>) -> Result<(), Fault> {
        let (context, queue) = (&self.context, &self.queue);
        if self.leaves_version != Some(work.leaves_version) {
            self.leaves_version = None;
            for (leaves, lists) in self.leaves.iter_mut().zip(work.leaves) {
                leaves.set(context, queue, lists)?;
            }
            self.leaves_version = Some(work.leaves_version);
        }
        for (lanes, lists) in self.lanes.iter_mut().zip(work.lanes) {
            lanes.set(context, queue, lists)?;
        }
        for (factors, pairs) in self.factors.iter_mut().zip(work.factors) {
            factors.set(context, queue, pairs)?;
        }
        Ok(())
    }

    fn start(&mut self, work: &PairWork<'_>, first: usize, row_sets: usize) -> Result<(), Fault> {
        let [ps, ls] = work.sets();
        let pieces = ls.div_ceil(self.width);
        self.count = row_sets * STRIPES * pieces;
        self.sums.reserve(&self.context, self.count)?;
        let [ps, ls, first] = [ps, ls, first].map(|number| u32::try_from(number).expect("fewer than 2^32"));
        let ([leaves, others], [lanes, other_lanes]) = (&self.leaves, &self.lanes);
        let mut call = ExecuteKernel::new(&self.kernel);
        // SAFETY: the arguments are those of `multiply` in multiply.cl. It reads the lists of this work, which `set` has put
        // there, within their starts, and writes `count` sums; the buffers have room for these and stay alive until the launch
        // has ended, as OpenCL holds on to them.
        let event = unsafe {
            call.set_arg(&leaves.starts.buffer)
                .set_arg(&leaves.masks.buffer)
                .set_arg(&lanes.starts.buffer)
                .set_arg(&lanes.masks.buffer)
                .set_arg(&others.starts.buffer)
                .set_arg(&others.masks.buffer)
                .set_arg(&other_lanes.starts.buffer)
                .set_arg(&other_lanes.masks.buffer)
                .set_arg(&self.factors[0].buffer)
                .set_arg(&self.factors[1].buffer)
                .set_arg(&ps)
                .set_arg(&ls)
                .set_arg(&first)
                .set_arg(&self.sums.buffer)
                .set_global_work_sizes(&[pieces * self.width, STRIPES, row_sets])
                .set_local_work_sizes(&[self.width, 1, 1])
                .enqueue_nd_range(&self.queue)
        };
        self.ended = Some(event.map_err(fault)?);
        self.queue.flush().map_err(lost)
    }

    fn is_done(&mut self) -> Result<bool, Fault> {
        has_ended(self.ended.as_ref())
    }

    fn sums(&mut self) -> Result<Vec<[u64; 2]>, Fault> {
        let mut sums = vec![[0; 2]; self.count];
        // SAFETY: the buffer has room for `count` sums at least; the call returns when they were written.
        let read = unsafe { self.queue.enqueue_read_buffer(&self.sums.buffer, CL_TRUE, 0, &mut sums, &[]) };
        read.map(|_| sums).map_err(lost)
    }
}
