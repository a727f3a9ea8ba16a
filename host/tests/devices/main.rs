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
    // The first of either kind compiles kernels for all of its kind, mostly on one core.
    let mut on_gpu = fake_gpu::trials();
    on_gpu.splice(1..1, opencl::trials());
    libtest_mimic::run(&Arguments::from_args(), on_gpu).exit_code()
}
