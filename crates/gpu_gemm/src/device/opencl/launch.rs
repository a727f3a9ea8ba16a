//! Launches on an OpenCL device.

use std::sync::Arc;

use cuda_std::panic_record;
use opencl3::error_codes::{CL_INVALID_VALUE, ClError};
use opencl3::kernel::Kernel;
use opencl3::types::{CL_BLOCKING, cl_uint};

use super::device::{Compiled, Field, OpenClDevice, OpenClProperties, WorkGroup};
use crate::backend::{Allocated, Backend, Capacity, Space, Way};
use crate::buffer::Buffer;
use crate::error::DeviceError;
use crate::gpu::DeviceFacts;
use crate::launch::{Argument, Bindings, Launch, Map, NO_MAP};
use crate::plan::Plan;

// SAFETY: allocations are OpenCL's, and belong to a context.
unsafe impl Backend for Arc<OpenClDevice> {
    /// On PoCL one CTA has all tiles of a stream-K kernel, so that no tile is split: PoCL
    /// miscompiles the kernel that adds the segments.
    fn facts(&self) -> DeviceFacts {
        DeviceFacts::opencl(match self.is_pocl() {
            true => 1,
            false => self.properties().compute_units,
        })
    }

    fn space(&self) -> Space {
        Space::OpenCl(self.session().context().addr())
    }

    fn allocate(&self, bytes: usize) -> Result<Allocated, DeviceError> {
        self.room(bytes)
    }

    fn capacity(&self) -> Result<Capacity, DeviceError> {
        Ok(Capacity {
            cache: self.properties().cache_bytes,
            free: self.properties().memory_bytes,
        })
    }

    unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        way: Way,
    ) -> Result<(), DeviceError> {
        if bytes == 0 {
            return Ok(());
        }
        let (from, to) = (from.cast(), to.cast());
        // SAFETY: as the caller vouches; the call returns when the copy has been made.
        let copied = unsafe {
            let queue = self.session().queue();
            queue.enqueue_svm_mem_cpy(CL_BLOCKING, to, from, bytes, &[])
        };
        let doing = match way {
            Way::ToHost => "Copying from the OpenCL device",
            Way::ToDevice | Way::Within => "Copying to the OpenCL device",
        };
        copied
            .map(drop)
            .map_err(|error| DeviceError::opencl(doing, error))
    }

    fn compile(&self, plan: &Plan) -> Result<(), DeviceError> {
        for launch in plan.launches() {
            self.compiled(launch.kernel.name)?;
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        let finished = self.queue().finish();
        finished.map_err(|error| DeviceError::opencl("Waiting for the OpenCL device", error))
    }

    /// Starts a launch, and waits for it if the kernel may panic: the record of a panic is read
    /// then.
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError> {
        let compiled = self.compiled(launch.kernel.name)?;
        self.check(launch, &compiled)?;
        let record = match compiled.has_panic_record {
            true => {
                let mut record = Buffer::<i32>::new(self, panic_record::WORDS)?;
                record.write(self, 0, &[0; panic_record::WORDS])?;
                Some(record)
            }
            false => None,
        };
        let record_start = record.as_ref().map(|record| record.start().cast::<u8>());
        // SAFETY: as the caller vouches; the record lives until it has been read.
        unsafe { self.start(launch, bindings, &compiled, record_start)? };
        let Some(record) = record else { return Ok(()) };
        self.synchronize()?;
        let words = record.read(self, 0, panic_record::WORDS)?;
        let words: Vec<u32> = words.into_iter().map(i32::cast_unsigned).collect();
        match panic_record::read(compiled.source, &words) {
            None => Ok(()),
            Some(panic) => Err(DeviceError::OpenClPanic {
                kernel: launch.kernel.name.to_owned(),
                panic: Box::new(panic),
            }),
        }
    }
}

impl OpenClDevice {
    /// Whether the device has room for a work-group.
    fn check(&self, launch: &Launch, compiled: &Compiled) -> Result<(), DeviceError> {
        let group = WorkGroup {
            threads: launch.block.0 as usize * launch.block.1 as usize,
            local_bytes: compiled.local_bytes + launch.dynamic_shared_bytes as usize,
        };
        // The compiler knows for how many work-items there are enough registers.
        let of_kernel = OpenClProperties {
            work_group: compiled.work_group.min(self.properties().work_group),
            ..self.properties().clone()
        };
        match of_kernel.no_room(launch.kernel.name, group) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// # Safety
    ///
    /// As for [`Backend::launch`].
    unsafe fn start(
        &self,
        launch: &Launch,
        bindings: &Bindings,
        compiled: &Compiled,
        record: Option<*mut u8>,
    ) -> Result<(), DeviceError> {
        let kernel = compiled.kernel.lock();
        let kernel = kernel.unwrap_or_else(std::sync::PoisonError::into_inner);
        // SAFETY: as the caller vouches.
        let launched = unsafe { self.enqueue(&kernel, launch, bindings, compiled, record) };
        launched.map_err(|error| DeviceError::OpenClLaunch {
            kernel: launch.kernel.name.to_owned(),
            error: error.to_string(),
        })
    }

    /// # Safety
    ///
    /// As for [`Backend::launch`].
    unsafe fn enqueue(
        &self,
        kernel: &Kernel,
        launch: &Launch,
        bindings: &Bindings,
        compiled: &Compiled,
        record: Option<*mut u8>,
    ) -> Result<(), ClError> {
        if launch
            .arguments
            .iter()
            .any(|one| matches!(one, Argument::Epilogue { .. }))
        {
            return Err(ClError(CL_INVALID_VALUE));
        }
        // Kernels with tensor maps do not exist in OpenCL C.
        let no_map = |_: &Map, _| Ok(NO_MAP);
        let block = launch.block(bindings, no_map);
        let block = block.map_err(|_| ClError(CL_INVALID_VALUE))?;
        // SAFETY: a launch with an epilogue has been refused.
        let words: Vec<u64> = unsafe { block.words() }.collect();
        let mut parameters = Parameters { kernel, next: 0 };
        for field in &compiled.fields {
            parameters.field(field, &words)?;
        }
        if compiled.has_dynamic_local {
            // An argument in local memory must not be empty.
            parameters.local(launch.dynamic_shared_bytes.max(16) as usize)?;
        }
        if let Some(record) = record {
            parameters.pointer(record)?;
        }
        let local = [launch.block.0 as usize, launch.block.1 as usize, 1];
        let global = [
            launch.grid.0 as usize * local[0],
            launch.grid.1 as usize * local[1],
            launch.products as usize,
        ];
        // SAFETY: the sizes have three dimensions, the work-group divides the grid, and all
        // parameters have been set; the caller vouches for the memory.
        let event = unsafe {
            self.queue().enqueue_nd_range_kernel(
                kernel.get(),
                3,
                std::ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                &[],
            )?
        };
        drop(event);
        Ok(())
    }
}

/// Sets the parameters of a kernel in order. OpenCL refuses one with a wrong size.
struct Parameters<'k> {
    kernel: &'k Kernel,
    next: cl_uint,
}

impl Parameters<'_> {
    /// Sets a field of the argument block.
    fn field(&mut self, field: &Field, words: &[u64]) -> Result<(), ClError> {
        let word = words.get(field.byte / 8);
        let word = word.copied().ok_or(ClError(CL_INVALID_VALUE))?;
        let value = word >> (8 * (field.byte % 8));
        match field.bytes {
            None => self.pointer(std::ptr::with_exposed_provenance_mut(word as usize)),
            Some(1) => self.number(&(value as u8)),
            Some(2) => self.number(&(value as u16)),
            Some(4) => self.number(&(value as u32)),
            Some(_) => self.number(&value),
        }
    }

    fn number<T>(&mut self, value: &T) -> Result<(), ClError> {
        // SAFETY: the value has the given size, which OpenCL checks.
        unsafe { self.kernel.set_arg(self.advance(), value) }
    }

    fn pointer(&mut self, pointer: *mut u8) -> Result<(), ClError> {
        let index = self.advance();
        // SAFETY: it is an address in memory that kernels and the host share, or null.
        unsafe {
            self.kernel
                .set_arg_svm_pointer(index, pointer.cast_const().cast())
        }
    }

    fn local(&mut self, bytes: usize) -> Result<(), ClError> {
        let index = self.advance();
        // SAFETY: by its name the parameter is in local memory, which OpenCL checks.
        unsafe { self.kernel.set_arg_local_buffer(index, bytes) }
    }

    fn advance(&mut self) -> cl_uint {
        self.next += 1;
        self.next - 1
    }
}
