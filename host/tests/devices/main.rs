//! The program on other devices than the simulator: on a fake GPU, and on an OpenCL device.
//! Without libNVVM, or such a device, the tests that need it are reported as ignored.

mod built;
#[allow(dead_code)] // these tests do not need all of it
#[path = "../program/common/mod.rs"]
mod common;
mod fake;
mod guest;
mod several;
#[macro_use]
mod trials;
mod fake_gpu;
mod opencl;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    // Kernels that the programs then find, as they take less time together than one by one. One
    // that does not compile fails in its test.
    let prepares = arguments.filter.is_none() && !arguments.list;
    let trials = [fake_gpu::trials(prepares), opencl::trials(prepares)];
    libtest_mimic::run(&arguments, trials.into_iter().flatten().collect()).exit_code()
}
