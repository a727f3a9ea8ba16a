//! Launches on a stream of a GPU.

use std::ffi::c_void;
use std::mem::ManuallyDrop;

use cuda_std::tma::TensorMap;

use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::stream::Stream;
use cust::sys::{
    CUdeviceptr, CUfunction, CUfunction_attribute, CUstream, cuFuncSetAttribute, cuLaunchKernel,
    cuMemcpyDtoD_v2, cuMemcpyDtoH_v2, cuMemcpyHtoD_v2, cuStreamSynchronize,
};

use super::capture::is_captured;
use super::current::Entered;
use super::device::CudaDevice;
use super::extended::{Attribute, Config};
use super::status::{checked, during, is_sticky};
use crate::backend::{Allocated, Backend, Capacity, Mark, Space, Way};
use crate::error::DeviceError;
use crate::gpu::DeviceFacts;
use crate::launch::{Bindings, Launch, Map, NO_MAP, Waits};
use crate::plan::Plan;

/// The first architecture on which a launch may begin early: ten times the compute capability.
const FIRST_WITH_EARLY_LAUNCHES: i32 = 90;

/// A stream of a GPU.
pub struct CudaStream {
    device: CudaDevice,
    /// Somebody else destroys it.
    stream: ManuallyDrop<Stream>,
}

impl CudaStream {
    /// A device's own stream.
    pub fn of(device: &CudaDevice) -> CudaStream {
        // SAFETY: the stream lives as long as the device.
        unsafe { CudaStream::from_raw(device, device.stream().as_inner().cast()) }
    }

    /// Any stream of the device.
    ///
    /// # Safety
    ///
    /// As for [`Context::on_raw_stream`](crate::Context::on_raw_stream).
    pub unsafe fn from_raw(device: &CudaDevice, stream: *mut c_void) -> CudaStream {
        let handle: CUstream = stream.cast();
        // SAFETY: `cust` has no function for this, but its stream is the handle and nothing else:
        // the sizes are equal, and the line after this compares the values.
        let stream: ManuallyDrop<Stream> = unsafe { std::mem::transmute(handle) };
        assert_eq!(stream.as_inner(), handle);
        CudaStream {
            device: device.clone(),
            stream,
        }
    }
}

// SAFETY: allocations are the driver's, and with unified addressing all GPUs share one space.
unsafe impl Backend for CudaStream {
    fn facts(&self) -> DeviceFacts {
        DeviceFacts::of(self.device.properties())
    }

    fn space(&self) -> Space {
        Space::Gpu
    }

    fn enter(&self) -> Result<Entered, DeviceError> {
        self.device.enter()
    }

    fn allocate(&self, bytes: usize) -> Result<Allocated, DeviceError> {
        let memory = self.device.allocate::<u8>(bytes.max(1))?;
        let start = memory.as_device_ptr().as_ptr().cast_mut();
        Ok(Allocated::new(start, self.device.own(memory)))
    }

    fn capacity(&self) -> Result<Capacity, DeviceError> {
        Ok(Capacity {
            cache: self.device.properties().l2_bytes,
            free: self.device.memory()?.0,
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
        let (source, target) = (from as CUdeviceptr, to as CUdeviceptr);
        // SAFETY: as the caller vouches.
        let (status, doing) = unsafe {
            match way {
                Way::ToDevice => (
                    cuMemcpyHtoD_v2(target, from.cast(), bytes),
                    "Copying to the GPU",
                ),
                Way::ToHost => (
                    cuMemcpyDtoH_v2(to.cast(), source, bytes),
                    "Copying from the GPU",
                ),
                Way::Within => (
                    cuMemcpyDtoD_v2(target, source, bytes),
                    "Copying within the GPU",
                ),
            }
        };
        checked(status as u32).map_err(during(doing))?;
        // Such a copy returns before the GPU has made it, and a stream of the caller's may not wait
        // for that, as the default stream does.
        if way != Way::ToHost {
            // SAFETY: null is the default stream, where the copy was.
            let waited = unsafe { cuStreamSynchronize(std::ptr::null_mut()) };
            checked(waited as u32).map_err(during(doing))?;
        }
        Ok(())
    }

    fn compile(&self, plan: &Plan) -> Result<(), DeviceError> {
        self.device.compile(plan)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.stream
            .synchronize()
            .map_err(during("Waiting for the GPU"))
    }

    fn finish(&self, kernel: &str) -> Result<(), DeviceError> {
        let finished = self.stream.synchronize();
        finished.map_err(self.device.after(kernel))
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        let event = Event::new(EventFlags::DEFAULT).map_err(during("Making an event"))?;
        let recorded = event.record(&self.stream);
        recorded.map_err(during("Recording an event"))?;
        Ok(Mark::new(Some(self.device.own(event))))
    }

    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError> {
        let name = launch.kernel.name;
        let function = self
            .device
            .function_unless(name, || self.must_not_be_captured(name))?;
        let block = launch.block(bindings, |map, address| self.encoded(map, address))?;
        let mut parameters = [block.as_ptr().cast_mut().cast::<c_void>()];
        // A kernel must opt in to more than 48 KiB, static arrays included.
        if launch.dynamic_shared_bytes > 0 {
            let bytes = launch.dynamic_shared_bytes.cast_signed();
            let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function belongs to a module that the device keeps.
            checked(unsafe { cuFuncSetAttribute(function, most, bytes) as u32 })
                .map_err(during("Asking for shared memory"))?;
        }
        let stream = self.stream.as_inner();
        // SAFETY: this is the kernel's only parameter; the caller vouches for the memory.
        let launched = unsafe { self.start(launch, function, stream, &mut parameters) };
        launched.map_err(|error| match is_sticky(error) {
            true => DeviceError::ContextLost(error),
            false => DeviceError::Launch {
                kernel: launch.kernel.name.to_string(),
                threads: launch.block.0 * launch.block.1,
                error,
            },
        })
    }
}

impl CudaStream {
    /// Fails while the stream is captured, when the driver does not load a kernel.
    fn must_not_be_captured(&self, kernel: &'static str) -> Result<(), DeviceError> {
        // SAFETY: the stream exists, and its context is current.
        match unsafe { is_captured(self.stream.as_inner().cast()) } {
            false => Ok(()),
            true => Err(DeviceError::NotPrepared { kernel }),
        }
    }

    /// A tensor map, or an empty one if the copy engine cannot move the matrix.
    fn encoded(&self, map: &Map, address: *mut u8) -> Result<TensorMap, DeviceError> {
        let Some(tiles) = map.tiles(address) else {
            return Ok(NO_MAP);
        };
        let Some(encode) = &self.device.gpu.encode_map else {
            return Err(DeviceError::NoSuchEntry {
                entry: "cuTensorMapEncodeTiled".to_owned(),
            });
        };
        encode.map(&tiles).map_err(during("Describing a matrix"))
    }

    /// # Safety
    ///
    /// As for [`Backend::launch`]; `parameters` point to the kernel's parameters, in order and
    /// type.
    unsafe fn start(
        &self,
        launch: &Launch,
        function: CUfunction,
        stream: CUstream,
        parameters: &mut [*mut c_void],
    ) -> Result<(), CudaError> {
        let early = launch.waits == Waits::InTheKernel
            && self.device.properties().architecture() >= FIRST_WITH_EARLY_LAUNCHES;
        match &self.device.gpu.extended {
            Some(extended) if early => {
                let mut attribute = Attribute::programmatic_stream_serialization();
                let config = Config {
                    grid: [launch.grid.0, launch.grid.1, launch.products],
                    block: [launch.block.0, launch.block.1, 1],
                    shared_bytes: launch.dynamic_shared_bytes,
                    stream: stream.cast(),
                    attributes: &raw mut attribute,
                    attribute_count: 1,
                };
                // SAFETY: all pointers outlive the call; the caller vouches for the kernel and its
                // parameters. A kernel that begins early waits for the previous one itself.
                checked(unsafe {
                    (extended.0)(
                        &config,
                        function.cast(),
                        parameters.as_mut_ptr(),
                        std::ptr::null_mut(),
                    )
                })
            }
            // SAFETY: as above.
            _ => checked(unsafe {
                cuLaunchKernel(
                    function,
                    launch.grid.0,
                    launch.grid.1,
                    launch.products,
                    launch.block.0,
                    launch.block.1,
                    1,
                    launch.dynamic_shared_bytes,
                    stream,
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                ) as u32
            }),
        }
    }
}
