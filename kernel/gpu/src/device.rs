//! OpenCL devices.

mod api;
mod found;
mod multiply;

use cl3::device::{
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE, CL_DEVICE_NAME, CL_DEVICE_TYPE,
    CL_DEVICE_TYPE_CPU, CL_DRIVER_VERSION, get_device_info,
};
use cl3::info_type::InfoType;
use cl3::types::{cl_device_id, cl_device_info};
use nqueens_kernel::engine::Engine;

use self::api::{Buffer, Context, Event, Kernel, Queue, lost};
pub use self::found::{Found, NoDevice, devices};
use self::multiply::OpenClProducts;
use crate::engine::DeviceEngine;
use crate::products::DeviceProducts;
use crate::runner::{Fault, Outcome, ROUNDS_MAX, ROWS, Runner, SLOTS, STEPS, Slot, Task};

const SOURCE: &str = concat!(include_str!("dialect.cl"), include_str!("search.cl"));

/// Bytes of local memory that a lane needs: its stack, and the masks of its board.
const LANE_BYTES: u64 = (16 * (ROWS - 2 + STEPS) + 4 * (ROWS + 2)) as u64;

/// Lanes of a group, if there is local memory for so many: one wave of AMD's, of which three fit in 64 kB, or two warps.
const GROUP_MAX: u64 = 64;

/// Groups for each compute unit of a GPU: more than fit at once.
const GROUPS: usize = 16;

#[derive(Clone, Copy)]
pub struct Device(cl_device_id);

// SAFETY: any thread may ask a driver about its devices, which stay where they are.
unsafe impl Send for Device {}
// SAFETY: the same.
unsafe impl Sync for Device {}

impl Device {
    fn info<T: From<InfoType>>(self, of: cl_device_info) -> Result<T, Fault> {
        get_device_info(self.0, of).map(T::from).map_err(lost)
    }

    fn text(self, of: cl_device_info) -> Option<String> {
        Some(self.info::<String>(of).ok()?.trim().to_owned())
    }

    /// What its driver calls it.
    pub fn name(&self) -> String {
        self.text(CL_DEVICE_NAME).unwrap_or_else(|| "unnamed".to_owned())
    }

    pub fn driver(&self) -> String {
        self.text(CL_DRIVER_VERSION).unwrap_or_else(|| "unknown".to_owned())
    }

    /// Its memory in bytes.
    pub fn memory(&self) -> u64 {
        self.info(CL_DEVICE_GLOBAL_MEM_SIZE).unwrap_or(0)
    }

    /// Bytes of a buffer, at most.
    fn buffer_max(self) -> Result<u64, Fault> {
        self.info(CL_DEVICE_MAX_MEM_ALLOC_SIZE)
    }

    /// Bytes of memory that lanes of a group share.
    fn local_memory(self) -> Result<u64, Fault> {
        self.info(CL_DEVICE_LOCAL_MEM_SIZE)
    }

    /// Its compute units, at least 1.
    pub fn compute_units(&self) -> u32 {
        self.info(CL_DEVICE_MAX_COMPUTE_UNITS).unwrap_or(1).max(1)
    }

    /// Whether it is a CPU, which our own engines use better.
    pub fn is_cpu(&self) -> bool {
        self.info::<u64>(CL_DEVICE_TYPE).is_ok_and(|kind| kind & CL_DEVICE_TYPE_CPU != 0)
    }
}

/// An engine on this device; `threads` threads, at least 1, cut boards for it, and make trees of colours. If the device lacks
/// local memory for colours, its own thread multiplies them.
pub fn engine(device: Device, threads: usize) -> Result<Box<dyn Engine>, Fault> {
    let products = OpenClProducts::all(device)?.into_iter();
    let products = products.map(|products| Box::new(DeviceProducts::new(products, threads)) as _);
    Ok(Box::new(DeviceEngine::new(OpenCl::new(device)?, threads, products.collect())))
}

/// A device that is ready for launches.
pub(crate) struct OpenCl {
    context: Context,
    launches: Queue,
    /// Transfers, beside the launches.
    transfers: Queue,
    kernel: Kernel,
    masks: Buffer<u32>,
    slots: [SlotBuffers; SLOTS],
    /// Lanes of a group, and groups.
    group: usize,
    groups: usize,
    is_cpu: bool,
}

#[derive(Default)]
struct SlotBuffers {
    tasks: Buffer<Task>,
    outcomes: Buffer<Outcome>,
    /// Number of the next task.
    next: Buffer<u32>,
    /// Tasks of the launch.
    count: usize,
    ended: Option<Event>,
}

impl OpenCl {
    fn new(device: Device) -> Result<Self, Fault> {
        let context = Context::new(device)?;
        let widest = device.info::<usize>(CL_DEVICE_MAX_WORK_GROUP_SIZE)? as u64;
        let group = (device.local_memory()? / LANE_BYTES).min(widest).min(GROUP_MAX);
        if group == 0 {
            return Err(Fault::Lost("it has no local memory".to_owned()));
        }
        // The largest power of two.
        let group = 1 << group.ilog2();
        let options = format!(
            "-DGROUP={group} -DROWS={ROWS} -DSTEPS={STEPS} -DNONE=0xffffffffu -DUNFINISHED=0xffffffffu"
        );
        let kernel = context.kernel(SOURCE, &options, "search")?;
        let (launches, transfers) = (context.queue()?, context.queue()?);
        let (is_cpu, units) = (device.is_cpu(), device.compute_units() as usize);
        let groups = if is_cpu { units } else { units * GROUPS };
        let (masks, slots) = Default::default();
        Ok(Self { context, launches, transfers, kernel, masks, slots, group, groups, is_cpu })
    }
}

impl Runner for OpenCl {
    fn lanes(&self) -> usize {
        self.group * self.groups
    }

    fn launch_s(&self) -> f64 {
        // Short enough for every watchdog, and for those who stop a count.
        if self.is_cpu { 0.1 } else { 0.4 }
    }

    fn set_masks(&mut self, masks: &[[u32; 32]]) -> Result<(), Fault> {
        self.transfers.write(&self.context, &mut self.masks, masks.as_flattened())
    }

    fn start(&mut self, slot: Slot, tasks: &[Task]) -> Result<(), Fault> {
        let slot = &mut self.slots[slot];
        let (context, queue) = (&self.context, &self.transfers);
        queue.write(context, &mut slot.tasks, tasks)?;
        queue.write(context, &mut slot.outcomes, &vec![Outcome::NONE; tasks.len()])?;
        queue.write(context, &mut slot.next, &[0])?;
        slot.count = tasks.len();
        let count = u32::try_from(tasks.len()).expect("a launch has fewer tasks");
        let groups = self.groups.min(tasks.len().div_ceil(self.group));
        let arguments = [
            (&slot.tasks).into(),
            count.into(),
            (&self.masks).into(),
            (&slot.next).into(),
            (&slot.outcomes).into(),
            ROUNDS_MAX.into(),
        ];
        let items = [groups * self.group, 1, 1];
        // SAFETY: the arguments are those of `search` in search.cl. The kernel reads `count` tasks, the masks of their boards
        // up to their number of rows, and writes the outcomes of these tasks: all are within their buffers.
        let event = unsafe { self.launches.launch(&mut self.kernel, &arguments, items, self.group) };
        slot.ended = Some(event?);
        Ok(())
    }

    fn is_done(&mut self, slot: Slot) -> Result<bool, Fault> {
        self.slots[slot].ended.as_ref().expect("it was started").has_ended()
    }

    fn outcomes(&mut self, slot: Slot, outcomes: &mut Vec<Outcome>) -> Result<(), Fault> {
        let slot = &self.slots[slot];
        outcomes.clear();
        outcomes.resize(slot.count, Outcome::NONE);
        self.transfers.read(&slot.outcomes, 0, outcomes)
    }
}
