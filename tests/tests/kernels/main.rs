//! The results of kernels and of the library, on the simulator, on the GPU and with OpenCL, and the
//! PTX of the kernels. It is one program: while a test compiles, on one core, others run.

mod barriers;
mod copies;
mod cuda_std;
mod epilogues;
mod fix_up;
mod gated;
mod gemm;
mod grouped;
mod library;
mod npy;
mod problem;
mod ptx;
mod reads;
mod sums;
mod yardsticks;

use std::process::ExitCode;

use libtest_mimic::Trial;

fn main() -> ExitCode {
    reads::trespass();
    // The longest test is the first: it compiles one of each kernel, on one core.
    let of_modules = [
        ptx::trials,
        library::trials,
        gemm::opencl_trials,
        reads::trials,
        barriers::trials,
        gemm::trials,
        gated::trials,
        grouped::trials,
        epilogues::trials,
        fix_up::trials,
        copies::trials,
        cuda_std::trials,
        npy::trials,
        yardsticks::trials,
    ];
    let mut all: Vec<Trial> = of_modules.into_iter().flat_map(|trials| trials()).collect();
    // PoCL compiles for one thread at a time: its tests are spread among the others of their tier.
    for is_ignored in [false, true] {
        let is_apart = |trial: &mut Trial| {
            trial.name().contains("opencl::") && trial.has_ignored_flag() == is_ignored
        };
        let apart: Vec<Trial> = all.extract_if(.., is_apart).collect();
        let step = all.len() / (apart.len() + 1);
        for (index, trial) in apart.into_iter().enumerate().rev() {
            all.insert((index + 1) * step, trial);
        }
    }
    tests::run(all)
}
