//! C = softcap(A * B^T + bias) in bf16, on a GPU or, without one, in the simulator.

use std::error::Error;

use gpu_gemm::{Bf16, Context, Device, DeviceChoice, Input, gemm_fused};
use kernels::{SOFTCAP, Softcap};

/// The kernels as PTX; empty if the build script had no libNVVM.
const PTX: [&str; 2] = [
    include_str!(concat!(env!("OUT_DIR"), "/compute_80.ptx")),
    include_str!(concat!(env!("OUT_DIR"), "/compute_90a.ptx")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::open(DeviceChoice::Auto)?.device;
    // SAFETY: this PTX is the crate `kernels`.
    let device = unsafe { device.with_kernels(&PTX)? };
    let context = Context::new(&device, 0)?;

    let (m, n, k, cap) = (200, 120, 96, 30.0);
    let number = |i: usize| Bf16::from_f32((i * 37 % 17) as f32 - 8.0);
    let a: Vec<Bf16> = (0..m * k).map(number).collect();
    let b: Vec<Bf16> = (0..n * k).map(|i| number(i / 3)).collect();
    let bias: Vec<f32> = (0..n).map(|col| col as f32).collect();
    let (on_a, on_b) = (context.upload(&a)?, context.upload(&b)?);
    let on_bias = context.upload(&bias)?;
    let mut on_c = context.allocate::<Bf16>(m * n)?;
    let softcap = Softcap {
        bias: on_bias.start(),
        cap,
    };
    let b_transposed = Input::from(&on_b).transposed();
    // SAFETY: `download` waits for the product before the buffers are freed, and the bias has a
    // number for each column.
    unsafe {
        gemm_fused(
            &context, &SOFTCAP, softcap, 1.0, &on_a, k, 0, b_transposed, k, 0, 0.0, &mut on_c, n,
            0, m, n, k, 1,
        )?;
    }
    let c = context.download(&on_c)?;

    let mut worst = 0.0f32;
    for row in 0..m {
        for col in 0..n {
            let product = |i: usize| a[row * k + i].to_f32() * b[col * k + i].to_f32();
            let sum: f32 = (0..k).map(product).sum();
            let right = cap * ((sum + bias[col]) / cap).tanh();
            worst = worst.max((c[row * n + col].to_f32() - right).abs());
        }
    }
    println!("on {}: within {worst} of {cap} * tanh((A * B^T + bias) / {cap})", device.description());
    // bf16 has 8 bits: half of the last one of numbers up to 32 is 0.0625.
    if worst <= 0.0626 { Ok(()) } else { Err("wrong".into()) }
}
