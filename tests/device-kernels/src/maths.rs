//! Mathematical functions, against this machine's.

use cuda_std::GpuFloat;
use cuda_std::prelude::*;

#[cfg(not(cuda_device))]
use crate::probe::{Probe, probe};
use crate::write;

/// 64 numbers from 1/16 to 4, as bits.
#[cfg(not(cuda_device))]
pub(crate) fn numbers() -> Vec<u32> {
    (1..=64).map(|i| (i as f32 / 16.0).to_bits()).collect()
}

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        exact_functions,
        input: numbers,
        ptx: &["sqrt.rn.f32", "fma.rn.f32", "cvt.rmi.f32.f32", "cvt.rpi.f32.f32", "cvt.rzi.f32.f32", "cvt.rni.f32.f32"],
        expected: |_, input| {
            input
                .iter()
                .flat_map(|&bits| {
                    let x = f32::from_bits(bits);
                    let fused = (f64::from(x) * f64::from(x) - 1.0) as f32;
                    [
                        x.sqrt(),
                        fused,
                        (x - 2.0).abs(),
                        x.floor(),
                        x.ceil(),
                        (-x).trunc(),
                        x.round_ties_even(),
                        x.round(),
                        if x < 2.0 { x } else { 2.0 },
                        if x > 2.0 { x } else { 2.0 },
                        x.copysign(-0.0),
                    ]
                })
                .map(f32::to_bits)
                .collect()
        },
    ),
    probe!(
        libdevice_functions,
        input: numbers,
        ulps: 8,
        expected: |_, input| {
            input
                .iter()
                .flat_map(|&bits| {
                    let x = f64::from(f32::from_bits(bits));
                    [x.exp(), x.ln(), x.sin(), x.cos(), x.tanh(), x.powf(1.5), x.powi(3)]
                })
                .map(|result| (result as f32).to_bits())
                .collect()
        },
    ),
];

#[kernel]
pub unsafe fn exact_functions(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = f32::from_bits(input[i]);
    let results = [
        GpuFloat::sqrt(x),
        GpuFloat::mul_add(x, x, -1.0),
        GpuFloat::abs(x - 2.0),
        GpuFloat::floor(x),
        GpuFloat::ceil(x),
        GpuFloat::trunc(-x),
        GpuFloat::round_ties_even(x),
        GpuFloat::round(x),
        GpuFloat::min(x, 2.0),
        GpuFloat::max(x, 2.0),
        GpuFloat::copysign(x, -0.0),
    ];
    write(results.map(f32::to_bits), output);
}

#[kernel]
pub unsafe fn libdevice_functions(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = f32::from_bits(input[i]);
    let results = [
        GpuFloat::exp(x),
        GpuFloat::ln(x),
        GpuFloat::sin(x),
        GpuFloat::cos(x),
        GpuFloat::tanh(x),
        GpuFloat::powf(x, 1.5),
        GpuFloat::powi(x, 3),
    ];
    write(results.map(f32::to_bits), output);
}
