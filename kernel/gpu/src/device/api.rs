//! OpenCL's objects, and calls by which nothing panics when the device is gone.
//!
//! A driver may finish a blocking write before the buffer has its data, and other queues do not wait for it. Nor does a
//! status show what a launch wrote. So writes and ended launches are waited for by their events.

use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::ptr;

use cl3::error_codes::{
    CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    ClError,
};
use cl3::event::{CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS};
use cl3::memory::CL_MEM_READ_WRITE;
use cl3::program::CL_PROGRAM_BUILD_LOG;
use cl3::types::{CL_TRUE, cl_int, cl_mem};
use cl3::{command_queue, context, event, kernel, memory, program};

use super::Device;
use crate::runner::Fault;

pub(super) fn lost(code: cl_int) -> Fault {
    Fault::Lost(ClError(code).to_string())
}

/// A launch without resources is the end of its device: drivers say so of one that has crashed.
fn fault(code: cl_int) -> Fault {
    match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE | CL_OUT_OF_HOST_MEMORY | CL_INVALID_BUFFER_SIZE => {
            Fault::OutOfMemory
        }
        _ => lost(code),
    }
}

fn fault_of_allocation(code: cl_int) -> Fault {
    if code == CL_OUT_OF_RESOURCES { Fault::OutOfMemory } else { fault(code) }
}

/// An object that belongs to its owner. The driver keeps it for commands that have not ended.
struct Object {
    raw: *mut c_void,
    release: unsafe fn(*mut c_void) -> Result<(), cl_int>,
}

// SAFETY: OpenCL may be called by any thread. Arguments of a kernel alone need one thread at a time, and `launch` has its
// kernel for itself.
unsafe impl Send for Object {}
// SAFETY: the same.
unsafe impl Sync for Object {}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: it was made for its owner, who is gone. It does not matter if the driver can't release it: its device is lost.
        let _ = unsafe { (self.release)(self.raw) };
    }
}

/// A device that is ready for queues, buffers and kernels.
pub(super) struct Context {
    device: Device,
    object: Object,
}

impl Context {
    pub(super) fn new(device: Device) -> Result<Self, Fault> {
        let raw = context::create_context(&[device.0], ptr::null(), None, ptr::null_mut()).map_err(lost)?;
        Ok(Self { device, object: Object { raw, release: context::release_context } })
    }

    pub(super) fn queue(&self) -> Result<Queue, Fault> {
        // SAFETY: the context is that of the device.
        let raw = unsafe { command_queue::create_command_queue(self.object.raw, self.device.0, 0) };
        Ok(Queue(Object { raw: raw.map_err(lost)?, release: command_queue::release_command_queue }))
    }

    /// A kernel of a program that is built with these options.
    pub(super) fn kernel(&self, source: &str, options: &str, name: &str) -> Result<Kernel, Fault> {
        let [options, name] = [options, name].map(|text| CString::new(text).expect("without a zero"));
        let raw = program::create_program_with_source(self.object.raw, &[source]).map_err(lost)?;
        let program = Object { raw, release: program::release_program };
        let devices = [self.device.0];
        program::build_program(program.raw, &devices, &options, None, ptr::null_mut()).map_err(|code| {
            let log = program::get_program_build_info(program.raw, self.device.0, CL_PROGRAM_BUILD_LOG);
            let log = log.map_or_else(|_| ClError(code).to_string(), |log| log.to_string());
            Fault::Lost(format!("its compiler says: {log}"))
        })?;
        let raw = kernel::create_kernel(program.raw, &name).map_err(lost)?;
        Ok(Kernel(Object { raw, release: kernel::release_kernel }))
    }
}

pub(super) struct Kernel(Object);

/// Memory of a device for so many `T`, which are plain numbers.
pub(super) struct Buffer<T> {
    object: Option<Object>,
    room: usize,
    of: PhantomData<T>,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self { object: None, room: 0, of: PhantomData }
    }
}

impl<T> Buffer<T> {
    /// Has room for so many. What was in it is lost where there was less.
    pub(super) fn reserve(&mut self, context: &Context, length: usize) -> Result<(), Fault> {
        let room = length.max(1);
        if self.room < room {
            // There may not be memory for both.
            *self = Self::default();
            let bytes = room.checked_mul(size_of::<T>()).ok_or(Fault::OutOfMemory)?;
            // SAFETY: no host memory is given that the buffer could use.
            let raw = unsafe {
                memory::create_buffer(context.object.raw, CL_MEM_READ_WRITE, bytes, ptr::null_mut())
            };
            let raw = raw.map_err(fault_of_allocation)?;
            self.object = Some(Object { raw, release: memory::release_mem_object });
            self.room = room;
        }
        Ok(())
    }

    fn raw(&self) -> cl_mem {
        self.object.as_ref().expect("room was made for it").raw
    }
}

/// An argument of a kernel.
pub(super) enum Argument {
    Number(u32),
    Buffer(cl_mem),
}

impl From<u32> for Argument {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

impl<T> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Self {
        Self::Buffer(buffer.raw())
    }
}

/// Commands, one after the other.
pub(super) struct Queue(Object);

impl Queue {
    /// Writes the beginning of a buffer, which gets room for it.
    pub(super) fn write<T: Copy>(
        &self,
        context: &Context,
        buffer: &mut Buffer<T>,
        data: &[T],
    ) -> Result<(), Fault> {
        buffer.reserve(context, data.len())?;
        if data.is_empty() {
            return Ok(());
        }
        let (raw, bytes, from) = (buffer.raw(), size_of_val(data), data.as_ptr().cast());
        // SAFETY: there is room for `data`, and the call returns when it was read.
        let written = unsafe {
            command_queue::enqueue_write_buffer(self.0.raw, raw, CL_TRUE, 0, bytes, from, 0, ptr::null())
        };
        Event::of(written)?.wait()
    }

    /// Fills the beginning of a buffer, which gets room for it.
    pub(super) fn fill<T: Copy>(
        &self,
        context: &Context,
        buffer: &mut Buffer<T>,
        value: T,
        length: usize,
    ) -> Result<(), Fault> {
        buffer.reserve(context, length)?;
        if length == 0 {
            return Ok(());
        }
        let (raw, size, value) = (buffer.raw(), size_of::<T>(), (&raw const value).cast());
        // SAFETY: there is room for so many, and the value is copied by the call.
        let filled = unsafe {
            let bytes = length * size;
            command_queue::enqueue_fill_buffer(self.0.raw, raw, value, size, 0, bytes, 0, ptr::null())
        };
        Event::of(filled)?.wait()
    }

    /// Reads a part of a buffer, from number `first` on.
    pub(super) fn read<T: Copy>(
        &self,
        buffer: &Buffer<T>,
        first: usize,
        data: &mut [T],
    ) -> Result<(), Fault> {
        assert!(first + data.len() <= buffer.room, "only what there is room for was written");
        if data.is_empty() {
            return Ok(());
        }
        let (raw, offset) = (buffer.raw(), first * size_of::<T>());
        let (bytes, to) = (size_of_val(data), data.as_mut_ptr().cast());
        // SAFETY: `data` has room for it, takes any bits, and the call returns when they were written.
        let read = unsafe {
            command_queue::enqueue_read_buffer(self.0.raw, raw, CL_TRUE, offset, bytes, to, 0, ptr::null())
        };
        Event::of(read)?.wait()
    }

    /// Begins a launch of so many items in groups of such a size.
    ///
    /// # Safety
    ///
    /// The arguments must be those that the kernel takes, and their buffers have room for what it reads and writes.
    pub(super) unsafe fn launch(
        &self,
        kernel: &mut Kernel,
        arguments: &[Argument],
        items: [usize; 3],
        group: usize,
    ) -> Result<Event, Fault> {
        for (number, argument) in (0..).zip(arguments) {
            let (size, value): (_, *const c_void) = match argument {
                Argument::Number(number) => (size_of_val(number), ptr::from_ref(number).cast()),
                Argument::Buffer(raw) => (size_of_val(raw), ptr::from_ref(raw).cast()),
            };
            // SAFETY: the caller has chosen the arguments for this kernel. They are copied by the call.
            unsafe { kernel::set_kernel_arg(kernel.0.raw, number, size, value) }.map_err(fault)?;
        }
        let group = [group, 1, 1];
        let (queue, kernel, begin) = (self.0.raw, kernel.0.raw, ptr::null());
        // SAFETY: the caller answers for what the kernel does. The driver keeps the buffers until it has ended.
        let begun = unsafe {
            let (items, group) = (items.as_ptr(), group.as_ptr());
            command_queue::enqueue_nd_range_kernel(queue, kernel, 3, begin, items, group, 0, ptr::null())
        };
        let event = Event::of(begun)?;
        command_queue::flush(self.0.raw).map_err(lost)?;
        Ok(event)
    }
}

/// The end of a command.
pub(super) struct Event(Object);

impl Event {
    fn of(begun: Result<*mut c_void, cl_int>) -> Result<Self, Fault> {
        begun.map(|raw| Self(Object { raw, release: event::release_event })).map_err(fault)
    }

    /// The status of its command; below 0 are errors.
    fn status(&self) -> Result<cl_int, Fault> {
        let status = event::get_event_info(self.0.raw, CL_EVENT_COMMAND_EXECUTION_STATUS);
        Ok(status.map_err(lost)?.into())
    }

    fn wait(&self) -> Result<(), Fault> {
        let waited = event::wait_for_events(&[self.0.raw]);
        let status = self.status()?;
        if status < 0 { Err(fault(status)) } else { waited.map_err(fault) }
    }

    /// Whether its command has ended, well; then others see what it wrote.
    pub(super) fn has_ended(&self) -> Result<bool, Fault> {
        let has_ended = self.status()? <= CL_COMPLETE;
        if has_ended {
            self.wait()?;
        }
        Ok(has_ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a driver says of a launch that has ended goes the same way.
    #[test]
    fn a_device_without_memory_is_not_lost_and_a_launch_without_resources_is() {
        for code in [CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE] {
            assert_eq!([fault(code), fault_of_allocation(code)], [Fault::OutOfMemory, Fault::OutOfMemory]);
        }
        assert_eq!(fault_of_allocation(CL_OUT_OF_RESOURCES), Fault::OutOfMemory);
        assert!([CL_OUT_OF_RESOURCES, -9_999].iter().all(|code| matches!(fault(*code), Fault::Lost(_))));
    }
}
