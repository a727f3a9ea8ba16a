//! What errors are planted in, and which tests must notice them.

/// Sources that are built together, and the tests that are run on them.
pub struct Scope {
    pub name: &'static str,
    /// The package that they belong to.
    pub package: &'static str,
    /// Folders, relative to the root of the repository.
    pub sources: &'static [&'static str],
    /// For the build.
    pub environment: &'static [(&'static str, &'static str)],
    pub tests: &'static [Program],
}

/// A test program, by its package and its target.
pub struct Program {
    pub package: &'static str,
    pub target: &'static str,
    /// Tests whose names begin with this.
    pub begin: &'static str,
}

const fn program(package: &'static str, target: &'static str, begin: &'static str) -> Program {
    Program {
        package,
        target,
        begin,
    }
}

pub const SCOPES: &[Scope] = &[
    // On the simulator; PTX would be compiled from the same text, and is tested for what it says
    // elsewhere.
    Scope {
        name: "kernels",
        package: "gpu-kernels",
        sources: &["gpu-kernels/src"],
        environment: &[("GEMM_NO_PTX", "1")],
        tests: &[
            program("gpu-kernels", "parts", ""),
            program("gpu-kernels", "ladder", ""),
            program("gpu_gemm", "gpu_gemm", ""),
            program("host", "host", "verify::"),
            program("tests", "barriers", "simulator::"),
            program("tests", "copies", ""),
            program("tests", "divisions", ""),
            program("tests", "fix_up", ""),
            program("tests", "gemm", "simulator::"),
            program("tests", "library", "simulator::"),
            program("tests", "reads", "simulator::"),
        ],
    },
    Scope {
        name: "host",
        package: "host",
        sources: &["host/src/verify", "host/src/prove", "host/src/measure"],
        environment: &[],
        tests: &[
            program("host", "host", ""),
            program("host", "fake_gpu", ""),
            program("host", "opencl", ""),
            program("host", "program", "cli::"),
            program("host", "program", "files::"),
            program("host", "program", "bench::"),
        ],
    },
];

/// Tests that are not run on mutants, by parts of their names: with all the conditions in them the
/// kernels are ten times as slow, and these claims go over more of the same.
pub const TOO_SLOW: &[&str] = &[
    "is_proven_on_awkward_shapes",
    "sides_that_16_bits_cannot_count",
    // Each would take minutes.
    "warpgroup",
    "warp_specialized",
    "persistent",
    "split_fp32",
    // Two of the four that the simulator runs have both layouts of A and of B, both types and both
    // kinds of C: `tensor_core_bf16` and `tensor_core_tt_f16_f32`.
    "tensor_core_nt",
    "tensor_core_tn",
];

/// Not mutated: tests, how many steps a progress bar has, and what only [`TOO_SLOW`] tests run.
pub const LEFT_OUT: &[&str] = &[
    "host/src/verify/tests.rs",
    "host/src/prove/steps.rs",
    "gpu-kernels/src/warpgroup.rs",
    "gpu-kernels/src/warp_specialized.rs",
    "gpu-kernels/src/persistent.rs",
    "gpu-kernels/src/warp_specialized_tf32.rs",
    "gpu-kernels/src/warp_specialized_fp64.rs",
    "gpu-kernels/src/split_fp32.rs",
    "gpu-kernels/src/mapped_gemm.rs",
    "gpu-kernels/src/half.rs",
];

/// Calls on this are not mutated: a progress bar shows them.
pub const SHOWS_PROGRESS: &str = "progress.";
