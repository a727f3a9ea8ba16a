//! The simulator and, if there are any, the GPU and an OpenCL device.

use std::cell::RefCell;
use std::fmt;
use std::sync::OnceLock;

use gpu_gemm::{Device, DeviceChoice};

/// Why tests on a GPU cannot run here, or `None` if they can.
pub fn why_no_gpu() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON
        .get_or_init(|| {
            Device::open(DeviceChoice::Cuda(0))
                .err()
                .map(|error| error.to_string())
        })
        .as_deref()
}

/// Why tests with OpenCL cannot run here, or `None` if they can.
pub fn why_no_opencl() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON
        .get_or_init(|| {
            Device::open(DeviceChoice::OpenCl(0))
                .err()
                .map(|error| error.to_string())
        })
        .as_deref()
}

/// The device of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Simulator,
    Gpu,
    OpenCl,
}

thread_local! {
    /// Devices that tests on this thread have finished with. Opening a device loads all kernels,
    /// which takes longer than most tests.
    static IDLE: RefCell<Vec<(Backend, Device)>> = const { RefCell::new(Vec::new()) };
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Simulator => "simulator",
            Backend::Gpu => "gpu",
            Backend::OpenCl => "opencl",
        })
    }
}

impl Backend {
    /// Runs a test on the device: one that another test on this thread has used, or a new one. A
    /// device on which a test fails or panics is not used again, so that later tests do not report
    /// the same fault.
    pub fn run<E: From<String>>(
        self,
        test: impl FnOnce(&Device) -> Result<(), E>,
    ) -> Result<(), E> {
        let idle = IDLE.with_borrow_mut(|idle| {
            let place = idle.iter().position(|(backend, _)| *backend == self);
            place.map(|place| idle.swap_remove(place).1)
        });
        let device = match idle {
            Some(device) => device,
            None => self.open()?,
        };
        test(&device)?;
        IDLE.with_borrow_mut(|idle| idle.push((self, device)));
        Ok(())
    }

    /// Opens the device.
    fn open(self) -> Result<Device, String> {
        let choice = match self {
            Backend::Simulator => return Ok(Device::simulator()),
            Backend::Gpu => DeviceChoice::Cuda(0),
            Backend::OpenCl => DeviceChoice::OpenCl(0),
        };
        Device::open(choice)
            .map(|opened| opened.device)
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn a_device_is_used_again_unless_a_test_failed_or_panicked_on_it() {
        let idle = || IDLE.with_borrow(Vec::len);
        let run = |end: fn() -> Result<(), String>| Backend::Simulator.run(|_| end());
        assert_eq!((run(|| Ok(())), idle()), (Ok(()), 1));
        assert_eq!((run(|| Ok(())), idle()), (Ok(()), 1));
        let failed = || Err("it is wrong".to_string());
        assert_eq!((run(failed), idle()), (failed(), 0));
        assert_eq!((run(|| Ok(())), idle()), (Ok(()), 1));
        assert!(catch_unwind(|| run(|| panic!("on purpose"))).is_err());
        assert_eq!(idle(), 0);
    }
}
