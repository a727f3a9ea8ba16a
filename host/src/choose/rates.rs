//! How fast kernels and a GPU are: the numbers that [`super::model`] predicts with. Kernels' were measured on one H200 (132
//! multiprocessors at 1980 MHz); other GPUs are taken to differ by their multiply-adds and by their memory.

use gpu_kernels::spec::Variant;

use crate::device::driver::Properties;
use crate::element::DataType;
use crate::gpu::Gpu;

/// How fast a kernel is where nothing but its own instructions holds it up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Operations a second of an H200 whose multiprocessors all hold as many blocks as fit, edges not counted.
    pub flops_per_s: f64,
    /// The share of a multiprocessor's speed that one block alone reaches, were there no end to how many it holds.
    pub alone: f64,
}

/// Schedulers of a multiprocessor, which its warps are dealt to.
const SCHEDULERS: u64 = 4;

/// The kernels that are ever worth choosing, by variant.
const SPEEDS: [(&str, Speed); 20] = [
    ("async-pipeline", speed(56.5, 0.68)),
    ("async-pipeline-edges", speed(54.0, 0.68)),
    ("async-pipeline-64x64", speed(51.0, 0.66)),
    ("async-pipeline-64x64-edges", speed(48.0, 0.66)),
    ("async-pipeline-64x64-nn", speed(42.0, 0.66)),
    ("async-pipeline-64x64-odd", speed(41.0, 0.66)),
    ("async-pipeline-32x32-odd", speed(26.0, 0.50)),
    ("async-pipeline-64x128-nn", speed(46.0, 0.66)),
    ("async-pipeline-32x128-nn", speed(42.0, 0.62)),
    ("async-pipeline-32x128-nt", speed(36.0, 0.62)),
    ("async-pipeline-16x128-nn", speed(34.0, 0.65)),
    ("async-pipeline-16x128-nt", speed(28.0, 0.65)),
    ("async-pipeline-8x128-nn", speed(14.0, 0.25)),
    ("wide-patch", speed(57.3, 0.68)),
    // Their own instructions never hold these up: guessed from what they have on its way of B.
    ("few-rows-1", speed(3.2, 0.3)),
    ("few-rows-4", speed(12.0, 0.3)),
    // Those of the README's table, for GPUs without asynchronous copies.
    ("double-buffer-sn8", speed(51.0, 0.65)),
    ("double-buffer-sn16", speed(51.5, 0.65)),
    ("double-buffer-sn8-block8", speed(48.0, 0.30)),
    ("warp-tiled", speed(51.0, 0.65)),
];

const fn speed(tflops: f64, alone: f64) -> Speed {
    Speed {
        flops_per_s: tflops * 1e12,
        alone,
    }
}

impl Speed {
    /// That of a variant, if it may be chosen.
    pub fn of(variant: &Variant) -> Option<Speed> {
        let mut speeds = SPEEDS.iter();
        let measured = speeds.find(|(name, _)| *name == variant.name);
        measured.map(|(_, speed)| *speed)
    }

    /// What each of `blocks` of so many warps gets of a multiprocessor's speed that holds `resident` at most.
    pub fn share(self, blocks: u64, resident: u64, warps: u64) -> f64 {
        let resident = resident.max(1);
        let blocks = blocks.clamp(1, resident);
        // Each finds as large a share of the issue slots free as those before it left of theirs.
        let filled = |blocks: u64| 1.0 - (1.0 - self.alone).powf(blocks as f64);
        let together = filled(blocks) / filled(resident);
        // All wait for those on the scheduler that has most warps.
        let on_scheduler = (blocks * warps).div_ceil(SCHEDULERS);
        together * warps as f64 / (on_scheduler * SCHEDULERS) as f64
    }
}

/// Where kernels run: what is known of a GPU, relative to what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The multiply-adds a second of a multiprocessor, relative to those of an H200's.
    pub multiprocessor: f64,
    /// Bytes a second that kernels get from memory, and from the L2, all multiprocessors together.
    pub memory_bytes_per_s: f64,
    pub l2_bytes_per_s: f64,
}

/// Of an H200: lanes and clock of a multiprocessor, and the memory's speed by its data sheet.
const LANES_TIMES_MHZ: f64 = 128.0 * 1980.0;
const SHEET_BYTES_PER_S: f64 = 4.8e12;
const MULTIPROCESSORS: f64 = 132.0;

impl Rates {
    /// As measured.
    pub const H200: Rates = Rates {
        multiprocessor: 1.0,
        memory_bytes_per_s: 4.0e12,
        l2_bytes_per_s: 5.5e12,
    };

    /// Of another GPU: what its data sheet would lead to if it were an H200 but for that.
    pub fn of(gpu: &Gpu) -> Rates {
        let lanes = gpu.capability.lanes(DataType::F32);
        let multiprocessor = f64::from(lanes) * f64::from(gpu.clock_mhz) / LANES_TIMES_MHZ;
        let memory = gpu.bandwidth_bytes_per_s / SHEET_BYTES_PER_S;
        let size = f64::from(gpu.multiprocessors) / MULTIPROCESSORS;
        let clock = f64::from(gpu.clock_mhz) / 1980.0;
        Rates {
            multiprocessor,
            memory_bytes_per_s: Rates::H200.memory_bytes_per_s * memory,
            l2_bytes_per_s: Rates::H200.l2_bytes_per_s * size * clock,
        }
    }

    /// Of the GPU that the driver describes; of a capability that is not known here, as if it were an H200 with as many
    /// multiprocessors.
    pub fn of_device(properties: &Properties) -> Rates {
        Gpu::of(properties).map_or(Rates::H200, |gpu| Rates::of(&gpu))
    }

    /// Operations a second of a kernel on one multiprocessor that is full.
    pub fn of_multiprocessor(&self, speed: Speed) -> f64 {
        speed.flops_per_s / MULTIPROCESSORS * self.multiprocessor
    }
}

/// Seconds from the end of a kernel to the start of the next one on the stream.
pub const LAUNCH: f64 = 2.5e-6;
/// Seconds that a block takes for a tile beside its steps and beside writing it: until the first data are there.
pub const TILE: f64 = 0.7e-6;
/// Seconds that `fix_up` takes for each [`AT_ONCE`](gpu_kernels::fix_up::AT_ONCE) parts of a tile that a group of its threads adds: it waits for
/// them.
pub const ROUND: f64 = 1.8e-6;
/// Of the memory's speed, what copies of A and B into another layout reach.
pub const PACKING: f64 = 0.7;
/// Multiprocessors that together ask for as much as the memory gives, as a share of all.
pub const SATURATION: f64 = 0.4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Capability;
    use gpu_kernels::spec::Grid;

    #[test]
    fn every_measured_variant_is_one_of_the_ladder_and_every_streaming_one_is_measured() {
        let variants = || {
            gpu_kernels::KERNELS
                .iter()
                .flat_map(|kernel| kernel.variants)
        };
        for (name, _) in SPEEDS {
            assert!(variants().any(|variant| variant.name == name), "{name}");
        }
        for variant in variants().filter(|variant| variant.grid == Grid::Streams) {
            let measured = SPEEDS.iter().any(|(name, _)| *name == variant.name);
            assert!(measured, "{}", variant.name);
        }
    }

    #[test]
    fn blocks_share_a_multiprocessor_and_one_alone_does_not_fill_it() {
        let speed = speed(54.0, 0.6);
        assert!((speed.share(1, 2, 4) - 0.6 / 0.84).abs() < 1e-12);
        assert_eq!(speed.share(2, 2, 4), 0.5);
        assert_eq!(speed.share(1, 1, 4), 1.0);
        // No more than fit.
        assert_eq!(speed.share(5, 2, 4), 0.5);
        // Five blocks of two warps: on two of the four schedulers there are three.
        assert_eq!(speed.share(5, 5, 2), 1.0 / 6.0);
    }

    #[test]
    fn another_gpu_is_as_fast_as_its_lanes_its_clock_and_its_memory() {
        let gpu = |capability, multiprocessors, clock_mhz, bandwidth| Gpu {
            name: String::new(),
            capability: Capability::of(capability).unwrap(),
            multiprocessors,
            clock_mhz,
            bandwidth_bytes_per_s: bandwidth,
        };
        assert_eq!(Rates::of(&gpu((9, 0), 132, 1980, 4.8e12)), Rates::H200);
        // An A100 has half the lanes.
        let a100 = Rates::of(&gpu((8, 0), 108, 1410, 2.4e12));
        assert!((a100.multiprocessor - 0.5 * 1410.0 / 1980.0).abs() < 1e-12);
        assert_eq!(a100.memory_bytes_per_s, 2.0e12);
    }
}
