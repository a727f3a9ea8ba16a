//! Every barrier of the OpenCL C of a few kernels is needed: with any one of them left out of the
//! text, C is wrong. `barriers.rs` shows this for all kernels on the simulator; here it shows that
//! the printer writes each barrier where it belongs.
//!
//! A CPU runs the work-items of a group one after the other from barrier to barrier, so that most
//! removals show. On a GPU the order is open, so that the tests are ignored where the device is not
//! PoCL's.

use gpu_gemm::device::opencl::source;
use gpu_gemm::gpu_kernels::spec::{Kernel, Variant};
use gpu_gemm::gpu_kernels::{double_buffer, register_blocked, row_shared, tiled};
use gpu_gemm::{Choice, Device, ElementType, OpenClDevice, Shape};
use host::data::{Data, Layout, Problem};
use libtest_mimic::{Failed, Trial};
use tests::bits;

const BARRIER: &str = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";

/// Barriers that PoCL cannot show, counted from 0 in the text of a kernel: those between the reads
/// of one iteration of a loop and the writes of the next. PoCL puts one of its own at the end of a
/// loop that has another.
const NOT_SHOWN: &[(&str, &[usize])] = &[
    ("row_shared", &[0]),
    ("tiled_32", &[1]),
    ("register_blocked_sn8", &[1]),
];

pub fn trials() -> Vec<Trial> {
    let kernels = [
        &row_shared::KERNEL,
        &tiled::KERNEL,
        &register_blocked::KERNEL,
        &double_buffer::KERNEL,
    ];
    let is_pocl = OpenClDevice::open(0)
        .is_ok_and(|device| device.properties().platform == "Portable Computing Language");
    // Its variants are of one text.
    let first = |kernel: &Kernel| {
        let mut variants = kernel.variants.iter();
        variants.find(|variant| variant.types.c == ElementType::F32)
    };
    let trials = kernels.into_iter().filter_map(first).map(|variant| {
        let name = format!("barriers::{}_needs_every_barrier", variant.entry.name);
        tests::on_opencl(&name, move || every_barrier_is_needed(variant))
            .with_ignored_flag(!is_pocl)
    });
    trials.collect()
}

fn every_barrier_is_needed(variant: &'static Variant) -> Result<(), Failed> {
    let entry = variant.entry.name;
    let program = source::of(entry).map_err(|absent| format!("{absent:?}"))?;
    let barriers: Vec<usize> = program.match_indices(BARRIER).map(|(at, _)| at).collect();
    assert!(!barriers.is_empty(), "{entry} has no barrier");
    let tile = variant.tile;
    let [m, n, k] = [tile.m, tile.n, tile.k].map(|extent| extent as usize);
    // Several k-iterations, so that tiles are overwritten; exact tiles, and tiles that cross every
    // edge.
    let shapes = [Shape::new(m, n, 4 * k), Shape::new(m + 1, n + 1, 3 * k + 1)];
    let mut problems = Vec::new();
    for shape in shapes {
        let (layout, data) = (Layout::compact(shape), Data::SmallIntegers { largest: 4 });
        let problem = Problem::<f32>::random(shape, layout, data, 7, 1.0, 0.0)?;
        let right = run(variant, program, &problem)?;
        problems.push((problem, right));
    }
    let mut not_shown = Vec::new();
    for (number, &at) in barriers.iter().enumerate() {
        let without = [&program[..at], &program[at + BARRIER.len()..]].concat();
        // A program of OpenCL lives as long as the test.
        let without: &'static str = without.leak();
        let is_shown = problems
            .iter()
            .any(|(problem, right)| run(variant, without, problem).map_or(true, |c| c != *right));
        if !is_shown {
            not_shown.push(number);
        }
    }
    let known = NOT_SHOWN.iter().find(|(name, _)| *name == entry);
    let known = known.map_or(&[][..], |(_, numbers)| numbers);
    let unknown = not_shown.iter().find(|number| !known.contains(number));
    assert_eq!(unknown, None, "a barrier of {entry} that nothing shows");
    Ok(())
}

/// C, as bits.
fn run(
    variant: &'static Variant,
    program: &'static str,
    problem: &Problem<f32>,
) -> Result<Vec<u64>, Failed> {
    let device = OpenClDevice::open(0)?;
    // SAFETY: only a barrier may be missing, and what a kernel then reads too early is an element
    // of a tile.
    let device = unsafe { device.with_program(variant.entry.name, program) };
    let device = Device::OpenCl(Box::new(device));
    let run = host::run::run(&device, Choice::even(variant), problem, &|| ())?;
    Ok(bits(run.c.elements()))
}
