//! Launch bounds, clusters and register limits that are not.

use cuda_std::kernel;

#[kernel(max_thread = 256)]
unsafe fn misspelt() {}

#[kernel(max_threads = 256, max_threads = 128)]
unsafe fn twice() {}

#[kernel(max_threads)]
unsafe fn without_a_value() {}

#[kernel(max_threads = "256")]
unsafe fn not_a_number() {}

#[kernel(maxnreg = 64, min_blocks = 2)]
unsafe fn two_limits_of_registers() {}

#[kernel(cluster_dim = 2)]
unsafe fn one_extent() {}

#[kernel(cluster_dim = (2, 1))]
unsafe fn two_extents() {}

#[kernel(cluster_dim = (2, 1, 1), cluster_dim = (2, 1, 1))]
unsafe fn two_clusters() {}

fn main() {}
