//! The resources of a streaming multiprocessor (SM), by compute capability.

use gpu_kernels::spec::{ElementType, Unit, Variant};

/// The resources of an SM of a compute capability.
///
/// From the CUDA C++ Programming Guide 12.9: the tables "Technical Specifications per Compute
/// Capability" (limits) and "Throughput of Native Arithmetic Instructions" (lanes: results of a
/// multiply-add per cycle). The rates of tensor cores follow from the peaks in data sheets: of
/// A100, RTX 3090, Jetson AGX Orin, RTX 4090, H100, B200 and RTX 5090.
#[derive(Debug, PartialEq, Eq)]
pub struct Capability {
    pub major: i32,
    pub minor: i32,
    /// The maximum number of threads that reside on an SM.
    pub threads: u32,
    /// The maximum number of CTAs that reside on an SM.
    pub ctas: u32,
    /// Shared memory of an SM.
    pub shared_bytes: u32,
    /// Multiply-adds of f32 per cycle.
    fp32_lanes: u32,
    /// Multiply-adds of f64 per cycle, without tensor cores.
    fp64_lanes: u32,
    /// Multiply-adds of f64 and of tf32 per cycle on tensor cores; 0 without.
    fp64_tensor: u32,
    tf32_tensor: u32,
}

/// The capabilities that this project supports.
const CAPABILITIES: [Capability; 8] = [
    capability((7, 5), 1024, 16, 64, (64, 2), (0, 0)),
    capability((8, 0), 2048, 32, 164, (64, 32), (64, 512)),
    capability((8, 6), 1536, 16, 100, (128, 2), (2, 128)),
    capability((8, 7), 1536, 16, 164, (128, 2), (2, 512)),
    capability((8, 9), 1536, 24, 100, (128, 2), (2, 128)),
    capability((9, 0), 2048, 32, 228, (128, 64), (128, 1024)),
    capability((10, 0), 2048, 32, 228, (128, 64), (64, 2048)),
    capability((12, 0), 1536, 24, 100, (128, 2), (2, 128)),
];

const fn capability(
    (major, minor): (i32, i32),
    threads: u32,
    ctas: u32,
    shared_kib: u32,
    (fp32_lanes, fp64_lanes): (u32, u32),
    (fp64_tensor, tf32_tensor): (u32, u32),
) -> Capability {
    Capability {
        major,
        minor,
        threads,
        ctas,
        shared_bytes: shared_kib * 1024,
        fp32_lanes,
        fp64_lanes,
        fp64_tensor,
        tf32_tensor,
    }
}

impl Capability {
    /// The entry for this major and minor number, if it is in the table.
    pub fn of((major, minor): (i32, i32)) -> Option<&'static Capability> {
        CAPABILITIES
            .iter()
            .find(|known| (known.major, known.minor) == (major, minor))
    }

    /// Multiply-adds of an element type that an SM starts per cycle.
    pub fn lanes(&self, element: ElementType) -> u32 {
        match element {
            ElementType::F32 => self.fp32_lanes,
            ElementType::F64 => self.fp64_lanes,
            // It is the same in every column of the table.
            ElementType::I32 | ElementType::I8 => 64,
            // Twice as many, with two in an instruction; of 8 bits there are none.
            ElementType::Bf16 | ElementType::F16 | ElementType::E4m3 => 2 * self.fp32_lanes,
        }
    }

    /// The largest number of a kernel's multiply-adds that an SM starts per cycle.
    pub fn multiply_adds(&self, variant: &Variant) -> u32 {
        match (variant.unit, variant.types.a) {
            (Unit::CudaCores, _) => self.lanes(variant.types.accumulator),
            (Unit::TensorCores { .. }, ElementType::F64) => self.fp64_tensor,
            (Unit::TensorCores { .. }, ElementType::F32) => self.tf32_tensor,
            (Unit::TensorCores { .. }, ElementType::Bf16 | ElementType::F16) => {
                2 * self.tf32_tensor
            }
            (Unit::TensorCores { .. }, ElementType::I8 | ElementType::E4m3) => 4 * self.tf32_tensor,
            (Unit::TensorCores { .. }, ElementType::I32) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_that_is_not_in_the_table_is_not_guessed() {
        assert_eq!(Capability::of((6, 1)), None);
        assert_eq!(Capability::of((9, 1)), None);
    }
}
