//! Results for tests.

use super::results::{Machine, Results, SCHEMA, Size};
use crate::report::Record;
use gpu_gemm::Shape;

/// Four rungs, one of them wrong, and cuBLAS, at two sizes of an H200.
pub fn sample() -> Results {
    let size = |size: usize, scale: f64| {
        let flops = Shape::cube(size).flops();
        let cublas = 50e12 * scale;
        let wrong = Record {
            kernel: "conflict-free-k8".into(),
            dtype: "f32".into(),
            m: size,
            n: size,
            k: size,
            alpha: 1.0,
            seed: 42,
            backend: "cuda".into(),
            verification: "C[1][2] is NaN, but must be 3.".into(),
            compared_with: Some("cublas-fp32".into()),
            cublas_time_median_s: Some(flops / cublas),
            ..Record::default()
        };
        let record = |kernel: &str, speed: f64| Record {
            kernel: kernel.into(),
            passed: true,
            verification: "exact: all equal; bound: all within".into(),
            runs: Some(20),
            time_median_s: Some(flops / speed),
            time_min_s: Some(flops / speed * 0.99),
            time_max_s: Some(flops / speed * 1.02),
            time_mean_s: Some(flops / speed * 1.001),
            time_stddev_s: Some(flops / speed * 0.005),
            flops_per_s: Some(speed),
            ratio_to_cublas: Some(speed / cublas),
            ..wrong.clone()
        };
        let yardstick = |name: &str, speed: f64| Record {
            passed: false,
            verification: String::new(),
            time_min_s: Some(flops / speed * 0.98),
            time_max_s: Some(flops / speed * 1.01),
            compared_with: None,
            cublas_time_median_s: None,
            ..record(name, speed)
        };
        Size {
            yardsticks: vec![
                yardstick("cublas-fp32", cublas),
                yardstick("cublas-tf32", 300e12 * scale),
            ],
            results: vec![
                record("naive", 5e12),
                record("tiled-32", 8.5e12 * scale),
                record("tiled-16", 8e12 * scale),
                wrong.clone(),
                record("double-buffer-k8", 46.75e12 * scale),
            ],
            ..Size::of(Shape::cube(size))
        }
    };
    Results {
        schema: SCHEMA,
        machine: Machine {
            backend: "cuda".into(),
            device: "NVIDIA H200".into(),
            compute_capability: Some("9.0".into()),
            multiprocessors: Some(132),
            clock_mhz: Some(1980),
            bandwidth_bytes_per_s: Some(4.8e12),
            peak_flops_per_s: Some(66.9e12),
            cuda: Some("13.0".into()),
            driver: Some("580.159.04".into()),
            cublas: Some("13.1.0 from libcublas.so.13".into()),
        },
        sizes: vec![size(2048, 0.9), size(4096, 1.0)],
        ..Results::default()
    }
}
