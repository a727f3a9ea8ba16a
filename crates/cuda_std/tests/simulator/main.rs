//! What a kernel may use, on the simulator. One test program for all of it: each would compile its
//! own copies of the simulator.

mod atomic;
mod barrier;
mod block;
mod cluster;
mod device_only;
mod launch;
mod mbarrier;
mod mma;
mod orders;
mod panics;
mod parameters;
mod pipeline;
mod printing;
mod published_names;
mod shared_memory;
mod time_limit;
mod tma;
mod warp;
mod wgmma;

/// Runs one of these tests in a process of its own, in which a variable has a value.
fn in_a_child(test: &str, variable: &str, value: &str) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, value)
        .output()
        .unwrap()
}
