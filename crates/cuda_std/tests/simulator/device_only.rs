//! Functions that are for the device only, in the simulator.

use cuda_std::simulator::{Fault, Launch};
use cuda_std::{externally_visible, gpu_only};

#[gpu_only]
fn only_there(x: u32) -> u32 {
    let y;
    // SAFETY: it multiplies.
    unsafe {
        core::arch::asm!("mul.lo.u32 {:e}, {:e}, 3;", out(reg) y, in(reg) x);
    }
    y
}

/// For a program that links with the PTX.
#[externally_visible]
#[unsafe(no_mangle)]
pub extern "C" fn offered(x: u32) -> u32 {
    x + 1
}

#[test]
fn a_function_for_the_gpu_only_panics_by_name() {
    let fault = Launch::new(1, 1).run(|| {
        only_there(5);
    });
    let Err(Fault::Panic { message, .. }) = &fault else {
        panic!("{fault:?}");
    };
    assert!(
        message.contains("`only_there` can only be called on a GPU"),
        "{message}"
    );
}

#[test]
fn a_visible_function_can_be_called_as_any_other() {
    assert_eq!(offered(4), 5);
}
