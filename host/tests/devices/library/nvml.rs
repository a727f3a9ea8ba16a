//! NVML's functions, as `nvml.h` documents them.

use std::ffi::{CStr, c_char};
use std::time::SystemTime;

use crate::gpu::{Outcome, call, put};

const INVALID_ARGUMENT: u32 = 2;
const NOT_SUPPORTED: u32 = 3;

/// The handle of the GPU.
const GPU: usize = 0x6e76;

/// Writes the value of a setting; 0 means that this GPU does not support it.
fn read(device: usize, setting: &str, value: *mut u32) -> u32 {
    assert_eq!(device, GPU);
    call(|gpu| {
        gpu.log(format_args!("nvml setting={setting}"));
        match gpu.setting(setting) {
            0 => Err(NOT_SUPPORTED),
            number => put(value, number as u32),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> u32 {
    call(|gpu| gpu.status("nvml"))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(id: *const c_char, device: *mut usize) -> u32 {
    // SAFETY: the caller passes a string that ends with a zero.
    let id = unsafe { CStr::from_ptr(id) };
    let found: Outcome = match id.to_bytes() == b"00000001:4f:00.0" {
        true => put(device, GPU),
        false => Err(INVALID_ARGUMENT),
    };
    found.err().unwrap_or(0)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetClockInfo(device: usize, clock: i32, mhz: *mut u32) -> u32 {
    match clock {
        1 => read(device, "sm_mhz", mhz),
        2 => read(device, "memory_mhz", mhz),
        other => panic!("clock {other} is not known"),
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPowerUsage(device: usize, milliwatts: *mut u32) -> u32 {
    read(device, "power_mw", milliwatts)
}

/// A counter that advances in steps of 20 ms.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTotalEnergyConsumption(device: usize, millijoules: *mut u64) -> u32 {
    assert_eq!(device, GPU);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let steps = since.map_or(0, |since| since.as_millis() as u64 / 20);
    call(|gpu| match gpu.setting("energy_w") {
        0 => Err(NOT_SUPPORTED),
        watts => put(millijoules, steps * 20 * watts),
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperature(device: usize, sensor: i32, celsius: *mut u32) -> u32 {
    assert_eq!(sensor, 0);
    read(device, "celsius", celsius)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: usize, reasons: *mut u64) -> u32 {
    assert_eq!(device, GPU);
    // The reason is the power cap.
    call(|_| put(reasons, 4))
}
