//! y = factor * x + y and the sum of y on a GPU; without one, in the simulator.

use std::error::Error;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuda_std::simulator::{self, Fault};
use cust::prelude::*;
use kernels::BLOCK;

/// The kernels as PTX; empty if the build script had no libNVVM.
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

fn main() -> Result<(), Box<dyn Error>> {
    let x: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
    let mut y = vec![1.0; x.len()];
    let (sum, place) = match cust::quick_init() {
        Ok(_context) => {
            saxpy_on_gpu(2.0, &x, &mut y)?;
            (sum_on_gpu(&y)?, "the GPU")
        }
        Err(why) => {
            println!("There is no GPU to use: {why}");
            saxpy_in_simulator(2.0, &x, &mut y)?;
            (sum_in_simulator(&y)?, "the simulator")
        }
    };
    let right = (0..y.len()).all(|i| y[i] == 2.0 * x[i] + 1.0) && sum == 1e8;
    println!("The sum of y is {sum}.");
    println!("y[9999] = {} on {place}", y[9999]);
    if right { Ok(()) } else { Err("wrong".into()) }
}

/// The number of blocks that have a thread for each element.
fn blocks(elements: usize) -> u32 {
    (elements as u32).div_ceil(BLOCK)
}

/// The total of the blocks' sums.
fn total(sums: &[f32]) -> f64 {
    sums.iter().copied().map(f64::from).sum()
}

/// Loads the kernels onto the GPU of the current context.
fn module() -> Result<Module, Box<dyn Error>> {
    match option_env!("CUDA_BUILDER_NO_PTX") {
        Some(why) => Err(why.into()),
        None => Ok(Module::from_ptx(PTX, &[])?),
    }
}

/// Launches `saxpy` on the GPU.
fn saxpy_on_gpu(factor: f32, x: &[f32], y: &mut [f32]) -> Result<(), Box<dyn Error>> {
    assert_eq!(x.len(), y.len());
    let module = module()?;
    let saxpy = module.get_function("saxpy")?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let x_there = DeviceBuffer::from_slice(x)?;
    let y_there = DeviceBuffer::from_slice(y)?;
    // A slice is two parameters: where it begins, and how many elements it has.
    // SAFETY: these are the parameters of `saxpy`, and both buffers have x.len() elements.
    unsafe {
        launch!(saxpy<<<blocks(x.len()), BLOCK, 0, stream>>>(
            factor,
            x_there.as_device_ptr(),
            x_there.len(),
            y_there.as_device_ptr()
        ))?;
    }
    stream.synchronize()?;
    y_there.copy_to(y)?;
    Ok(())
}

/// Launches `sum` on the GPU.
fn sum_on_gpu(x: &[f32]) -> Result<f64, Box<dyn Error>> {
    let module = module()?;
    let sum = module.get_function("sum")?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?;
    let x_there = DeviceBuffer::from_slice(x)?;
    let mut sums = vec![0.0; blocks(x.len()) as usize];
    let sums_there = DeviceBuffer::from_slice(&sums)?;
    // SAFETY: these are the parameters of `sum`, and it writes an element for each block.
    unsafe {
        launch!(sum<<<blocks(x.len()), BLOCK, 0, stream>>>(
            x_there.as_device_ptr(),
            x_there.len(),
            sums_there.as_device_ptr()
        ))?;
    }
    stream.synchronize()?;
    sums_there.copy_to(&mut sums)?;
    Ok(total(&sums))
}

/// Runs the same function on the CPU, once for each thread of the launch.
fn saxpy_in_simulator(factor: f32, x: &[f32], y: &mut [f32]) -> Result<(), Fault> {
    assert_eq!(x.len(), y.len());
    // Threads on several cores share the pointer, which a plain one does not allow.
    let y = AtomicPtr::new(y.as_mut_ptr());
    simulator::Launch::new(blocks(x.len()), BLOCK).run(|| {
        // SAFETY: y has x.len() elements, and only this launch accesses them.
        unsafe { kernels::saxpy(factor, x, y.load(Ordering::Relaxed)) }
    })?;
    Ok(())
}

/// The same for `sum`, in every order of the threads.
fn sum_in_simulator(x: &[f32]) -> Result<f64, Fault> {
    let mut sums = vec![0.0; blocks(x.len()) as usize];
    // Where a barrier is missing, another order of the threads gives another sum.
    simulator::Launch::new(blocks(x.len()), BLOCK).run_in_all_orders(&mut sums, |sums| {
        // SAFETY: there is an element for each block, and only this launch accesses them.
        unsafe { kernels::sum(x, sums) }
    })?;
    Ok(total(&sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes around the boundary of a block, where an index goes wrong first.
    #[test]
    fn saxpy_updates_every_element_once() {
        for n in [1, 255, 256, 257, 1000] {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let mut y = vec![1.0; n];
            // Whichever thread runs first: the result must be the same.
            let launch = simulator::Launch::new(blocks(n), BLOCK);
            // SAFETY: y has x.len() elements, and only this launch accesses them.
            let saxpy = |y| unsafe { kernels::saxpy(2.0, &x, y) };
            launch.run_in_all_orders(&mut y, saxpy).expect("no fault");
            for (i, y) in y.iter().enumerate() {
                assert_eq!(*y, 2.0 * i as f32 + 1.0, "n = {n}, i = {i}");
            }
        }
    }

    #[test]
    fn sum_adds_every_element_once() {
        for n in [1, 255, 256, 257, 1000] {
            let x: Vec<f32> = (1..=n).map(|i| i as f32).collect();
            let sum = sum_in_simulator(&x).expect("no fault");
            assert_eq!(sum, f64::from(n * (n + 1) / 2), "n = {n}");
        }
    }
}
