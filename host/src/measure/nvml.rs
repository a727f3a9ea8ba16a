//! The state of a GPU while it is measured: its clocks, power and temperature, and what limits the
//! clocks, from NVIDIA's management library (NVML).
//!
//! The library comes with the driver, and is loaded at run time. Only seven of its functions are
//! needed, so no crate wraps them. It is no error if there is no NVML or it does not know a value.
//!
//! A sample takes some calls of the host and none of the GPU. It is taken while the GPU works on
//! launches that are already queued, so that it delays none of them; see [`super::gpu`]. Clocks
//! and temperature are those of that moment. The power is NVML's, on most GPUs the mean of the
//! last second, so it is too low for a shorter benchmark.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use cust::device::{Device, DeviceAttribute};
use libloading::Library;
use serde::{Deserialize, Serialize};

/// The state of a GPU. An unknown value is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuState {
    /// The clock of the SMs.
    pub sm_clock_mhz: Option<u32>,
    pub memory_clock_mhz: Option<u32>,
    pub power_w: Option<f64>,
    pub temperature_c: Option<u32>,
    /// What limits the clocks, by NVML's names, such as `sw_power_cap`; empty if nothing does.
    pub throttle_reasons: Option<Vec<String>>,
}

impl GpuState {
    /// In a line, for people; none if nothing is known.
    pub fn description(&self) -> Option<String> {
        let reasons = self.throttle_reasons.as_ref();
        let reasons = reasons.filter(|reasons| !reasons.is_empty());
        let facts = [
            self.sm_clock_mhz.map(|clock| format!("SMs at {clock} MHz")),
            (self.memory_clock_mhz).map(|clock| format!("memory at {clock} MHz")),
            self.power_w.map(|power| format!("{power:.0} W")),
            (self.temperature_c).map(|temperature| format!("{temperature} °C")),
            reasons.map(|reasons| format!("held back by {}", reasons.join(", "))),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        (!facts.is_empty()).then(|| facts.join(", "))
    }
}

type Handle = *mut c_void;

/// `NVML_CLOCK_SM` and `NVML_CLOCK_MEM`.
const SM_CLOCK: c_int = 1;
const MEMORY_CLOCK: c_int = 2;
/// `NVML_TEMPERATURE_GPU`.
const OF_GPU: c_int = 0;

/// Bits of `nvmlClocksThrottleReasons`, later `nvmlClocksEventReasons`.
const REASONS: [(u64, &str); 9] = [
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
];

/// The process's NVML, initialised. It is never shut down.
fn nvml() -> Option<&'static Library> {
    static NVML: OnceLock<Option<Library>> = OnceLock::new();
    let load = || {
        // SAFETY: NVIDIA's library may be loaded by any process, and the type is that of `nvml.h`.
        unsafe {
            let library = Library::new("libnvidia-ml.so.1").ok()?;
            let init = *library
                .get::<unsafe extern "C" fn() -> c_int>("nvmlInit_v2")
                .ok()?;
            (init() == 0).then_some(library)
        }
    };
    NVML.get_or_init(load).as_ref()
}

/// A GPU whose state can be read.
pub struct Probe {
    nvml: &'static Library,
    device: Handle,
}

impl Probe {
    /// A probe of the GPU with this CUDA ordinal; NVML has ordinals of its own. NVML is
    /// initialised here, so that [`Probe::sample`] is fast.
    pub fn new(ordinal: u32) -> Option<Probe> {
        type Find = unsafe extern "C" fn(id: *const c_char, device: *mut Handle) -> c_int;
        let nvml = nvml()?;
        let id = CString::new(pci_bus_id(ordinal)?).ok()?;
        let mut device = ptr::null_mut();
        // SAFETY: the type is that of `nvml.h`, the string ends with a zero, and the handle can be
        // written.
        let status = unsafe {
            let find = *nvml.get::<Find>("nvmlDeviceGetHandleByPciBusId_v2").ok()?;
            find(id.as_ptr(), &mut device)
        };
        (status == 0).then_some(Probe { nvml, device })
    }

    /// Calls a function that takes the GPU and a number. An older library may lack it.
    ///
    /// # Safety
    ///
    /// `nvml.h` has such a function, with a value of type `T`.
    unsafe fn read_of<T: Default>(&self, function: &str, which: c_int) -> Option<T> {
        type Get<T> = unsafe extern "C" fn(device: Handle, which: c_int, value: *mut T) -> c_int;
        let mut value = T::default();
        // SAFETY: the caller vouches for the type, and the value can be written.
        let status =
            unsafe { self.nvml.get::<Get<T>>(function).ok()?(self.device, which, &mut value) };
        (status == 0).then_some(value)
    }

    /// Calls a function that takes only the GPU.
    ///
    /// # Safety
    ///
    /// As above.
    unsafe fn read<T: Default>(&self, function: &str) -> Option<T> {
        type Get<T> = unsafe extern "C" fn(device: Handle, value: *mut T) -> c_int;
        let mut value = T::default();
        // SAFETY: as above.
        let status = unsafe { self.nvml.get::<Get<T>>(function).ok()?(self.device, &mut value) };
        (status == 0).then_some(value)
    }

    /// A clock of the GPU.
    fn clock_mhz(&self, which: c_int) -> Option<u32> {
        // SAFETY: `nvml.h` declares it so.
        unsafe { self.read_of("nvmlDeviceGetClockInfo", which) }
    }

    /// The clock of the SMs.
    pub fn sm_clock_mhz(&self) -> Option<u32> {
        self.clock_mhz(SM_CLOCK)
    }

    /// The energy that the GPU has taken since the driver was loaded. It advances in steps.
    pub fn energy_j(&self) -> Option<f64> {
        // SAFETY: `nvml.h` declares it so.
        let millijoules: u64 = unsafe { self.read("nvmlDeviceGetTotalEnergyConsumption")? };
        Some(millijoules as f64 / 1e3)
    }

    /// The GPU's current state.
    pub fn sample(&self) -> GpuState {
        // SAFETY: `nvml.h` declares them so.
        let (milliwatts, temperature_c, reasons) = unsafe {
            (
                self.read::<u32>("nvmlDeviceGetPowerUsage"),
                self.read_of::<u32>("nvmlDeviceGetTemperature", OF_GPU),
                self.read::<u64>("nvmlDeviceGetCurrentClocksThrottleReasons"),
            )
        };
        GpuState {
            sm_clock_mhz: self.clock_mhz(SM_CLOCK),
            memory_clock_mhz: self.clock_mhz(MEMORY_CLOCK),
            power_w: milliwatts.map(|milliwatts| f64::from(milliwatts) / 1e3),
            temperature_c,
            throttle_reasons: reasons.map(names),
        }
    }
}

/// The names of the bits that are set.
fn names(reasons: u64) -> Vec<String> {
    let bits = (0..u64::BITS).map(|bit| 1 << bit);
    let set = bits.filter(|bit| reasons & bit != 0);
    set.map(|bit| {
        let known = REASONS.iter().find(|(reason, _)| *reason == bit);
        known.map_or_else(|| format!("{bit:#x}"), |(_, name)| name.to_string())
    })
    .collect()
}

/// The GPU's PCI address, as NVML spells it: domain, bus, device and function.
fn pci_bus_id(ordinal: u32) -> Option<String> {
    let device = Device::get_device(ordinal).ok()?;
    let number = |attribute| device.get_attribute(attribute).ok();
    let domain = number(DeviceAttribute::PciDomainId)?;
    let bus = number(DeviceAttribute::PciBusId)?;
    let slot = number(DeviceAttribute::PciDeviceId)?;
    Some(format!("{domain:08x}:{bus:02x}:{slot:02x}.0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_name_and_an_unknown_one_its_bit() {
        assert_eq!(names(0), [""; 0]);
        assert_eq!(names(0x4), ["sw_power_cap"]);
        let several = ["gpu_idle", "hw_thermal_slowdown", "0x200"];
        assert_eq!(names(0x241), several);
        assert_eq!(names(0x1ff), REASONS.map(|(_, name)| name));
    }
}
