//! The gradients of the weights in a mixture of experts: for each group of rows of A and B a
//! product along them, in one launch, on a GPU of compute capability 9.0, or on the simulator.
//!
//! ```sh
//! cargo run --release -p gpu_gemm --example grouped_along_k -- 4096 2048 8192 64
//! ```

use std::error::Error;
use std::time::Instant;

use gpu_gemm::{Bf16, Context, Device, DeviceChoice, Input, WORKSPACE, gemm_grouped_along_k};

const RUNS: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    let [m, n, k, groups] = match sizes[..] {
        [m, n, k, groups] if groups > 0 => [m, n, k, groups],
        [] => [136, 264, 600, 5],
        _ => return Err("the arguments are m, n, k and the number of groups".into()),
    };
    let opened = Device::open(DeviceChoice::Auto)?;
    println!("{}: {}", opened.device.description(), opened.reason);
    let context = Context::new(&opened.device, WORKSPACE)?;

    // The later a group, the more rows it has.
    let end = |group: usize| k * (group + 1) * (group + 1) / (groups * groups);
    let ends: Vec<i32> = (0..groups)
        .map(|group| end(group).try_into())
        .collect::<Result<_, _>>()?;
    let number = |i: usize| Bf16::from_f32((i * 37 % 17) as f32 - 8.0);
    let a: Vec<Bf16> = (0..k * m).map(number).collect();
    let b: Vec<Bf16> = (0..k * n).map(|i| number(i / 3)).collect();
    let (on_a, on_b, on_ends) = (
        context.upload(&a)?,
        context.upload(&b)?,
        context.upload(&ends)?,
    );
    let mut c = context.allocate::<Bf16>(groups * m * n)?;
    let mut multiply = || {
        let transposed = Input::from(&on_a).transposed();
        // SAFETY: the buffers live until `download` has waited for the product, nothing else
        // touches them, and the ends are in order.
        unsafe {
            gemm_grouped_along_k(
                &context,
                1.0,
                transposed,
                m,
                &on_b,
                n,
                0.0,
                &mut c,
                n,
                m * n,
                &on_ends,
                m,
                n,
                k,
                groups,
            )
        }
    };
    multiply()?;
    context.synchronize()?;
    let is_slow = opened.device.is_simulator();
    let runs = if is_slow { 1 } else { RUNS };
    let started = Instant::now();
    for _ in 0..runs {
        multiply()?;
    }
    context.synchronize()?;
    let seconds = started.elapsed().as_secs_f64() / runs as f64;
    let tflops = 2e-12 * (m * n * k) as f64 / seconds;
    let us = seconds * 1e6;
    println!("{groups} groups of {k} rows in all, C of {m} x {n}: {us:.1} us, {tflops:.1} TFLOP/s");

    // Sums of these integers are exact where a group has fewer than 2^18 rows, and then rounded.
    let got = context.download(&c)?;
    let wrong = (0..got.len())
        .step_by((got.len() / 1000).max(1) | 1)
        .filter(|&place| {
            let (group, row, column) = (place / (m * n), place / n % m, place % n);
            let rows = group.checked_sub(1).map_or(0, end)..end(group);
            let term = |i: usize| a[i * m + row].to_f32() * b[i * n + column].to_f32();
            got[place] != Bf16::from_f32(rows.map(term).sum())
        });
    match wrong.count() {
        0 => Ok(()),
        count => Err(format!("{count} elements of C are wrong").into()),
    }
}
