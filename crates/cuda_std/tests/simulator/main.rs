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
mod warp_specialized;
mod wgmma;
