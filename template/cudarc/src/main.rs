//! y = factor * x + y on a GPU, launched with cudarc.

use std::error::Error;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, sys};
use cudarc::nvrtc::Ptx;
use kernels::BLOCK;

/// The kernels as PTX; empty if the build script had no libNVVM.
const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/kernels.ptx"));

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: loading the driver's library runs its own initialisers and nothing of ours.
    if !unsafe { sys::is_culib_present() } {
        return Err("There is no NVIDIA driver on this machine.".into());
    }
    let x: Vec<f32> = (0..10_000).map(|i| i as f32).collect();
    let mut y = vec![1.0; x.len()];
    saxpy(2.0, &x, &mut y)?;
    println!("y[9999] = {} on the GPU", y[9999]);
    let right = (0..y.len()).all(|i| y[i] == 2.0 * x[i] + 1.0);
    if right { Ok(()) } else { Err("wrong".into()) }
}

/// Launches the kernel on the first GPU.
fn saxpy(factor: f32, x: &[f32], y: &mut [f32]) -> Result<(), Box<dyn Error>> {
    assert_eq!(x.len(), y.len());
    if let Some(why) = option_env!("CUDA_BUILDER_NO_PTX") {
        return Err(why.into());
    }
    let context = CudaContext::new(0)?;
    let stream = context.default_stream();
    let saxpy = context
        .load_module(Ptx::from_src(PTX))?
        .load_function("saxpy")?;
    let x_there = stream.clone_htod(x)?;
    let mut y_there = stream.clone_htod(y)?;
    let length = x.len();
    let config = LaunchConfig {
        grid_dim: ((length as u32).div_ceil(BLOCK), 1, 1),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: 0,
    };
    // A slice is two parameters: where it begins, and how many elements it has.
    // SAFETY: these are the parameters of `saxpy`, and both buffers have x.len() elements.
    unsafe {
        stream
            .launch_builder(&saxpy)
            .arg(&factor)
            .arg(&x_there)
            .arg(&length)
            .arg(&mut y_there)
            .launch(config)?;
    }
    stream.memcpy_dtoh(&y_there, y)?;
    stream.synchronize()?;
    Ok(())
}
