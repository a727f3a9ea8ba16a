//! Instances of a generic kernel that are not.

use cuda_std::kernel;

#[kernel(instantiate(scale_f32 = scale::<f32>))]
unsafe fn not_generic(_x: f32) {}

#[kernel(instantiate())]
unsafe fn none<T: Copy>(_x: T) {}

#[kernel(instantiate(another = others::<f32>))]
unsafe fn another_name<T: Copy>(_x: T) {}

#[kernel(instantiate(chosen = nothing_chosen))]
unsafe fn nothing_chosen<T: Copy>(_x: T) {}

#[kernel(instantiate(chosen = too_few::<f32>))]
unsafe fn too_few<T: Copy, const N: usize>(_x: [T; N]) {}

#[kernel(instantiate(length = associated::<u8>))]
unsafe fn associated<T: Iterator>(_x: T::Item) {}

#[kernel(instantiate(of_text = unfit::<str>))]
unsafe fn unfit<T: Copy>(_x: *const T) {}

#[kernel]
unsafe fn hidden(_x: impl Copy) {}

#[kernel(instantiate(one = twice::<u8>), instantiate(two = twice::<u16>))]
unsafe fn twice<T: Copy>(_x: T) {}

#[kernel(instantiate(free = named::<u8>))]
unsafe fn named<T: Copy>(_x: *const T) {}

fn main() {}
