//! A type that does not exist is reported once.

use cuda_std::kernel;

#[kernel]
unsafe fn misspelt(m: Usize) {
    let _ = m;
}

fn main() {}
