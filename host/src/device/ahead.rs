//! Launches that may begin before the one before them on the stream has ended: CUDA's programmatic dependent launch, which `cust` does not
//! have.

use std::ffi::{c_int, c_void};

use cust::function::Function;
use cust::stream::Stream;

use super::driver::{Driver, Properties};

/// The architecture from which on GPUs can: ten times the compute capability.
const FIRST: i32 = 90;

/// `CUlaunchConfig` of the driver API.
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: *mut c_void,
    attributes: *mut Attribute,
    attribute_count: u32,
}

/// `CUlaunchAttribute`: what it is, and 64 bytes for its value, of which this one takes an `int`.
#[repr(C, align(8))]
struct Attribute {
    id: u32,
    padding: u32,
    value: c_int,
    rest: [u8; 60],
}

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC_STREAM_SERIALIZATION: u32 = 6;

/// `cuLaunchKernelEx`.
type LaunchKernelEx = unsafe extern "C" fn(
    config: *const Config,
    function: *mut c_void,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32;

/// The driver's call for it.
pub(super) struct LaunchAhead {
    call: LaunchKernelEx,
    /// Keeps the call where it is.
    _driver: Driver,
}

impl LaunchAhead {
    /// None if the GPU or the driver cannot (drivers can from CUDA 11.8 on).
    pub fn of(properties: &Properties) -> Option<LaunchAhead> {
        if properties.architecture() < FIRST {
            return None;
        }
        let driver = Driver::load().ok()?;
        // SAFETY: the type is that of the driver API since CUDA 11.8.
        let call = unsafe { driver.symbol::<LaunchKernelEx>(b"cuLaunchKernelEx\0") }?;
        Some(LaunchAhead {
            call,
            _driver: driver,
        })
    }

    /// Launches a kernel, and says whether the driver took it. If it did not, nothing was launched.
    ///
    /// # Safety
    ///
    /// As for any launch: `parameters` point to the kernel's, in order and type, and what those point to stays until it has ended. The
    /// kernel reads nothing that the one before it writes before that has told it.
    pub unsafe fn launch(
        &self,
        function: &Function<'_>,
        (grid_x, grid_y): (u32, u32),
        (block_x, block_y): (u32, u32),
        stream: &Stream,
        parameters: &mut [*mut c_void],
    ) -> bool {
        let mut attribute = Attribute {
            id: PROGRAMMATIC_STREAM_SERIALIZATION,
            padding: 0,
            value: 1,
            rest: [0; 60],
        };
        let config = Config {
            grid: [grid_x, grid_y, 1],
            block: [block_x, block_y, 1],
            shared_bytes: 0,
            stream: stream.as_inner().cast(),
            attributes: &mut attribute,
            attribute_count: 1,
        };
        // SAFETY: all pointers outlive the call; the caller vouches for the kernel and its parameters.
        let code = unsafe {
            (self.call)(
                &config,
                function.to_raw().cast(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        code == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_laid_out_as_the_driver_has_them() {
        assert_eq!(size_of::<Attribute>(), 72);
        assert_eq!(std::mem::offset_of!(Attribute, value), 8);
        assert_eq!(size_of::<Config>(), 56);
        assert_eq!(std::mem::offset_of!(Config, stream), 32);
        assert_eq!(std::mem::offset_of!(Config, attribute_count), 48);
    }
}
