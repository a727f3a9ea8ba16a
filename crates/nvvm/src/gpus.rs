//! The GPUs of this machine, asked of NVIDIA's driver, if there is one.

use std::collections::BTreeSet;

/// `cuInit`, and a function that fills in one number.
type Init = unsafe extern "C" fn(flags: u32) -> u32;
type Count = unsafe extern "C" fn(count: *mut i32) -> u32;
type Attribute = unsafe extern "C" fn(value: *mut i32, attribute: i32, device: i32) -> u32;

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
const CAPABILITY: [i32; 2] = [75, 76];

/// The real architectures of the GPUs of this machine, such as `sm_90`, each once; none without a
/// driver that starts.
pub fn architectures() -> BTreeSet<String> {
    ask().unwrap_or_default()
}

fn ask() -> Option<BTreeSet<String>> {
    // SAFETY: loading NVIDIA's driver has no requirements of its own.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.ok()?;
    // SAFETY: the types are those of the driver API since CUDA 2.
    let (init, count, attribute) = unsafe {
        (
            driver.get::<Init>(b"cuInit\0").ok()?,
            driver.get::<Count>(b"cuDeviceGetCount\0").ok()?,
            driver.get::<Attribute>(b"cuDeviceGetAttribute\0").ok()?,
        )
    };
    let mut found = 0;
    // SAFETY: no flags exist; the target outlives the call.
    if unsafe { init(0) != 0 || count(&mut found) != 0 } {
        return None;
    }
    let capability = |device: i32| {
        let number = |name| {
            let mut value = 0;
            // SAFETY: the target outlives the call. A device's handle is its number.
            let status = unsafe { attribute(&mut value, name, device) };
            (status == 0).then_some(value)
        };
        let [major, minor] = CAPABILITY.map(number);
        Some(format!("sm_{}{}", major?, minor?))
    };
    Some((0..found).filter_map(capability).collect())
}
