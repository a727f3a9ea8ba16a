//! What a multiprocessor has, by compute capability.

use crate::element::DataType;

/// What a multiprocessor of a compute capability has.
///
/// From the CUDA C++ Programming Guide 12.9: the tables "Technical Specifications per Compute Capability" (limits) and
/// "Throughput of Native Arithmetic Instructions" (lanes: results of a multiply-add per cycle).
#[derive(Debug, PartialEq, Eq)]
pub struct Capability {
    pub major: i32,
    pub minor: i32,
    /// Threads that reside on a multiprocessor at most.
    pub threads: u32,
    /// Blocks that reside on a multiprocessor at most.
    pub blocks: u32,
    /// Shared memory of a multiprocessor.
    pub shared_bytes: u32,
    /// Multiply-adds of f32 per cycle.
    fp32_lanes: u32,
    /// Multiply-adds of f64 per cycle, without tensor cores.
    fp64_lanes: u32,
}

/// The capabilities that this project supports.
const CAPABILITIES: [Capability; 8] = [
    capability((7, 5), 1024, 16, 64, 64, 2),
    capability((8, 0), 2048, 32, 164, 64, 32),
    capability((8, 6), 1536, 16, 100, 128, 2),
    capability((8, 7), 1536, 16, 164, 128, 2),
    capability((8, 9), 1536, 24, 100, 128, 2),
    capability((9, 0), 2048, 32, 228, 128, 64),
    capability((10, 0), 2048, 32, 228, 128, 64),
    capability((12, 0), 1536, 24, 100, 128, 2),
];

const fn capability(
    (major, minor): (i32, i32),
    threads: u32,
    blocks: u32,
    shared_kib: u32,
    fp32_lanes: u32,
    fp64_lanes: u32,
) -> Capability {
    Capability {
        major,
        minor,
        threads,
        blocks,
        shared_bytes: shared_kib * 1024,
        fp32_lanes,
        fp64_lanes,
    }
}

impl Capability {
    /// That of this major and minor number, if it is in the table.
    pub fn of((major, minor): (i32, i32)) -> Option<&'static Capability> {
        CAPABILITIES
            .iter()
            .find(|known| (known.major, known.minor) == (major, minor))
    }

    /// Multiply-adds of an element type that a multiprocessor starts per cycle.
    pub fn lanes(&self, data_type: DataType) -> u32 {
        match data_type {
            DataType::F32 => self.fp32_lanes,
            DataType::F64 => self.fp64_lanes,
            // The same in every column of the table.
            DataType::I32 => 64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Gpu;

    /// TFLOP/s.
    fn peak_of(
        data_type: DataType,
        capability: (i32, i32),
        multiprocessors: u32,
        clock_mhz: u32,
    ) -> f64 {
        let gpu = Gpu {
            name: String::new(),
            capability: Capability::of(capability).unwrap(),
            multiprocessors,
            clock_mhz,
            bandwidth_bytes_per_s: 0.0,
        };
        gpu.peak(data_type) / 1e12
    }

    #[test]
    fn peaks_are_those_of_the_data_sheets() {
        let peak = |capability, multiprocessors, clock_mhz| {
            peak_of(DataType::F32, capability, multiprocessors, clock_mhz)
        };
        let peak_f64 = |capability, multiprocessors, clock_mhz| {
            peak_of(DataType::F64, capability, multiprocessors, clock_mhz)
        };
        for (name, peak, data_sheet) in [
            ("T4", peak((7, 5), 40, 1590), 8.1),
            ("A100", peak((8, 0), 108, 1410), 19.5),
            ("RTX 3090", peak((8, 6), 82, 1695), 35.6),
            ("RTX 4070", peak((8, 9), 46, 2475), 29.1),
            ("RTX 4090", peak((8, 9), 128, 2520), 82.6),
            ("H100 SXM", peak((9, 0), 132, 1980), 67.0),
            ("A100, f64", peak_f64((8, 0), 108, 1410), 9.7),
            ("H100 SXM, f64", peak_f64((9, 0), 132, 1980), 33.5),
        ] {
            assert!((peak - data_sheet).abs() < 0.1, "{name}: {peak}");
        }
    }

    #[test]
    fn a_capability_that_is_not_in_the_table_is_not_guessed() {
        assert_eq!(Capability::of((6, 1)), None);
        assert_eq!(Capability::of((9, 1)), None);
    }
}
