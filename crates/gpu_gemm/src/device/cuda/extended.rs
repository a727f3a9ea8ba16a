//! `cuLaunchKernelEx`, the driver's launch with attributes, which `cust` lacks.

use std::ffi::{c_int, c_void};

use super::driver::Driver;

/// `CUlaunchConfig` of the driver API.
#[repr(C)]
pub(super) struct Config {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub stream: *mut c_void,
    pub attributes: *mut Attribute,
    pub attribute_count: u32,
}

/// `CUlaunchAttribute`: its kind, and 64 bytes for its value; these attributes use at most 12.
#[repr(C, align(8))]
pub(super) struct Attribute {
    id: u32,
    padding: u32,
    value: [c_int; 3],
    unused: [u8; 52],
}

impl Attribute {
    fn new(id: u32, value: [c_int; 3]) -> Attribute {
        Attribute {
            id,
            padding: 0,
            value,
            unused: [0; 52],
        }
    }

    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
    pub fn programmatic_stream_serialization() -> Attribute {
        Attribute::new(6, [1, 0, 0])
    }
}

/// The driver's function.
#[derive(Clone, Copy)]
pub(super) struct LaunchKernelEx(
    pub  unsafe extern "C" fn(
        config: *const Config,
        function: *mut c_void,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> u32,
);

impl LaunchKernelEx {
    /// `None` if the driver lacks it: drivers have it since CUDA 11.8.
    pub fn find(driver: &Driver) -> Option<LaunchKernelEx> {
        // SAFETY: the type is that of the driver API since CUDA 11.8.
        unsafe { driver.symbol(b"cuLaunchKernelEx\0") }.map(LaunchKernelEx)
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
