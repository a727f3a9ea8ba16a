//! Each of these breaks one rule of a kernel's signature.

use cuda_std::kernel;

#[kernel]
fn safe() {}

#[kernel]
unsafe fn returns(x: u32) -> u32 {
    x
}

#[kernel]
unsafe fn generic<T: Copy>(_x: *const T) {}

#[kernel]
unsafe fn generic_constant<const N: usize>(_x: &[f32]) {}

#[kernel]
async unsafe fn asynchronous() {}

#[kernel]
unsafe extern "C" fn foreign() {}

#[kernel]
const unsafe fn constant() {}

struct Holder;

impl Holder {
    #[kernel]
    unsafe fn method(&self) {}
}

#[kernel]
unsafe fn malloc(_bytes: u64) {}

#[kernel]
unsafe fn __nv_sinf(_x: f32) {}

#[kernel]
fn two_mistakes() -> u32 {
    0
}

#[kernel]
struct NotAFunction;

fn main() {}
