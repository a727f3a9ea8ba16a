//! Every barrier of every kernel is needed, and every wait for asynchronous copies: with any one
//! of them left out, some order of the threads gives a wrong result. The simulator leaves one
//! out without recompiling anything.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use cuda_std::simulator::{BarrierSite, Launch, Report, ThreadOrder};
use gpu_gemm::gpu_kernels::spec::{Grid, Unit, Variant};
use gpu_gemm::gpu_kernels::variants;
use gpu_gemm::{Choice, Device, Shape, Simulator};
use libtest_mimic::{Failed, Trial};
use tests::Tier;
use tests::devices::Backend;
use verification::by_element;
use verification::data::{Data, Number, Problem, Storage};

/// Makes a launch leave out the barrier or wait at a place in the source.
type LeaveOut = fn(Launch, BarrierSite) -> Launch;

pub fn trials() -> Vec<Trial> {
    let trials = variants().filter_map(|variant| {
        // Those of tensor cores take a while, and of the others one of each kernel is enough.
        let is_quick = variant.unit == Unit::CudaCores && tests::is_first(variant, |_| true);
        let tier = match is_quick {
            true => Tier::Quick,
            false => Tier::Exhaustive,
        };
        let test = move || by_element!(variant.types.c, every_barrier_and_wait_is_needed(variant));
        let name = format!("barriers::{}", variant.entry.name);
        // Others have the same barriers, and tiles of other sizes.
        let code = |of: &Variant| {
            let layouts = (of.grid, of.a, of.b, of.exact_tiles);
            (of.types.a.bytes(), layouts, of.k_slices, of.block.threads())
        };
        let is_alike =
            |other: &Variant| tests::is_representative(other) && code(other) == code(variant);
        let is_tried = tests::is_representative(variant) && tests::is_first(variant, is_alike);
        is_tried.then(|| tests::trial(tier, Backend::Simulator, name, test))?
    });
    trials.collect()
}

/// The barriers and waits of the kernel, and those whose absence was noticed.
#[derive(Default)]
struct Sites {
    all: BTreeSet<(What, BarrierSite)>,
    needed: BTreeSet<(What, BarrierSite)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Barrier,
    Wait,
}

fn every_barrier_and_wait_is_needed<T: Number>(variant: &'static Variant) -> Result<(), Failed> {
    let tile = variant.tile;
    let [m, n, k] = [tile.m, tile.n, tile.k].map(|extent| extent as usize);
    // Several k-iterations, so that tiles are overwritten; more for stream-K, with its ring
    // buffer. A ragged shape has one k-iteration more: with 4 tiles of 39, the second of 6 CTAs
    // has the last 13 of a tile and then some of the next: both begin and end in the ring's first
    // stage.
    let element_bytes = variant.types.a.bytes();
    let k_iterations = match variant.grid {
        Grid::StreamK => 38,
        // As many as the ring has stages, and one more.
        grid if grid.is_mapped() => {
            1 + variant.ring_bytes() as usize / (element_bytes * (m + n) * k)
        }
        _ => 3,
    };
    // Some kernels leave the N remainder to another.
    let tiles_n = if variant.n_remainder.is_some() { 3 } else { 2 };
    // Beyond the last full tile: one row, column or term, or all but one, so that elements read
    // instead of them are not mostly zeros.
    let ragged = match variant.grid {
        Grid::StreamK => Shape {
            m: (2 * m - 1).max(2),
            n: tiles_n * n - 1,
            k: (k_iterations + 1) * k - 1,
        },
        _ => Shape {
            m: m + 1,
            n: n + 1,
            k: k_iterations * k + 1,
        },
    };
    let mut sites = Sites::default();
    // Exact tiles, and tiles that cross every edge; stream-K CTAs have segments of several tiles.
    let exact = Shape::new(m, n, k_iterations * k);
    let shapes = match variant.grid {
        // The first of 6 CTAs has two tiles, and stores all boxes of C twice.
        Grid::Persistent => vec![exact, ragged, Shape::new(7 * m, n, k)],
        // Each of 6 CTAs has a little more than a tile, or than two.
        Grid::PersistentStreamK => vec![
            Shape::new(7 * m, n, k_iterations * k),
            Shape::new(13 * m, n, k),
        ],
        _ => vec![exact, ragged],
    };
    for shape in shapes {
        // The lower halves of small integers are zeros.
        let data = match variant.splits_operands {
            true => Data::Normal,
            false => Data::SmallIntegers { largest: 4 },
        };
        let (one, compact) = (T::from_integer(1), Storage::COMPACT);
        let problem = Problem::<T>::random(shape, compact, data, 7, one, T::default())?;
        let problem = problem.with_inputs(variant.types.a);
        look_at(variant, &problem, &mut sites)?;
    }
    let unneeded: Vec<_> = sites.all.difference(&sites.needed).collect();
    match unneeded.is_empty() {
        true => Ok(()),
        false => Err(format!("nothing changes without each of {unneeded:?}").into()),
    }
}

/// Leaves out each barrier and wait of `variant` in turn.
fn look_at<T: Number>(
    variant: &'static Variant,
    problem: &Problem<T>,
    sites: &mut Sites,
) -> Result<(), Failed> {
    let shape = problem.shape();
    let (right, report) = reported(variant, problem)?;
    for order in ThreadOrder::ALL.into_iter().skip(1) {
        let again = run(variant, problem, move |launch| launch.thread_order(order))?;
        assert!(again == right, "{shape}: {order:?} changes the result");
    }
    let shares_memory = report.shared_bytes > 0;
    let has_barriers = !report.barriers.is_empty();
    assert_eq!(has_barriers, shares_memory, "barriers, shared memory");
    let barriers = report.barriers.into_keys();
    // SAFETY: `run` below vouches for it.
    let without_barrier = |launch: Launch, site| unsafe { launch.without_barrier(site) };
    // SAFETY: as above.
    let without_wait = |launch: Launch, site| unsafe { launch.without_wait(site) };
    let without_barriers = barriers.map(|site| (What::Barrier, site, without_barrier as LeaveOut));
    let waits = report.waits.into_keys();
    let without_waits = waits.map(|site| (What::Wait, site, without_wait as LeaveOut));
    for (what, site, leave_out) in without_barriers.chain(without_waits) {
        let caught = ThreadOrder::ALL.iter().any(|&order| {
            let mutant = run(variant, problem, move |launch| {
                leave_out(launch.thread_order(order), site)
            });
            mutant.map_or(true, |result| result != right)
        });
        sites.all.insert((what, site));
        if caught {
            sites.needed.insert((what, site));
        } else if !(variant.grid.is_stream_k() || variant.grid.is_mapped()) {
            return Err(format!("{shape}: nothing changes without the {what:?} at {site}").into());
        }
    }
    Ok(())
}

/// C of modified launches, as bits, for a comparison that includes NaNs.
fn run<T: Number>(
    variant: &'static Variant,
    problem: &Problem<T>,
    configure: impl Fn(Launch) -> Launch + Send + Sync + 'static,
) -> Result<Vec<u64>, Failed> {
    // SAFETY: A and B outlive the launches, and only the thread order changes, or a barrier or
    // wait is left out. Data that a kernel then reads too early are elements, or the number of a
    // tile that is either right or all ones: the address computation then overflows, a panic in
    // this profile.
    let device = Device::from(unsafe { Simulator::configured(configure) });
    let run = verification::run::run(&device, Choice::even(variant), problem, &|| ())?;
    Ok(tests::bits(run.c.elements()))
}

/// C with the threads in forward order, and the report of the kernel's launches: its waits in the
/// source, and its use of shared memory. The operand copies are left out: `copies.rs` tests them.
fn reported<T: Number>(
    variant: &'static Variant,
    problem: &Problem<T>,
) -> Result<(Vec<u64>, Report), Failed> {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&reports);
    let simulator = Simulator::default().reporting(move |report: &Report| {
        if let Ok(mut reports) = told.lock() {
            reports.push(report.clone());
        }
    });
    let device = Device::from(simulator);
    let run = verification::run::run(&device, Choice::even(variant), problem, &|| ())?;
    let mut all = Report::default();
    let reports = reports.lock().map_err(|error| error.to_string())?;
    for report in reports.iter() {
        let copies = |site: &BarrierSite| {
            ["transpose.rs", "/split.rs"]
                .iter()
                .any(|file| site.file.ends_with(file))
        };
        if report.barriers.keys().any(copies) {
            continue;
        }
        all.barriers.extend(report.barriers.clone());
        all.waits.extend(report.waits.clone());
        all.shared_bytes = all.shared_bytes.max(report.shared_bytes);
    }
    Ok((tests::bits(run.c.elements()), all))
}
