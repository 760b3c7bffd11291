//! OpenCL devices.

mod found;
mod multiply;

use std::ptr;

use nqueens_kernel::engine::Engine;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{self, CL_DEVICE_TYPE_CPU};
use opencl3::error_codes::{
    CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    ClError,
};
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::program::Program;
use opencl3::types::CL_TRUE;

pub use self::found::{Found, NoDevice, devices};
use self::multiply::OpenClProducts;
use crate::engine::DeviceEngine;
use crate::products::DeviceProducts;
use crate::runner::{Fault, Outcome, ROUNDS_MAX, ROWS, Runner, SLOTS, STEPS, Slot, Task};

const SOURCE: &str = concat!(include_str!("dialect.cl"), include_str!("search.cl"));

/// Bytes of local memory that a lane needs: its stack, and the masks of its board.
const LANE_BYTES: u64 = (16 * (ROWS - 2 + STEPS) + 4 * (ROWS + 2)) as u64;

/// Lanes of a group, if there is local memory for so many.
const GROUP_MAX: u64 = 128;

/// Groups for each compute unit of a GPU: more than fit at once.
const GROUPS: usize = 8;

/// A device.
#[derive(Clone, Copy)]
pub struct Device(device::Device);

impl Device {
    /// What its driver calls it.
    pub fn name(&self) -> String {
        self.0.name().unwrap_or_else(|_| "unnamed".to_owned()).trim().to_owned()
    }

    /// Version of its driver.
    pub fn driver(&self) -> String {
        self.0.driver_version().unwrap_or_else(|_| "unknown".to_owned()).trim().to_owned()
    }

    /// Its memory in bytes.
    pub fn memory(&self) -> u64 {
        self.0.global_mem_size().unwrap_or(0)
    }

    /// Its compute units, at least 1.
    pub fn compute_units(&self) -> u32 {
        self.0.max_compute_units().unwrap_or(1).max(1)
    }

    /// Whether it is a CPU, which our own engines use better.
    pub fn is_cpu(&self) -> bool {
        self.0.dev_type().is_ok_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0)
    }
}

/// An engine on this device; `threads` threads, at least 1, cut boards for it, and make trees of colours.
pub fn engine(device: Device, threads: usize) -> Result<Box<dyn Engine>, Fault> {
    let products = Box::new(DeviceProducts::new(OpenClProducts::new(device)?, threads));
    Ok(Box::new(DeviceEngine::new(OpenCl::new(device)?, threads).with_products(products)))
}

/// A device that is ready for launches.
pub(crate) struct OpenCl {
    context: Context,
    /// Launches, one after the other.
    launches: CommandQueue,
    /// Transfers, beside the launches.
    transfers: CommandQueue,
    kernel: Kernel,
    masks: Buffer<u32>,
    stop: Buffer<u32>,
    slots: [SlotBuffers; SLOTS],
    /// Lanes of a group, and groups.
    group: usize,
    groups: usize,
    is_cpu: bool,
}

struct SlotBuffers {
    tasks: Buffer<Task>,
    outcomes: Buffer<Outcome>,
    /// Number of the next task.
    next: Buffer<u32>,
    /// Tasks that there is room for, and tasks of the launch.
    room: usize,
    count: usize,
    ended: Option<Event>,
}

fn lost(error: ClError) -> Fault {
    Fault::Lost(error.to_string())
}

fn fault(error: ClError) -> Fault {
    match error.0 {
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        | CL_OUT_OF_RESOURCES
        | CL_OUT_OF_HOST_MEMORY
        | CL_INVALID_BUFFER_SIZE => Fault::OutOfMemory,
        _ => lost(error),
    }
}

fn buffer<T>(context: &Context, length: usize) -> Result<Buffer<T>, Fault> {
    // SAFETY: no host memory is given that the buffer could use.
    unsafe { Buffer::create(context, CL_MEM_READ_WRITE, length.max(1), ptr::null_mut()) }.map_err(fault)
}

/// Writes the beginning of a buffer, and waits for it.
fn write<T>(queue: &CommandQueue, buffer: &mut Buffer<T>, data: &[T]) -> Result<(), Fault> {
    // SAFETY: callers have made the buffer long enough; the call returns when `data` was read.
    unsafe { queue.enqueue_write_buffer(buffer, CL_TRUE, 0, data, &[]) }.map(drop).map_err(fault)
}

/// Whether a launch has ended, well.
fn has_ended(event: Option<&Event>) -> Result<bool, Fault> {
    let ended = event.expect("only what was started is asked for");
    let status = ended.command_execution_status().map_err(lost)?.0;
    // Below 0 are errors.
    if status < 0 { Err(fault(ClError(status))) } else { Ok(status == CL_COMPLETE) }
}

impl OpenCl {
    fn new(Device(device): Device) -> Result<Self, Fault> {
        let context = Context::from_device(&device).map_err(lost)?;
        let queue = || CommandQueue::create_default(&context, 0).map_err(lost);
        let local = device.local_mem_size().map_err(lost)?;
        let widest = device.max_work_group_size().map_err(lost)? as u64;
        let group = (local / LANE_BYTES).min(widest).min(GROUP_MAX);
        if group == 0 {
            return Err(Fault::Lost("it has no local memory".to_owned()));
        }
        // The largest power of two.
        let group = 1 << group.ilog2();
        let options = format!(
            "-DGROUP={group} -DROWS={ROWS} -DSTEPS={STEPS} -DNONE=0xffffffffu -DUNFINISHED=0xffffffffu"
        );
        let program = Program::create_and_build_from_source(&context, SOURCE, &options)
            .map_err(|log| Fault::Lost(format!("its compiler says: {log}")))?;
        let kernel = Kernel::create(&program, "search").map_err(lost)?;
        let is_cpu = Device(device).is_cpu();
        let units = device.max_compute_units().map_err(lost)?.max(1) as usize;
        let slot = || {
            let (tasks, outcomes, next) = (buffer(&context, 0)?, buffer(&context, 0)?, buffer(&context, 1)?);
            Ok(SlotBuffers { tasks, outcomes, next, room: 0, count: 0, ended: None })
        };
        let slots = [slot()?, slot()?];
        let (masks, mut stop) = (buffer(&context, 0)?, buffer(&context, 1)?);
        let (launches, transfers) = (queue()?, queue()?);
        write(&transfers, &mut stop, &[0])?;
        let groups = if is_cpu { units } else { units * GROUPS };
        Ok(Self { context, launches, transfers, kernel, masks, stop, slots, group, groups, is_cpu })
    }
}

impl Runner for OpenCl {
    fn lanes(&self) -> usize {
        self.group * self.groups
    }

    fn launch_s(&self) -> f64 {
        // Short enough for every watchdog. A CPU is asked to stop between launches only: it has no queue beside them.
        if self.is_cpu { 0.1 } else { 0.4 }
    }

    fn set_masks(&mut self, masks: &[[u32; 32]]) -> Result<(), Fault> {
        let masks = masks.as_flattened();
        self.masks = buffer(&self.context, masks.len())?;
        write(&self.transfers, &mut self.masks, masks)
    }

    fn start(&mut self, slot: Slot, tasks: &[Task]) -> Result<(), Fault> {
        let slot = &mut self.slots[slot];
        if slot.room < tasks.len() {
            // Some more: the next launch may be a little larger.
            let room = tasks.len() + tasks.len() / 4;
            slot.room = 0;
            slot.tasks = buffer(&self.context, room)?;
            slot.outcomes = buffer(&self.context, room)?;
            slot.room = room;
        }
        write(&self.transfers, &mut slot.tasks, tasks)?;
        write(&self.transfers, &mut slot.outcomes, &vec![Outcome::NONE; tasks.len()])?;
        write(&self.transfers, &mut slot.next, &[0])?;
        slot.count = tasks.len();
        let count = u32::try_from(tasks.len()).expect("a launch has fewer tasks");
        let groups = self.groups.min(tasks.len().div_ceil(self.group));
        let mut call = ExecuteKernel::new(&self.kernel);
        // SAFETY: the arguments are those of `search` in search.cl. The kernel reads `count` tasks, the masks of their boards
        // up to their number of rows, and writes the outcomes of these tasks: all are within their buffers, which stay alive
        // until the launch has ended, as OpenCL holds on to them.
        let event = unsafe {
            call.set_arg(&slot.tasks)
                .set_arg(&count)
                .set_arg(&self.masks)
                .set_arg(&slot.next)
                .set_arg(&self.stop)
                .set_arg(&slot.outcomes)
                .set_arg(&ROUNDS_MAX)
                .set_global_work_size(groups * self.group)
                .set_local_work_size(self.group)
                .enqueue_nd_range(&self.launches)
        };
        slot.ended = Some(event.map_err(fault)?);
        self.launches.flush().map_err(lost)
    }

    fn is_done(&mut self, slot: Slot) -> Result<bool, Fault> {
        has_ended(self.slots[slot].ended.as_ref())
    }

    fn outcomes(&mut self, slot: Slot, outcomes: &mut Vec<Outcome>) -> Result<(), Fault> {
        let slot = &mut self.slots[slot];
        outcomes.clear();
        outcomes.resize(slot.count, Outcome::NONE);
        // SAFETY: the buffer has room for `count` outcomes at least; the call returns when they were written.
        let read = unsafe { self.transfers.enqueue_read_buffer(&slot.outcomes, CL_TRUE, 0, outcomes, &[]) };
        read.map(drop).map_err(fault)
    }

    fn stop(&mut self) -> Result<(), Fault> {
        write(&self.transfers, &mut self.stop, &[1])?;
        self.launches.finish().map_err(lost)?;
        write(&self.transfers, &mut self.stop, &[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a driver says of a launch that has ended goes the same way.
    #[test]
    fn a_device_without_memory_is_not_lost() {
        for code in [CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE] {
            assert_eq!(fault(ClError(code)), Fault::OutOfMemory);
        }
        assert!(matches!(fault(ClError(-9_999)), Fault::Lost(_)));
    }
}
