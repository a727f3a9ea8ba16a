//! Launch bounds that are not.

use cuda_std::kernel;

#[kernel(max_thread = 256)]
unsafe fn misspelt() {}

#[kernel(max_threads = 256, max_threads = 128)]
unsafe fn twice() {}

#[kernel(max_threads)]
unsafe fn without_a_value() {}

#[kernel(max_threads = "256")]
unsafe fn not_a_number() {}

fn main() {}
