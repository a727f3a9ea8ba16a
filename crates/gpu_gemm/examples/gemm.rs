//! Calls the library for a product, then for the same product with a transposed matrix: on a GPU,
//! or on the simulator if there is no GPU.
//!
//! ```sh
//! cargo run --release -p gpu_gemm --example gemm
//! ```

use std::error::Error;

use gpu_gemm::{Context, Device, DeviceChoice, Input, WORKSPACE, gemm};

fn main() -> Result<(), Box<dyn Error>> {
    let opened = Device::open(DeviceChoice::Auto)?;
    println!("{}: {}", opened.device.description(), opened.reason);
    let context = Context::new(&opened.device, WORKSPACE)?;

    // A[i][l] = i % 8 + l % 8, B[l][j] = l % 8 - j % 8: small integers, so that every sum is exact.
    let (m, n, k) = (300, 200, 100);
    let a_host: Vec<f32> = (0..m * k)
        .map(|at| (at / k % 8 + at % k % 8) as f32)
        .collect();
    let b_host: Vec<f32> = (0..k * n)
        .map(|at| (at / n % 8) as f32 - (at % n % 8) as f32)
        .collect();
    let (a, b) = (context.upload(&a_host)?, context.upload(&b_host)?);
    // C is not read, since beta is 0.
    let mut c = context.upload(&vec![f32::NAN; m * n])?;

    // C = A * B, all row-major: a leading dimension is the length of a row.
    // SAFETY: the buffers live until `download` has waited for the product, and nothing else
    // touches them.
    unsafe { gemm(&context, 1.0, &a, k, &b, n, 0.0, &mut c, n, m, n, k)? };
    let c_host = context.download(&c)?;

    let (row, column) = (m - 1, n / 2);
    let at = row * n + column;
    let expected: f32 = (0..k)
        .map(|l| a_host[row * k + l] * b_host[l * n + column])
        .sum();
    println!("C[{row}][{column}] = {}, expected {expected}", c_host[at]);

    // C = A * (B^T)^T + 2 * C, with B^T, n x k, in memory: its rows are k long.
    let transposed: Vec<f32> = (0..n * k).map(|at| b_host[at % k * n + at / k]).collect();
    let transposed = context.upload(&transposed)?;
    let b_again = Input::from(&transposed).transposed();
    // SAFETY: as above.
    unsafe { gemm(&context, 1.0, &a, k, b_again, k, 2.0, &mut c, n, m, n, k)? };
    let c_host = context.download(&c)?;
    println!(
        "C[{row}][{column}] = {}, expected {}",
        c_host[at],
        3.0 * expected
    );
    Ok(())
}
