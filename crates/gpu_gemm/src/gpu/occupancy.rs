//! The number of CTAs of a kernel on a streaming multiprocessor (SM), and what limits it.
//!
//! The rules are those of NVIDIA's occupancy calculator (`cuda_occupancy.h` of CUDA 12.9):
//!
//! - Registers are allocated to warps, 256 at a time, from four partitions of an SM that hold
//!   16384 each.
//! - Shared memory is allocated to CTAs, 128 bytes at a time (256 before compute capability 8.0);
//!   since 8.0, the system reserves 1 KiB more for each CTA.
//! - The numbers of CTAs and warps that reside on an SM are limited.

use super::capability::Capability;

/// Threads of a warp.
pub const WARP: u32 = 32;
/// The partitions of an SM, each with its own registers and scheduler.
const PARTITIONS: u32 = 4;
/// 32-bit registers of an SM, on every GPU from compute capability 5.0 on.
const REGISTERS: u32 = 65_536;
/// Registers are allocated in units of this many.
const REGISTER_UNIT: u32 = 256;

/// The resources that a CTA needs on an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    pub threads: u32,
    /// 32-bit registers of each thread.
    pub registers: u32,
    /// Shared memory of the CTA, static and dynamic.
    pub shared_bytes: u32,
}

/// The number of CTAs that each resource of an SM allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub warps: u32,
    pub ctas: u32,
    pub registers: u32,
    /// `None` if a CTA uses no shared memory at all.
    pub shared_memory: Option<u32>,
}

/// CTAs on an SM.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    /// The CTAs that reside on an SM; 0 if not even one fits.
    pub ctas: u32,
    /// The warps that reside on an SM.
    pub warps: u32,
    /// The fraction of the warps that an SM can hold: at most 1.
    pub occupancy: f64,
    /// What limits the number of CTAs: one or several of `warps`, `CTAs`, `registers`, `shared
    /// memory`.
    pub limited_by: Vec<&'static str>,
    pub limits: Limits,
}

impl Occupancy {
    /// The occupancy for CTAs with these needs.
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
            ctas: capability.ctas,
            registers: warps_with_registers / warps_of_block,
            shared_memory: blocks_with_shared_memory(capability, needs.shared_bytes),
        };
        let named = [
            ("warps", Some(limits.warps)),
            ("CTAs", Some(limits.ctas)),
            ("registers", Some(limits.registers)),
            ("shared memory", limits.shared_memory),
        ];
        let ctas = named.iter().filter_map(|limit| limit.1).min().unwrap_or(0);
        Occupancy {
            ctas,
            warps: ctas * warps_of_block,
            occupancy: f64::from(ctas * warps_of_block) / f64::from(most_warps),
            limited_by: named
                .iter()
                .filter(|limit| limit.1 == Some(ctas))
                .map(|limit| limit.0)
                .collect(),
            limits,
        }
    }
}

/// The number of CTAs that the shared memory of an SM allows; `None` if it is no limit.
fn blocks_with_shared_memory(capability: &Capability, bytes: u32) -> Option<u32> {
    let (reserved, unit) = match capability.major {
        8.. => (1024, 128),
        _ => (0, 256),
    };
    let of_block = (bytes + reserved).next_multiple_of(unit);
    capability.shared_bytes.checked_div(of_block)
}

/// The waves in which a GPU runs a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waves {
    /// The CTAs that run at once on all SMs.
    pub ctas_at_once: u64,
    /// The number of waves; the last one may have fewer CTAs.
    pub waves: u64,
    /// How full the last wave is: above 0, at most 1.
    pub last: f64,
}

impl Waves {
    /// The waves of `ctas` CTAs, with `resident` on an SM; `None` if it holds none or there are
    /// none.
    pub fn of(ctas: u64, resident: u32, sms: u32) -> Option<Waves> {
        let at_once = u64::from(resident) * u64::from(sms);
        if at_once == 0 || ctas == 0 {
            return None;
        }
        let waves = ctas.div_ceil(at_once);
        Some(Waves {
            ctas_at_once: at_once,
            waves,
            last: (ctas - (waves - 1) * at_once) as f64 / at_once as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctas_are_as_many_as_the_scarcest_resource_allows() {
        const KIB: u32 = 1024;
        for (capability, threads, registers, shared_bytes, ctas, occupancy, limited_by) in [
            // CUDA C++ Best Practices Guide, "Calculating Occupancy": 65536 registers, 64 warps; 37
            // registers a thread give 12 blocks of 128 threads (75 %), but only 4 of 320 (63 %).
            ((8, 0), 128, 37, 0, 12, 0.75, "registers"),
            ((9, 0), 128, 37, 0, 12, 0.75, "registers"),
            ((8, 0), 320, 37, 0, 4, 0.625, "registers"),
            ((9, 0), 320, 37, 0, 4, 0.625, "registers"),
            // 32 registers are the most for all warps of a large SM.
            ((9, 0), 256, 32, 0, 8, 1.0, "warps, registers"),
            ((9, 0), 256, 33, 0, 6, 0.75, "registers"),
            // A smaller SM, with fewer warps, has enough registers: 40 a thread, in units of 256 a
            // warp.
            ((8, 9), 256, 40, 0, 6, 1.0, "warps, registers"),
            // 100 KiB: four blocks of 24 KiB plus 1 KiB each fit, and no byte more.
            ((8, 9), 256, 16, 24 * KIB, 4, 2.0 / 3.0, "shared memory"),
            ((8, 9), 256, 16, 24 * KIB + 1, 3, 0.5, "shared memory"),
            // All of Turing's 64 KiB are available to blocks, one of which may not fit.
            ((7, 5), 128, 16, 16 * KIB, 4, 0.5, "shared memory"),
            ((7, 5), 128, 16, 65 * KIB, 0, 0.0, "shared memory"),
            // Small blocks run out of blocks, and large ones of warps.
            ((8, 6), 32, 16, 0, 16, 1.0 / 3.0, "CTAs"),
            ((8, 6), 1024, 32, 0, 1, 2.0 / 3.0, "warps"),
        ] {
            let needs = Needs {
                threads,
                registers,
                shared_bytes,
            };
            let found = Occupancy::of(Capability::of(capability).unwrap(), needs);
            let name = format!("{capability:?} {needs:?}");
            assert_eq!((found.ctas, found.occupancy), (ctas, occupancy), "{name}");
            assert_eq!(found.limited_by.join(", "), limited_by, "{name}");
        }
    }

    #[test]
    fn the_last_wave_is_what_remains() {
        // 1024 blocks, two on each of 132 SMs: three waves of 264, and 232 blocks.
        let waves = Waves::of(1024, 2, 132).unwrap();
        assert_eq!((waves.ctas_at_once, waves.waves), (264, 4));
        assert!((waves.last - 232.0 / 264.0).abs() < 1e-12);
        assert_eq!(Waves::of(264, 2, 132).unwrap().last, 1.0);
        assert_eq!(Waves::of(0, 2, 132), None);
        assert_eq!(Waves::of(5, 0, 132), None);
    }
}
