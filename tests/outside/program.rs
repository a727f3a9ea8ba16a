//! A program outside the workspace: C = A * B with the library, on the device that its argument
//! names. It fails unless every element is right.

use std::error::Error;

use gpu_gemm::{Context, Device, DeviceChoice, WORKSPACE, gemm};

fn main() -> Result<(), Box<dyn Error>> {
    let choice: DeviceChoice = std::env::args().nth(1).ok_or("which device?")?.parse()?;
    let opened = Device::open(choice)?;
    let context = Context::new(&opened.device, WORKSPACE / 16)?;
    // Small integers, so that every sum is exact.
    let (m, n, k) = (150, 130, 70);
    let a: Vec<f32> = (0..m * k).map(|at| (at % 13) as f32 - 6.0).collect();
    let b: Vec<f32> = (0..k * n).map(|at| (at % 11) as f32 - 5.0).collect();
    let (a_there, b_there) = (context.upload(&a)?, context.upload(&b)?);
    let mut c_there = context.upload(&vec![f32::NAN; m * n])?;
    // SAFETY: the buffers live until `download` has waited for the product, and nothing else
    // touches them.
    unsafe {
        gemm(
            &context,
            1.0,
            &a_there,
            k,
            &b_there,
            n,
            0.0,
            &mut c_there,
            n,
            m,
            n,
            k,
        )?
    };
    let c = context.download(&c_there)?;
    for row in 0..m {
        for column in 0..n {
            let sum: f32 = (0..k).map(|l| a[row * k + l] * b[l * n + column]).sum();
            assert_eq!(c[row * n + column], sum, "C[{row}][{column}]");
        }
    }
    println!("right on {}", opened.device.description());
    Ok(())
}
