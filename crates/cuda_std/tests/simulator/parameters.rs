//! What a kernel says of itself holds in the simulator too.

use cuda_std::prelude::*;
use cuda_std::simulator::{Fault, Launch};

#[derive(Clone, Copy)]
#[repr(C)]
struct Shape {
    rows: u32,
    cols: u32,
}

#[kernel(instantiate(fill_u16 = fill::<u16>, fill_pairs = fill::<(u8, u8)>))]
unsafe fn fill<T: Copy>(value: T, Shape { rows, cols }: Shape, out: *mut T) {
    for i in 0..(rows * cols) as usize {
        // SAFETY: there is room for that many.
        unsafe { *out.add(i) = value };
    }
}

#[test]
fn instances_are_functions_of_their_own_types() {
    let shape = Shape { rows: 2, cols: 3 };
    let (mut numbers, mut pairs) = ([0; 6], [(0, 0); 6]);
    // SAFETY: there are six elements each.
    unsafe {
        fill_u16(7, shape, numbers.as_mut_ptr());
        fill_pairs((1, 2), shape, pairs.as_mut_ptr());
    }
    assert_eq!(numbers, [7; 6]);
    assert_eq!(pairs, [(1, 2); 6]);
}

#[kernel(cluster_dim = (2, 1, 3))]
unsafe fn clustered() {}

#[test]
fn a_grid_that_clusters_do_not_divide_is_refused() {
    // SAFETY: the kernel does nothing.
    let run = |grid: (u32, u32, u32)| Launch::new(grid, 32).run(|| unsafe { clustered() });
    assert_eq!(run((4, 5, 3)).map(|report| report.blocks), Ok(60));
    for grid in [(3, 1, 3), (2, 1, 4)] {
        let Err(Fault::InvalidLaunch(sentence)) = run(grid) else {
            panic!("a grid of {grid:?} runs");
        };
        assert!(
            sentence.contains("clusters of (2, 1, 3) blocks"),
            "{sentence}"
        );
    }
}
