//! Addresses and sizes of memory, and clocks.

use cuda_std::cfg::ComputeCapability;
use cuda_std::prelude::*;
use cuda_std::ptr::{
    AddressSpace, convert_generic_to_specific_address_space,
    convert_specific_address_space_to_generic, is_in_address_space,
};
use cuda_std::{externally_visible, gpu_only, mem, misc, shared, shared_array};

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, one_block, probe, scrambled};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        address_spaces,
        input: scrambled,
        ptx: &["isspacep.global", "isspacep.shared", "isspacep.local"],
        expected: |_, _| [1, 0, 0, 0, 1, 0, 0, 0, 1].repeat(64),
    ),
    probe!(
        converted_addresses,
        input: scrambled,
        ptx: &["cvta.to.shared.u64", "cvta.shared.u64", "cvta.to.global.u64", "cvta.global.u64"],
        expected: |_, input| input.iter().rev().copied().collect(),
    ),
    probe!(
        sizes_of_shared_memory,
        launch: Launch { dynamic_shared_bytes: 512, ..one_block(64) },
        input: scrambled,
        ptx: &["%dynamic_smem_size", "%total_smem_size"],
        expected: |_, input| input.iter().rev().flat_map(|&word| [word, 512, 1, 0]).collect(),
    ),
    probe!(
        functions_for_the_device_only,
        input: scrambled,
        ptx: &["mul.lo.u32"],
        expected: |_, input| input.iter().map(|word| word.wrapping_mul(3)).collect(),
    ),
    probe!(
        clock_goes_on,
        ptx: &["%clock64", "pmevent.mask 8"],
        expected: |_, _| [1, 0, 1].repeat(64),
    ),
];

#[kernel]
pub unsafe fn address_spaces(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let in_shared = shared_array![u32; 64].add(i);
    *in_shared = input[i];
    let mut in_local = [input[i]; 2];
    let is_in = |pointer: *const u32, space| u32::from(is_in_address_space(pointer, space));
    let start = output.add(9 * i);
    let pointers = [output.cast_const(), in_shared, in_local.as_mut_ptr()];
    for (j, pointer) in pointers.into_iter().enumerate() {
        *start.add(3 * j) = is_in(pointer, AddressSpace::Global);
        *start.add(3 * j + 1) = is_in(pointer, AddressSpace::Shared);
        *start.add(3 * j + 2) = is_in(pointer, AddressSpace::Local);
    }
}

#[kernel]
pub unsafe fn converted_addresses(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let staged = shared_array![u32; 64];
    *staged.add(63 - i) = input[i];
    thread::sync_threads(); // every word is staged
    let convert = |pointer: *mut u32, space| {
        let address = convert_generic_to_specific_address_space(pointer.cast_const(), space);
        convert_specific_address_space_to_generic(address, space)
    };
    let word = *convert(staged.add(i), AddressSpace::Shared);
    *convert(output.add(i), AddressSpace::Global).cast_mut() = word;
}

#[kernel]
pub unsafe fn sizes_of_shared_memory(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    let array = shared_array![u32; 300];
    let dynamic = shared::dynamic_shared_mem::<u32>();
    *array.add(i + 200) = input[i];
    *dynamic.add(i) = !input[i];
    thread::sync_threads(); // both are written, so neither can be optimised away
    let start = output.add(4 * i);
    *start = *array.add(263 - i) & !*dynamic.add(63 - i);
    *start.add(1) = mem::dynamic_smem_size();
    *start.add(2) = u32::from(mem::total_smem_size() >= 512 + 4 * 300);
    *start.add(3) = mem::total_smem_size() % 128;
}

#[kernel]
pub unsafe fn clock_goes_on(_input: &[u32], output: *mut u32) {
    let start = output.add(3 * thread::thread_idx_x() as usize);
    let before = misc::clock();
    misc::profiler_counter(3);
    *start = u32::from(before > 0);
    *start.add(1) = u32::from(misc::clock() < before);
    let compiled_for = ComputeCapability::from_cuda_arch_env();
    *start.add(2) = u32::from(compiled_for >= ComputeCapability::Compute75);
}

/// Inline PTX, which a CPU cannot run.
#[gpu_only]
fn three_times(x: u32) -> u32 {
    let product;
    // SAFETY: the instruction only multiplies.
    unsafe {
        core::arch::asm!("mul.lo.u32 {:e}, {:e}, 3;", out(reg) product, in(reg) x);
    }
    product
}

#[kernel]
pub unsafe fn functions_for_the_device_only(input: &[u32], output: *mut u32) {
    let i = thread::thread_idx_x() as usize;
    *output.add(i) = match cfg!(cuda_device) {
        true => three_times(input[i]),
        false => offered_to_other_ptx(input[i]),
    };
}

/// No kernel calls it.
#[externally_visible]
#[unsafe(no_mangle)]
pub extern "C" fn offered_to_other_ptx(x: u32) -> u32 {
    x.wrapping_mul(3)
}
