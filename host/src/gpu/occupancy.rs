//! How many blocks of a kernel a multiprocessor holds at once, and what keeps it from holding more.
//!
//! The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h` of CUDA 12.9):
//!
//! - Registers are given to warps, 256 at a time, from four parts of a multiprocessor that hold 16384 each.
//! - Shared memory is given to blocks, 128 bytes at a time (256 before compute capability 8.0); from 8.0 on the system takes
//!   1 KiB more for each block.
//! - Blocks and warps that reside on a multiprocessor are limited.

use serde::Serialize;

use super::Capability;

/// Threads of a warp.
pub const WARP: u32 = 32;
/// Parts of a multiprocessor, each with registers and a scheduler of its own.
const PARTITIONS: u32 = 4;
/// 32-bit registers of a multiprocessor, on every GPU from compute capability 5.0 on.
const REGISTERS: u32 = 65_536;
/// Registers are given out in units of as many.
const REGISTER_UNIT: u32 = 256;

/// What a block needs of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    pub threads: u32,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Shared memory of the block, static and dynamic.
    pub shared_bytes: u32,
}

/// What a multiprocessor has of something, as blocks that it is enough for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    pub warps: u32,
    pub blocks: u32,
    pub registers: u32,
    /// None where a block uses no shared memory at all.
    pub shared_memory: Option<u32>,
}

/// Blocks on a multiprocessor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Occupancy {
    /// Blocks that reside on a multiprocessor; 0 if not even one fits.
    pub blocks: u32,
    /// Warps that reside on it.
    pub warps: u32,
    /// Of the warps that a multiprocessor can hold: at most 1.
    pub occupancy: f64,
    /// What allows no more blocks: one or several of `warps`, `blocks`, `registers`, `shared memory`.
    pub limited_by: Vec<&'static str>,
    pub limits: Limits,
}

impl Occupancy {
    /// For blocks with these needs.
    pub fn of(capability: &Capability, needs: Needs) -> Occupancy {
        let warps_of_block = needs.threads.div_ceil(WARP).max(1);
        let most_warps = capability.threads / WARP;
        let registers_of_warp = (needs.registers * WARP).next_multiple_of(REGISTER_UNIT);
        let warps_with_registers = match registers_of_warp {
            0 => most_warps,
            registers => PARTITIONS * (REGISTERS / PARTITIONS / registers),
        };
        let limits = Limits {
            warps: most_warps / warps_of_block,
            blocks: capability.blocks,
            registers: warps_with_registers / warps_of_block,
            shared_memory: blocks_with_shared_memory(capability, needs.shared_bytes),
        };
        let named = [
            ("warps", Some(limits.warps)),
            ("blocks", Some(limits.blocks)),
            ("registers", Some(limits.registers)),
            ("shared memory", limits.shared_memory),
        ];
        let blocks = named.iter().filter_map(|limit| limit.1).min().unwrap_or(0);
        Occupancy {
            blocks,
            warps: blocks * warps_of_block,
            occupancy: f64::from(blocks * warps_of_block) / f64::from(most_warps),
            limited_by: named
                .iter()
                .filter(|limit| limit.1 == Some(blocks))
                .map(|limit| limit.0)
                .collect(),
            limits,
        }
    }
}

/// Blocks that the shared memory of a multiprocessor is enough for; none if it is no limit.
fn blocks_with_shared_memory(capability: &Capability, bytes: u32) -> Option<u32> {
    let (reserved, unit) = match capability.major {
        8.. => (1024, 128),
        _ => (0, 256),
    };
    let of_block = (bytes + reserved).next_multiple_of(unit);
    capability.shared_bytes.checked_div(of_block)
}

/// A grid on a GPU, as its multiprocessors take it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Waves {
    /// Blocks that run at once on all multiprocessors.
    pub blocks_at_once: u64,
    /// How often as many are taken, the last time perhaps fewer.
    pub waves: u64,
    /// How full the last one is: above 0, at most 1.
    pub last: f64,
}

impl Waves {
    /// Of `blocks` blocks, of which a multiprocessor holds `resident`; none if it holds none or there are none.
    pub fn of(blocks: u64, resident: u32, multiprocessors: u32) -> Option<Waves> {
        let at_once = u64::from(resident) * u64::from(multiprocessors);
        if at_once == 0 || blocks == 0 {
            return None;
        }
        let waves = blocks.div_ceil(at_once);
        Some(Waves {
            blocks_at_once: at_once,
            waves,
            last: (blocks - (waves - 1) * at_once) as f64 / at_once as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(capability: (i32, i32), threads: u32, registers: u32, shared: u32) -> Occupancy {
        let needs = Needs {
            threads,
            registers,
            shared_bytes: shared,
        };
        Occupancy::of(Capability::of(capability).unwrap(), needs)
    }

    /// CUDA C++ Best Practices Guide, "Calculating Occupancy": 65536 registers, 64 warps; 37 registers a thread give 12
    /// blocks of 128 threads (75 %), but only 4 of 320 (63 %).
    #[test]
    fn the_examples_of_the_best_practices_guide() {
        for capability in [(8, 0), (9, 0)] {
            let small = occupancy(capability, 128, 37, 0);
            assert_eq!((small.blocks, small.occupancy), (12, 0.75));
            assert_eq!(small.limited_by, ["registers"]);
            let large = occupancy(capability, 320, 37, 0);
            assert_eq!((large.blocks, large.occupancy), (4, 0.625));
        }
    }

    #[test]
    fn thirty_two_registers_are_the_most_for_all_warps_of_a_large_multiprocessor() {
        assert_eq!(occupancy((9, 0), 256, 32, 0).occupancy, 1.0);
        assert_eq!(occupancy((9, 0), 256, 33, 0).occupancy, 0.75);
        // A smaller one has registers for its fewer warps: 40 each, in units of 256 a warp.
        assert_eq!(occupancy((8, 9), 256, 40, 0).occupancy, 1.0);
    }

    #[test]
    fn each_block_takes_a_kibibyte_more_from_8_0_on() {
        // 100 KiB: four blocks of 24 KiB and one more each, and not of a byte more.
        assert_eq!(occupancy((8, 9), 256, 16, 24 * 1024).blocks, 4);
        let more = occupancy((8, 9), 256, 16, 24 * 1024 + 1);
        assert_eq!((more.blocks, more.limited_by), (3, vec!["shared memory"]));
        // Turing's 64 KiB are all for blocks.
        assert_eq!(
            occupancy((7, 5), 128, 16, 16 * 1024).limits.shared_memory,
            Some(4)
        );
    }

    #[test]
    fn a_block_that_does_not_fit_has_no_occupancy() {
        let large = occupancy((7, 5), 128, 16, 65 * 1024);
        assert_eq!((large.blocks, large.occupancy), (0, 0.0));
    }

    #[test]
    fn small_blocks_run_out_of_blocks_and_large_ones_of_warps() {
        assert_eq!(occupancy((8, 6), 32, 16, 0).limited_by, ["blocks"]);
        assert_eq!(occupancy((8, 6), 32, 16, 0).blocks, 16);
        let large = occupancy((8, 6), 1024, 32, 0);
        assert_eq!((large.blocks, large.limited_by), (1, vec!["warps"]));
    }

    #[test]
    fn the_last_wave_is_what_remains() {
        // 1024 blocks, two a multiprocessor of 132: three waves of 264, and 232 blocks.
        let waves = Waves::of(1024, 2, 132).unwrap();
        assert_eq!((waves.blocks_at_once, waves.waves), (264, 4));
        assert!((waves.last - 232.0 / 264.0).abs() < 1e-12);
        assert_eq!(Waves::of(264, 2, 132).unwrap().last, 1.0);
        assert_eq!(Waves::of(0, 2, 132), None);
        assert_eq!(Waves::of(5, 0, 132), None);
    }
}
