//! `gemm-mpi`: see `distributed::program`.

use std::process::ExitCode;

fn main() -> ExitCode {
    distributed::program::main()
}
