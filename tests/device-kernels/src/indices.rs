//! The indices that identify a thread.

use cuda_std::prelude::*;

#[cfg(not(cuda_device))]
use crate::probe::{Launch, Probe, probe};

#[cfg(not(cuda_device))]
const GRID: Launch = Launch {
    grid: [3, 2, 2],
    block: [4, 3, 2],
    cluster: 1,
    dynamic_shared_bytes: 0,
};

#[cfg(not(cuda_device))]
pub(crate) static PROBES: &[Probe] = &[
    probe!(
        special_registers,
        launch: GRID,
        ptx: &["%tid.x", "%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%ntid.x", "%ntid.y", "%ntid.z",
            "%nctaid.x", "%nctaid.y", "%nctaid.z"],
        expected: |launch, _| {
            launch
                .threads()
                .flat_map(|(block, thread)| [thread, block, launch.block, launch.grid])
                .flatten()
                .collect()
        },
    ),
    probe!(
        index_vectors,
        launch: GRID,
        expected: |launch, _| {
            launch
                .threads()
                .flat_map(|(block, thread)| {
                    let [x, y, z] = [0, 1, 2].map(|i| block[i] * launch.block[i] + thread[i]);
                    let first = block == [0; 3] && thread == [0; 3];
                    [x, x, y, x, y, z, u32::from(first), 32]
                })
                .collect()
        },
    ),
];

#[kernel]
pub unsafe fn special_registers(_input: &[u32], output: *mut u32) {
    let words = [
        thread::thread_idx_x(),
        thread::thread_idx_y(),
        thread::thread_idx_z(),
        thread::block_idx_x(),
        thread::block_idx_y(),
        thread::block_idx_z(),
        thread::block_dim_x(),
        thread::block_dim_y(),
        thread::block_dim_z(),
        thread::grid_dim_x(),
        thread::grid_dim_y(),
        thread::grid_dim_z(),
    ];
    let start = output.add(thread::index() as usize * words.len());
    for (i, word) in words.into_iter().enumerate() {
        *start.add(i) = word;
    }
}

#[kernel]
pub unsafe fn index_vectors(_input: &[u32], output: *mut u32) {
    let two = thread::index_2d();
    let three = thread::index_3d();
    let words = [
        thread::index_1d(),
        two.x,
        two.y,
        three.x,
        three.y,
        three.z,
        u32::from(thread::first()),
        thread::warp_size(),
    ];
    let start = output.add(thread::index() as usize * words.len());
    for (i, word) in words.into_iter().enumerate() {
        *start.add(i) = word;
    }
}
