//! The gated unit of a feed-forward layer, `silu(A * B1) * (A * B2)`, in one launch, and what two
//! products take, of which another kernel would have to make one matrix: on a GPU of compute
//! capability 9.0, or on the simulator.
//!
//! ```sh
//! cargo run --release -p gpu_gemm --example swiglu -- 4096 14336 4096
//! ```

use std::error::Error;
use std::time::Instant;

use gpu_gemm::gpu_kernels::epilogue::{Compiled, Gated, Silu};
use gpu_gemm::{
    Bf16, Context, Device, DeviceChoice, GemmError, Input, WORKSPACE, gemm_gated,
    gemm_strided_batched,
};

const RUNS: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    let [m, n, k] = match sizes[..] {
        [m, n, k] => [m, n, k],
        [] => [200, 264, 72],
        _ => return Err("the arguments are m, n and k".into()),
    };
    let opened = Device::open(DeviceChoice::Auto)?;
    println!("{}: {}", opened.device.description(), opened.reason);
    let context = Context::new(&opened.device, WORKSPACE)?;

    // A is m x k. Both matrices B are stored as their transposes, one after the other: 2 * n x k.
    let (a, b) = (random(m * k, 1), random(2 * n * k, 2));
    let (on_a, on_b) = (context.upload(&a)?, context.upload(&b)?);
    let mut c = context.allocate::<Bf16>(m * n)?;
    let mut products = context.allocate::<Bf16>(2 * m * n)?;
    let transposed = || Input::from(&on_b).transposed();
    let alpha = 4.0 / (k as f32).sqrt();
    let mut gated = || {
        let (kernels, gate) = (Compiled::kernels(), Gated(Silu));
        // SAFETY: the buffers live until `download` has waited for the product, and nothing else
        // touches them.
        unsafe {
            gemm_gated(
                &context,
                kernels,
                gate,
                alpha,
                &on_a,
                k,
                transposed(),
                k,
                n * k,
                0.0,
                &mut c,
                n,
                m,
                n,
                k,
            )
        }
    };
    let mut both = || {
        // SAFETY: as above.
        unsafe {
            gemm_strided_batched(
                &context,
                alpha,
                &on_a,
                k,
                0,
                transposed(),
                k,
                n * k,
                0.0,
                &mut products,
                n,
                m * n,
                m,
                n,
                k,
                2,
            )
        }
    };
    let time = |multiply: &mut dyn FnMut() -> Result<(), GemmError>| {
        multiply()?;
        context.synchronize()?;
        let is_slow = opened.device.is_simulator();
        let runs = if is_slow { 1 } else { RUNS };
        let started = Instant::now();
        for _ in 0..runs {
            multiply()?;
        }
        context.synchronize()?;
        Ok::<f64, GemmError>(started.elapsed().as_secs_f64() / runs as f64)
    };
    for (name, seconds) in [
        ("the gated unit", time(&mut gated)?),
        ("its two products alone", time(&mut both)?),
    ] {
        let tflops = 4e-12 * (m * n * k) as f64 / seconds;
        let us = seconds * 1e6;
        println!("{name}, {m} x {n} x {k}: {us:.1} us, {tflops:.1} TFLOP/s");
    }

    let got = context.download(&c)?;
    let mut worst = 0.0f64;
    for place in (0..m * n).step_by((m * n / 1000).max(1) | 1) {
        let sum = |matrix: usize| {
            let (row, column) = (place / n, matrix * n + place % n);
            let term = |i: usize| f64::from(a[row * k + i]) * f64::from(b[column * k + i]);
            f64::from(alpha) * (0..k).map(term).sum::<f64>()
        };
        let (gate, up) = (sum(0), sum(1));
        let right = gate / (1.0 + (-gate).exp()) * up;
        let off = (f64::from(got[place]) - right).abs();
        worst = worst.max(off / (gate.abs() + 1.0) / (up.abs() + 1.0));
    }
    println!("off by up to {worst:.1e} of (1 + |A * B1|) * (1 + |A * B2|)");
    // Half of the last bit of a bf16, and some for the sums.
    match worst < 1.1 / 256.0 {
        true => Ok(()),
        false => Err("C is wrong".into()),
    }
}

/// Numbers between -1 and 1.
fn random(count: usize, seed: u64) -> Vec<Bf16> {
    let mut state = seed;
    let mut number = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(seed);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| Bf16::from_f32(number())).collect()
}
