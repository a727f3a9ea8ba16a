//! What errors are planted in, and which tests must notice them.

/// Sources that are built together, and the tests that are run on them.
pub struct Scope {
    pub name: &'static str,
    /// The package that they belong to.
    pub package: &'static str,
    /// Folders and files, relative to the root of the repository.
    pub sources: &'static [&'static str],
    /// For the build.
    pub environment: &'static [(&'static str, &'static str)],
    /// The packages whose tests are built.
    pub tested: &'static [&'static str],
}

/// A test program, and what it is asked to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Test {
    pub package: String,
    pub target: String,
    /// Part of the names of the tests that are run; if empty, all are.
    pub filter: String,
}

/// In this order they are built.
pub const SCOPES: &[Scope] = &[
    // On the simulator; PTX would be compiled from the same text, and is tested for what it says
    // elsewhere.
    Scope {
        name: "kernels",
        package: "gpu-kernels",
        sources: &["gpu-kernels/src"],
        environment: &[("GEMM_NO_PTX", "1")],
        tested: &["gpu-kernels", "gpu_gemm", "host", "tests"],
    },
    Scope {
        name: "host",
        package: "host",
        sources: &["host/src/verify", "host/src/prove", "host/src/measure"],
        environment: &[],
        tested: &["host"],
    },
];

/// Tests that are not run on mutants, by parts of their names: with all the conditions in them the
/// kernels are ten times as slow, and these claims go over more of the same.
pub const TOO_SLOW: &[&str] = &[
    "is_proven_on_awkward_shapes",
    "sides_that_16_bits_cannot_count",
];

/// Not mutated: tests.
pub const LEFT_OUT: &[&str] = &["host/src/verify/tests.rs"];

/// The tests that are run on a mutant of `file`, those that notice most in the least time first.
pub fn tests_of(file: &str) -> Vec<Test> {
    let test = |package: &str, target: &str, filter: &str| Test {
        package: package.to_owned(),
        target: target.to_owned(),
        filter: filter.to_owned(),
    };
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let stem = name.trim_end_matches(".rs");
    match folder {
        "gpu-kernels/src" => {
            let gemm = |filter: &str| test("tests", "gemm", &format!("simulator::{filter}"));
            let reads = |filter: &str| test("tests", "reads", &format!("simulator::{filter}"));
            let library = test("tests", "library", "simulator::");
            match stem {
                "lib" | "spec" | "kernel" => vec![
                    test("gpu-kernels", "ladder", ""),
                    test("gpu_gemm", "gpu_gemm", ""),
                    library,
                ],
                "fix_up" | "stream_k" | "transpose" => vec![
                    test("gpu-kernels", "ladder", ""),
                    test("tests", "fix_up", ""),
                    library,
                    reads("async"),
                    gemm("few_rows_1::"),
                ],
                "tile_loader" => vec![
                    gemm("async_pipeline_64x64::"),
                    gemm("async_pipeline_32x128_nt::is_exact"),
                    gemm("async_pipeline_8x128_nn::is_exact"),
                    reads("async"),
                    library,
                ],
                "reference" => vec![test("host", "host", "verify::")],
                // What all kernels are made of: those stand for them that use the most of it.
                "accumulator" | "compat" | "element" | "float4" | "gemm" | "raster" => vec![
                    test("gpu-kernels", "ladder", ""),
                    gemm("naive::"),
                    gemm("naive_kahan::"),
                    gemm("tiled_16_f64::"),
                    gemm("tiled_16_i32::"),
                    gemm("vectorized_sn8::"),
                    gemm("double_buffer_sn8::"),
                    gemm("async_pipeline_64x64::"),
                    gemm("few_rows_1::"),
                    reads(""),
                ],
                // Those that one file has for several shapes of tiles differ in constants.
                "async_pipeline" => vec![
                    gemm("async_pipeline_64x64::"),
                    gemm("async_pipeline_64x64_odd::is_exact"),
                    gemm("async_pipeline_8x128_nn::is_exact"),
                    reads("async_pipeline_64x64"),
                    library,
                ],
                "few_rows" => vec![gemm(stem), reads(stem), library],
                _ => vec![gemm(stem), reads(stem)],
            }
        }
        folder => {
            let module = folder.trim_start_matches("host/src/");
            vec![
                test("host", "host", &format!("{module}::")),
                test("host", "fake_gpu", ""),
                test("host", "host", ""),
                test("host", "cli", ""),
                test("host", "files", ""),
                test("host", "bench", ""),
            ]
        }
    }
}
