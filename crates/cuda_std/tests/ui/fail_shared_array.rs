//! An array in shared memory is a static, which cannot be generic.

use cuda_std::shared_array;

fn tile<const N: usize>() -> *mut f32 {
    shared_array![f32; N]
}

fn main() {
    tile::<4>();
}
