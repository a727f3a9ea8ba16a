//! The results of kernels and of the library, on the simulator, on the GPU and with OpenCL. It is
//! one program, since another would compile the host's functions for all element types again.

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
mod reads;
mod yardsticks;

use std::process::ExitCode;

fn main() -> ExitCode {
    reads::trespass();
    let of_modules = [
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
