//! The OpenCL C that the book shows beside the generated one multiplies.

use std::process::ExitCode;
use std::ptr;

use book::repository::{at_root, read};
use libtest_mimic::{Arguments, Failed, Trial};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, Device};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;

const TILE: usize = 16;

fn main() -> ExitCode {
    let device = first_device();
    if device.is_none() {
        println!("ignored here: there is no device of OpenCL");
    }
    let is_ignored = device.is_none();
    let trial = Trial::test("tiled_multiplies_at_edges_and_within_them", move || {
        let device = device.ok_or("no device of OpenCL")?;
        // Exact tiles; edges along each dimension; less than a tile.
        for (m, n, k) in [(32, 48, 16), (33, 20, 50), (3, 5, 7)] {
            multiplies(&device, m, n, k)?;
        }
        Ok(())
    });
    let trials = vec![trial.with_ignored_flag(is_ignored)];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn first_device() -> Option<Device> {
    let platforms = get_platforms().ok()?;
    let mut ids = platforms
        .iter()
        .filter_map(|platform| platform.get_devices(CL_DEVICE_TYPE_ALL).ok())
        .flatten();
    ids.next().map(Device::new)
}

fn multiplies(device: &Device, m: usize, n: usize, k: usize) -> Result<(), Failed> {
    let a: Vec<f32> = (0..m * k).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i * 5 % 13) as f32 - 6.0).collect();
    let context = Context::from_device(device)?;
    let source = read(&at_root("docs/opencl/tiled.cl"))?;
    let mut program = Program::create_from_source(&context, &source)?;
    if program.build(&[device.id()], "-Werror").is_err() {
        return Err(program.get_build_log(device.id())?.into());
    }
    let kernel = Kernel::create(&program, "tiled")?;
    let mut c = vec![f32::NAN; m * n];
    // SAFETY: the arguments are the kernel's parameters, in their order, and the buffers have the
    // elements that it accesses and live until the queue is done.
    unsafe {
        let queue = CommandQueue::create_with_properties(&context, device.id(), 0, 0)?;
        let buffer = |values: &[f32]| -> Result<Buffer<f32>, Failed> {
            let mut buffer =
                Buffer::create(&context, CL_MEM_READ_WRITE, values.len(), ptr::null_mut())?;
            queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, values, &[])?;
            Ok(buffer)
        };
        let (on_a, on_b, on_c) = (buffer(&a)?, buffer(&b)?, buffer(&c)?);
        ExecuteKernel::new(&kernel)
            .set_arg(&(m as u32))
            .set_arg(&(n as u32))
            .set_arg(&(k as u32))
            .set_arg(&on_a)
            .set_arg(&on_b)
            .set_arg(&on_c)
            .set_global_work_sizes(&[n.next_multiple_of(TILE), m.next_multiple_of(TILE)])
            .set_local_work_sizes(&[TILE, TILE])
            .enqueue_nd_range(&queue)?;
        queue.enqueue_read_buffer(&on_c, CL_BLOCKING, 0, &mut c, &[])?;
    }
    for (at, &c) in c.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let expected: f32 = (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
        // Small integers: exact in any order.
        if c != expected {
            return Err(format!("{m} x {n} x {k}: C[{row}][{col}] is {c}, not {expected}").into());
        }
    }
    Ok(())
}
