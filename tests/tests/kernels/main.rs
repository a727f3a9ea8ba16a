//! The results of kernels and of the library, on the simulator, on the GPU and with OpenCL, and the
//! PTX of the kernels. It is one program: while a test compiles, on one core, others run.

mod barriers;
mod copies;
mod cuda_std;
mod divisions;
mod epilogues;
mod fix_up;
mod gemm;
mod grouped;
mod library;
mod npy;
mod parameters;
mod problem;
mod ptx;
mod reads;
mod yardsticks;

use std::process::ExitCode;

fn main() -> ExitCode {
    reads::trespass();
    // The longest test is the first: it compiles one of each kernel, on one core.
    let of_modules = [
        ptx::trials,
        library::trials,
        divisions::trials,
        reads::trials,
        barriers::trials,
        gemm::trials,
        grouped::trials,
        epilogues::trials,
        fix_up::trials,
        copies::trials,
        cuda_std::trials,
        parameters::trials,
        npy::trials,
        yardsticks::trials,
    ];
    tests::run(of_modules.into_iter().flat_map(|trials| trials()).collect())
}
