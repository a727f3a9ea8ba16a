//! NVIDIA's driver: whether it is installed, which GPUs it finds, and why it rejects a module.

use std::ffi::{CString, c_char, c_void};

use cust::device::{Device, DeviceAttribute};
use cust::error::{CudaError, CudaResult};
use cust::{CudaApiVersion, CudaFlags};

use super::ptx;
use crate::error::{DeviceError, UNSUPPORTED_PTX_VERSION};
use crate::gpu::Properties;

/// The driver's description of a GPU.
fn properties(ordinal: u32) -> CudaResult<Properties> {
    let device = Device::get_device(ordinal)?;
    let attribute = |attribute| device.get_attribute(attribute);
    let driver = CudaApiVersion::get()?;
    Ok(Properties {
        ordinal,
        name: device.name()?,
        capability: (
            attribute(DeviceAttribute::ComputeCapabilityMajor)?,
            attribute(DeviceAttribute::ComputeCapabilityMinor)?,
        ),
        sms: attribute(DeviceAttribute::MultiprocessorCount)?,
        memory_bytes: device.total_memory()?,
        l2_bytes: usize::try_from(attribute(DeviceAttribute::L2CacheSize)?).unwrap_or(0),
        clock_mhz: attribute(DeviceAttribute::ClockRate)? / 1000,
        bandwidth_bytes_per_s: bandwidth(
            attribute(DeviceAttribute::MemoryClockRate)?,
            attribute(DeviceAttribute::GlobalMemoryBusWidth)?,
        ),
        driver: format!("{}.{}", driver.major(), driver.minor()),
    })
}

/// The bandwidth, from a clock in kHz and a width in bits: double data rate moves two words a
/// cycle.
fn bandwidth(clock_khz: i32, width_bits: i32) -> f64 {
    2.0 * f64::from(clock_khz) * 1e3 * f64::from(width_bits) / 8.0
}

/// The release of the installed driver, such as `580.159.04`, if the kernel module reports it.
pub fn release() -> Option<String> {
    let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(text.trim().to_string()).filter(|release| !release.is_empty())
}

/// The GPUs that the driver finds.
///
/// # Errors
///
/// There is no driver, the driver does not start, or it finds no GPU.
pub fn probe() -> Result<Vec<Properties>, DeviceError> {
    // `cust` starts without a driver and then behaves as if there were no device, so this looks
    // for the driver first.
    Driver::load()?;
    cust::init(CudaFlags::empty()).map_err(|error| match error {
        CudaError::NoDevice => DeviceError::NoDevice,
        error => DeviceError::DriverFails(error),
    })?;
    let count = Device::num_devices().map_err(DeviceError::DriverFails)?;
    if count == 0 {
        return Err(DeviceError::NoDevice);
    }
    (0..count)
        .map(|ordinal| properties(ordinal).map_err(DeviceError::DriverFails))
        .collect()
}

/// `cuModuleLoadDataEx` of the driver API, with options and their values as two arrays. Its
/// result stays a plain number: drivers return numbers that `cust`'s enumeration does not have.
type LoadModule = unsafe extern "C" fn(
    module: *mut *mut c_void,
    image: *const c_void,
    option_count: u32,
    options: *mut u32,
    values: *mut *mut c_void,
) -> u32;

/// The driver's library.
pub(super) struct Driver(libloading::Library);

impl Driver {
    pub fn load() -> Result<Driver, DeviceError> {
        // SAFETY: loading NVIDIA's driver has no requirements of its own.
        match unsafe { libloading::Library::new("libcuda.so.1") } {
            Ok(library) => Ok(Driver(library)),
            Err(_) => Err(DeviceError::NoDriver),
        }
    }

    /// One of its functions; `None` if this driver is too old to have it. It must not be called
    /// after the library has been closed.
    ///
    /// # Safety
    ///
    /// `T` is the type of the function.
    pub unsafe fn symbol<T: Copy>(&self, name: &[u8]) -> Option<T> {
        // SAFETY: the caller vouches for the type.
        let symbol = unsafe { self.0.get::<T>(name) };
        symbol.ok().map(|found| *found)
    }

    /// Loads `ptx` into the current context only to obtain the error: its number and the
    /// compiler's log.
    fn refusal(&self, ptx: &str) -> Option<(u32, String)> {
        const ERROR_LOG_BUFFER: u32 = 5;
        const ERROR_LOG_BUFFER_BYTES: u32 = 6;
        // SAFETY: the type is that of the driver API since CUDA 4.
        let load = unsafe { self.symbol::<LoadModule>(b"cuModuleLoadDataEx\0") }?;
        let image = CString::new(ptx).ok()?;
        let mut log = vec![0u8; 8192];
        let mut module = std::ptr::null_mut();
        let mut options = [ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_BYTES];
        // The driver expects the size by value, in place of a pointer.
        let mut values: [*mut c_void; 2] = [
            log.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(log.len() - 1),
        ];
        // SAFETY: all pointers outlive the call, and the log is as long as its size says.
        let code = unsafe {
            load(
                &mut module,
                image.as_ptr().cast::<c_char>().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        Some((
            code,
            String::from_utf8_lossy(&log[..end]).trim().to_string(),
        ))
    }
}

/// Why the driver did not accept `ptx`. `cust` reports only that it failed, so the driver is called
/// directly.
pub(super) fn explain_refusal(ptx: &str, properties: &Properties) -> DeviceError {
    let (code, log) = Driver::load()
        .ok()
        .and_then(|driver| driver.refusal(ptx))
        .unwrap_or((0, String::new()));
    refusal_error(code, log, &ptx::header(ptx), properties)
}

fn refusal_error(
    code: u32,
    log: String,
    header: &ptx::Header<'_>,
    properties: &Properties,
) -> DeviceError {
    let (major, minor) = properties.capability;
    // For PTX of a newer architecture, drivers return 209 or 218.
    let too_new = ptx::architecture(header.target).is_some()
        && !ptx::runs_on(header.target, properties.architecture());
    match code {
        UNSUPPORTED_PTX_VERSION => DeviceError::DriverTooOld {
            driver: properties.driver.clone(),
            isa: header.isa.to_string(),
            needed: ptx::driver_needed(header.isa),
        },
        code if code == 209 || too_new => DeviceError::NoCodeForGpu {
            code,
            capability: format!("{major}.{minor}"),
            target: header.target.to_string(),
        },
        code => DeviceError::InvalidPtx { code, log },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::h200_properties;

    #[test]
    fn each_refusal_of_ptx_has_its_own_message() {
        let message_for = |code, target| {
            let header = ptx::Header {
                isa: "8.8",
                target,
                entries: 1,
            };
            refusal_error(code, "line 3: oops".into(), &header, &h200_properties()).to_string()
        };
        let message = |code| message_for(code, "sm_90a");
        let too_old = message(222);
        for part in ["222", "CUDA 12.4", "PTX ISA 8.8", "575 (CUDA 12.9)"] {
            assert!(too_old.contains(part), "{too_old}");
        }
        let no_code = message(209);
        for part in ["209", "9.0", "sm_90a"] {
            assert!(no_code.contains(part), "{no_code}");
        }
        let too_new = message_for(218, "sm_100");
        for part in ["218", "capability 9.0", "sm_100 and newer"] {
            assert!(too_new.contains(part), "{too_new}");
        }
        let invalid = message(218);
        for part in ["218", "line 3: oops"] {
            assert!(invalid.contains(part), "{invalid}");
        }
    }

    #[test]
    fn a_machine_without_driver_or_gpu_is_an_error_value() {
        match probe() {
            Ok(found) => assert!(!found.is_empty()),
            Err(error) => assert!(error.means_no_usable_gpu(), "{error}"),
        }
    }

    #[test]
    fn the_bandwidth_of_an_h100_is_that_of_its_data_sheet() {
        // 2619 MHz and 5120 bits; the data sheet says 3.35 TB/s.
        assert_eq!((bandwidth(2_619_000, 5120) / 1e10).round(), 335.0);
    }
}
