//! `gemm-mpi`: see `distributed::program`.

use std::process::ExitCode;

use distributed::aligned::{Aligned, keep_memory};

#[global_allocator]
static ALLOCATOR: Aligned = Aligned;

fn main() -> ExitCode {
    keep_memory();
    distributed::program::main()
}
