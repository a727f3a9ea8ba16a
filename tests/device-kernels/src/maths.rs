//! Mathematical functions, against this machine's.

use cuda_std::prelude::*;
use cuda_std::{GpuFloat, approx};

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
        approximations,
        // From -32 to 31.5, infinities, NaN, and the smallest number.
        input: || {
            let numbers = (0..60).map(|i| (1.07 * i as f32 - 32.0).to_bits());
            numbers.chain([f32::INFINITY, f32::NEG_INFINITY, f32::NAN].map(f32::to_bits)).chain([1]).collect()
        },
        ptx: &["ex2.approx.ftz.f32", "rcp.approx.ftz.f32", "tanh.approx.f32"],
        expected: |_, _| vec![1; 192],
    ),
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

/// Whether each approximation is as near as its documentation says, one unit of rounding more or
/// less.
#[kernel]
pub unsafe fn approximations(input: &[u32], output: *mut u32) {
    let x = f32::from_bits(input[thread::thread_idx_x() as usize]);
    let is_near = |found: f32, right: f32, error: f32| {
        let is_near = GpuFloat::abs(found - right) <= error * GpuFloat::abs(right);
        u32::from(is_near || found == right || found.is_nan() && right.is_nan())
    };
    let inverse = if GpuFloat::abs(x) < f32::MIN_POSITIVE {
        f32::INFINITY
    } else {
        1.0 / x
    };
    let near = [
        is_near(approx::exp2(x), GpuFloat::exp2(x), 6.0e-7),
        is_near(approx::recip(x), inverse, 2.4e-7),
        is_near(approx::tanh(x), GpuFloat::tanh(x), 5.0e-4),
    ];
    write(near, output);
}
