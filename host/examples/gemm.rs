//! A product on a GPU by the library call, and the same with a transposed matrix.
//!
//! ```sh
//! cargo run --release -p host --example gemm
//! ```

use std::error::Error;

use host::blas::{self, Context, Operand};
use host::device::{CudaDevice, DeviceError};

fn main() -> Result<(), Box<dyn Error>> {
    match CudaDevice::open(0) {
        Ok(device) => multiply(&device),
        Err(error) if error.means_no_usable_gpu() => {
            println!(
                "This example needs an NVIDIA GPU. {}",
                without_advice(&error)
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// The first sentence: what there is to do instead is for the command line.
fn without_advice(error: &DeviceError) -> String {
    let text = error.to_string();
    let first = text.split_inclusive(". ").next().unwrap_or_default();
    first.trim_end().to_string()
}

fn multiply(device: &CudaDevice) -> Result<(), Box<dyn Error>> {
    let (m, n, k) = (1000, 700, 300);
    // A[i][l] = i + l, B[l][j] = l - j: small integers, of which every sum is exact.
    let a: Vec<f32> = (0..m * k)
        .map(|at| (at / k % 8 + at % k % 8) as f32)
        .collect();
    let b: Vec<f32> = (0..k * n)
        .map(|at| (at / n % 8) as f32 - (at % n % 8) as f32)
        .collect();

    let context = Context::new(device, blas::WORKSPACE)?;
    let a_on_gpu = context.upload(&a)?;
    let b_on_gpu = context.upload(&b)?;
    // Nobody reads what is in C, since beta is 0.
    let mut c_on_gpu = context.upload(&vec![f32::NAN; m * n])?;

    // C = A * B, all row-major: a leading dimension is the length of a row.
    // SAFETY: the buffers live until `download` has waited for the product, and nothing else touches them.
    unsafe {
        blas::gemm(
            &context,
            1.0,
            &a_on_gpu,
            k,
            &b_on_gpu,
            n,
            0.0,
            &mut c_on_gpu,
            n,
            m,
            n,
            k,
        )?
    };
    let c = context.download(&c_on_gpu)?;

    let (row, column) = (m - 1, n / 2);
    let expected: f32 = (0..k).map(|l| a[row * k + l] * b[l * n + column]).sum();
    println!(
        "C[{row}][{column}] = {}, expected {expected}",
        c[row * n + column]
    );

    // C = A * (B^T)^T + 2 * C, with B^T, n x k, in memory: its rows are k long.
    let transposed: Vec<f32> = (0..n * k).map(|at| b[at % k * n + at / k]).collect();
    let transposed_on_gpu = context.upload(&transposed)?;
    let b_again = Operand::from(&transposed_on_gpu).transposed();
    // SAFETY: as above.
    unsafe {
        blas::gemm(
            &context,
            1.0,
            &a_on_gpu,
            k,
            b_again,
            k,
            2.0,
            &mut c_on_gpu,
            n,
            m,
            n,
            k,
        )?
    };
    let c = context.download(&c_on_gpu)?;
    println!(
        "C[{row}][{column}] = {}, expected {}",
        c[row * n + column],
        3.0 * expected
    );
    Ok(())
}
