//! Quantises two matrices to floats of 8 bits, with a scale for each 128 of a row of A and each
//! 128 x 128 of B, multiplies them, and says what that costs: on a GPU of compute capability 9.0,
//! or on the simulator.
//!
//! ```sh
//! cargo run --release -p gpu_gemm --example block_scales -- 4096 7168 2048
//! ```

use std::error::Error;
use std::time::Instant;

use gpu_gemm::gpu_kernels::epilogue::{BlockScales, Compiled};
use gpu_gemm::{Bf16, Context, Device, DeviceChoice, E4m3, Input, WORKSPACE, gemm_fused};

const SIDE: usize = BlockScales::SIDE;
const RUNS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let sizes: Vec<usize> = std::env::args()
        .skip(1)
        .map(|size| size.parse())
        .collect::<Result<_, _>>()?;
    let [m, n, k] = match sizes[..] {
        [m, n, k] => [m, n, k],
        [] => [200, 256, 512],
        _ => return Err("the arguments are m, n and k".into()),
    };
    let opened = Device::open(DeviceChoice::Auto)?;
    println!("{}: {}", opened.device.description(), opened.reason);
    let context = Context::new(&opened.device, WORKSPACE)?;

    // A is m x k, and B is stored as its transpose, n x k. Rows of both differ in size.
    let (a_host, b_host) = (random(m, k, 1), random(n, k, 2));
    let (a, a_scales) = quantised(&a_host, k, 1);
    let (b, b_scales) = quantised(&b_host, k, SIDE);
    let (on_a, on_b) = (context.upload(&a)?, context.upload(&b)?);
    let (of_a, of_b) = (context.upload(&a_scales)?, context.upload(&b_scales)?);
    let mut c = context.allocate::<Bf16>(m * n)?;
    let blocks = k.div_ceil(SIDE);
    let scales = BlockScales {
        a: of_a.start(),
        a_strides: [blocks, 1, 0],
        b: of_b.start(),
        b_strides: [blocks, 1, 0],
    };
    let mut multiply = || {
        let (kernels, transposed) = (BlockScales::kernels(), Input::from(&on_b).transposed());
        // SAFETY: the buffers live until `download` has waited for the product, and nothing else
        // touches them; there is a scale for each block.
        unsafe {
            gemm_fused(
                &context, kernels, scales, 1.0, &on_a, k, 0, transposed, k, 0, 0.0, &mut c, n, 0,
                m, n, k, 1,
            )
        }
    };
    multiply()?;
    context.synchronize()?;
    let runs = if opened.device.is_simulator() {
        1
    } else {
        RUNS
    };
    let started = Instant::now();
    for _ in 0..runs {
        multiply()?;
    }
    context.synchronize()?;
    let seconds = started.elapsed().as_secs_f64() / runs as f64;
    let tflops = 2e-12 * (m * n * k) as f64 / seconds;
    println!(
        "{m} x {n} x {k}: {:.1} us, {tflops:.1} TFLOP/s",
        seconds * 1e6
    );

    let got = context.download(&c)?;
    let (mut of_kernel, mut of_scales) = (0.0f64, 0.0f64);
    for place in (0..m * n).step_by((m * n / 1000).max(1) | 1) {
        let (row, column) = (place / n, place % n);
        let (mut right, mut rounded, mut size) = (0.0, 0.0, 0.0);
        for i in 0..k {
            let (x, y) = (a_host[row * k + i], b_host[column * k + i]);
            let product = f64::from(x) * f64::from(y);
            let a = a[row * k + i].to_f32() * a_scales[row * blocks + i / SIDE];
            let b = b[column * k + i].to_f32() * b_scales[column / SIDE * blocks + i / SIDE];
            right += product;
            rounded += f64::from(a) * f64::from(b);
            size += product.abs();
        }
        let value = f64::from(got[place].to_f32());
        of_kernel = of_kernel.max((value - rounded).abs() / size);
        of_scales = of_scales.max((rounded - right).abs() / size);
    }
    println!("relative to the sum of the magnitudes of an element's products:");
    println!("  rounding A and B to 8 bits changes C by up to {of_scales:.1e},");
    println!("  sums of 14 bits and a C of bf16 by up to {of_kernel:.1e}");
    match of_kernel < 1.0 / 128.0 {
        true => Ok(()),
        false => Err("C is wrong".into()),
    }
}

/// Numbers between -1 and 1, times a size that differs by row and block.
fn random(rows: usize, columns: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut number = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(seed);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let size = |place: usize| ((place / columns + place % columns / SIDE) % 9) as i32 - 4;
    let numbers = 0..rows * columns;
    numbers.map(|at| number() * 2.0f32.powi(size(at))).collect()
}

/// The elements of a matrix in 8 bits, and the scales of its blocks of `rows_of_block` rows and 128
/// columns, by rows: so that a block's largest element becomes 448, the largest number.
fn quantised(matrix: &[f32], columns: usize, rows_of_block: usize) -> (Vec<E4m3>, Vec<f32>) {
    let blocks = columns.div_ceil(SIDE);
    let rows = matrix.len() / columns;
    let block_of = |at: usize| at / columns / rows_of_block * blocks + at % columns / SIDE;
    let mut largest = vec![0.0f32; rows.div_ceil(rows_of_block) * blocks];
    for (at, element) in matrix.iter().enumerate() {
        let block = &mut largest[block_of(at)];
        *block = block.max(element.abs());
    }
    let scales: Vec<f32> = largest
        .iter()
        .map(|&x| if x > 0.0 { x / 448.0 } else { 1.0 })
        .collect();
    let elements = matrix.iter().enumerate();
    let elements = elements.map(|(at, element)| E4m3::from_f32(element / scales[block_of(at)]));
    (elements.collect(), scales)
}
