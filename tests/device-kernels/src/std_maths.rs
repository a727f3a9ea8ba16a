//! The methods of `f32` and `f64` in `std`, called on the device as by a dependency that links
//! `std`.

// Provides the methods; without it, `core` has few of them.
#[cfg(cuda_device)]
extern crate std;

use cuda_std::prelude::*;

use crate::write;
#[cfg(not(cuda_device))]
use crate::{
    maths::numbers,
    probe::{Probe, probe},
};

/// Every function of a number x, and of more numbers where it takes several.
macro_rules! functions {
    ($x:ident) => {
        functions! { $x:
            sin cos tan atan sinh cosh tanh asinh exp exp2 exp_m1 ln_1p sqrt cbrt floor ceil
            round round_ties_even trunc fract signum to_degrees recip
        }
    };
    ($x:ident: $($name:ident)*) => {
        [
            $($x.$name(),)*
            ($x / 4.0).asin(),
            ($x / 4.0).acos(),
            $x.atan2(2.0),
            $x.sin_cos().0,
            (1.0 + $x).acosh(),
            ($x / 5.0).atanh(),
            (1.5 + $x).ln(),
            (1.5 + $x).log2(),
            (1.5 + $x).log10(),
            (1.5 + $x).log(3.0),
            $x.powf(1.5),
            $x.powi(-3),
            $x.hypot(3.0),
            $x.mul_add($x, -1.0),
            (-$x).abs(),
            $x.copysign(-0.0),
            ($x - 2.0).round(),
            (-$x).rem_euclid(0.75),
            (-$x).div_euclid(0.75),
            $x.min(2.0),
            $x.max(2.0),
            $x.clamp(1.0, 2.0),
        ]
    };
}

#[cfg(not(cuda_device))]
fn methods(input: &[u32]) -> Vec<u32> {
    let result = |&bits: &u32| {
        let x = f64::from(f32::from_bits(bits));
        functions!(x).map(|result| (result as f32).to_bits())
    };
    input.iter().flat_map(result).collect()
}

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        single_methods_of_std,
        input: numbers,
        ulps: 8,
        expected: |_, input| methods(input),
    ),
    probe!(
        double_methods_of_std,
        input: numbers,
        ulps: 1,
        expected: |_, input| methods(input),
    ),
];

#[kernel]
pub unsafe fn single_methods_of_std(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = f32::from_bits(input[i]);
    let results = functions!(x);
    write(results.map(f32::to_bits), output);
}

#[kernel]
pub unsafe fn double_methods_of_std(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let x = f64::from(f32::from_bits(input[i]));
    let results = functions!(x);
    write(results.map(|result| (result as f32).to_bits()), output);
}
