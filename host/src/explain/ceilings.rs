//! The ceilings of a kernel beside those of memory and arithmetic: the loads and the instructions
//! that a streaming multiprocessor (SM) can issue.
//!
//! An SM issues at most four instructions per clock, and starts at most one load of a warp, from
//! shared memory or, through the L1, from global memory. So the instructions of a kernel's
//! mainloop limit its multiply-adds per clock, whatever its data and its number of warps.

use gpu_gemm::gpu::Gpu;
use gpu_gemm::gpu::occupancy::WARP;
use gpu_gemm::gpu_kernels::spec::{ElementType, Variant};

use super::roofline::Roofline;
use crate::listing::record::{self, Counts};

/// Instructions that an SM issues per clock: one by each of its four schedulers.
const ISSUED: f64 = 4.0;

/// Warp loads that an SM starts per clock: one word for each lane, 128 bytes.
const LOADS: f64 = 1.0;

/// The ceilings set by the instructions of the mainloop.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceilings {
    /// The architecture of the counted machine code, such as `sm_90`.
    pub architecture: &'static str,
    /// Instructions of the mainloop, the multiply-adds among them, and the loads.
    pub instructions: usize,
    pub multiply_adds: usize,
    pub shared_loads: usize,
    pub global_loads: usize,
    /// The speed if the SM only started those loads, one per clock; none without loads.
    pub loads_flops_per_s: Option<f64>,
    /// The speed if it issued four of those instructions in every clock.
    pub issue_flops_per_s: f64,
    /// `global memory`, `loads`, `instruction issue` or `arithmetic`: the lowest of all ceilings.
    pub lowest: &'static str,
    pub lowest_flops_per_s: f64,
    /// The same if every read of global memory hit a cache.
    pub lowest_cached: &'static str,
    pub lowest_cached_flops_per_s: f64,
}

impl Ceilings {
    /// The ceilings of a variant, if its machine code has been counted.
    pub(super) fn of(variant: &Variant, gpu: &Gpu, roofline: &Roofline) -> Option<Ceilings> {
        match variant.types.a {
            ElementType::F32 => Some(Ceilings::new(record::of(variant.name)?, gpu, roofline)),
            _ => None,
        }
    }

    fn new(counts: &Counts, gpu: &Gpu, roofline: &Roofline) -> Ceilings {
        let clocks_per_s = f64::from(gpu.sms) * f64::from(gpu.clock_mhz) * 1e6;
        // A multiply-add is two operations in each lane.
        let allowed = |per_clock: f64, instructions: usize| {
            let clocks = instructions as f64 / per_clock;
            counts.fmas as f64 / clocks * f64::from(2 * WARP) * clocks_per_s
        };
        let loads = counts.shared_loads + counts.global_loads;
        let loads_flops_per_s = (loads > 0).then(|| allowed(LOADS, loads));
        let issue_flops_per_s = allowed(ISSUED, counts.instructions);
        let mut lowest = ("arithmetic", roofline.peak_flops_per_s);
        let own = [
            ("loads", loads_flops_per_s.unwrap_or(f64::INFINITY)),
            ("instruction issue", issue_flops_per_s),
        ];
        for ceiling in own {
            if ceiling.1 < lowest.1 {
                lowest = ceiling;
            }
        }
        let (lowest_cached, lowest_cached_flops_per_s) = lowest;
        if roofline.attainable_flops_per_s < lowest.1 {
            lowest = ("global memory", roofline.attainable_flops_per_s);
        }
        Ceilings {
            architecture: record::ARCHITECTURE,
            instructions: counts.instructions,
            multiply_adds: counts.fmas,
            shared_loads: counts.shared_loads,
            global_loads: counts.global_loads,
            loads_flops_per_s,
            issue_flops_per_s,
            lowest: lowest.0,
            lowest_flops_per_s: lowest.1,
            lowest_cached,
            lowest_cached_flops_per_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Results;
    use crate::explain::data_sheets;
    use crate::explain::explanation::tests::explained;
    use approx::assert_relative_eq;
    use gpu_gemm::gpu_kernels::variants;

    fn ceilings(kernel: &str) -> Ceilings {
        explained(kernel).ceilings.unwrap()
    }

    /// An H200 does 128 multiply-adds per SM and clock: those of 4 warps.
    const PEAK: f64 = 132.0 * 128.0 * 2.0 * 1.98e9;

    /// Loads from shared and from global memory, and the ceilings of loads and of instructions, as
    /// shares of the peak: one load of 32 words per SM and clock, and four instructions.
    #[test]
    fn loads_and_instructions_of_the_mainloop_limit_a_kernel() {
        let (memory, loads) = (["global memory", "loads"], ["loads"; 2]);
        let issue = ["instruction issue"; 2];
        for (kernel, loads, by_loads, by_issue, lowest) in [
            // A load of A and one of B for each of 16 FMAs, 0.25 operations a byte: only caches
            // allow more than global memory.
            ("naive", (0, 32), 1.0 / 8.0, 16.0 / 93.0, memory),
            // For 32 values of k: A by float4, B by element; and an element of each one's next
            // tile.
            ("tiled-32", (40, 2), 8.0 / 42.0, 32.0 / 110.0, loads),
            // Two float4s of A and two of B for 64 FMAs.
            ("register-blocked-k8", (32, 8), 3.2, 512.0 / 747.0, issue),
            (
                "double-buffer-k8",
                (35, 1),
                32.0 / 9.0,
                512.0 / 582.0,
                issue,
            ),
        ] {
            let found = ceilings(kernel);
            assert_eq!((found.shared_loads, found.global_loads), loads, "{kernel}");
            assert_relative_eq!(found.loads_flops_per_s.unwrap(), PEAK * by_loads);
            assert_relative_eq!(found.issue_flops_per_s, PEAK * by_issue);
            assert_eq!([found.lowest, found.lowest_cached], lowest, "{kernel}");
            let cached = PEAK * f64::min(by_loads, by_issue);
            assert_relative_eq!(found.lowest_cached_flops_per_s, cached);
            let lowest = if kernel == "naive" { 1.2e12 } else { cached };
            assert_relative_eq!(found.lowest_flops_per_s, lowest, max_relative = 0.01);
        }
    }

    #[test]
    fn no_kernel_was_measured_above_its_ceilings() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/h200.json");
        let results = std::fs::read_to_string(file).unwrap();
        let results: Results = serde_json::from_str(&results).unwrap();
        let gpu = data_sheets::find("h200").unwrap();
        let mut compared = 0;
        for size in &results.sizes {
            for variant in variants() {
                // As if every read of global memory hit a cache.
                let roofline = Roofline::of(&gpu, variant, f64::INFINITY);
                let Some(ceilings) = Ceilings::of(variant, &gpu, &roofline) else {
                    continue;
                };
                let record = size.record(variant.name);
                let Some(speed) = record.and_then(|record| record.flops_per_s) else {
                    continue;
                };
                let ceiling = ceilings.lowest_cached_flops_per_s;
                assert!(speed < ceiling, "{}: {speed} of {ceiling}", variant.name);
                compared += 1;
            }
        }
        assert!(compared > 100, "{compared}");
    }
}
