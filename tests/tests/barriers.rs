//! Every barrier of every kernel is needed, and every wait for asynchronous copies: with any one of them left out, some
//! order of the threads gives a wrong result. The simulator leaves one out without recompiling anything.

use std::process::ExitCode;

use cuda_std::simulator::{BarrierSite, Launch, Report, ThreadOrder};
use gpu_kernels::KERNELS;
use gpu_kernels::spec::{Function, GemmFn, Variant};
use host::device::launch::bands;
use host::device::{Device, Simulator};
use host::element::Element;
use host::problem::{Data, Layout, Problem, Shape};
use libtest_mimic::Failed;

/// Orders in which the threads of a block run between barriers. A kernel that is right gives one result in all of them.
const ORDERS: [ThreadOrder; 4] = [
    ThreadOrder::Forward,
    ThreadOrder::Reverse,
    ThreadOrder::Random(1),
    ThreadOrder::Random(2),
];

/// Makes a launch leave out what is at a place in the source.
type LeaveOut = fn(Launch, BarrierSite) -> Launch;

fn main() -> ExitCode {
    let variants = KERNELS.iter().flat_map(|kernel| kernel.variants);
    let trials = variants.map(|variant| {
        tests::on_simulator(variant.entry, || match variant.function {
            Function::F32(function) => every_barrier_and_wait_is_needed(variant, function),
            Function::F64(function) => every_barrier_and_wait_is_needed(variant, function),
            Function::I32(function) => every_barrier_and_wait_is_needed(variant, function),
        })
    });
    tests::run(trials.collect())
}

fn every_barrier_and_wait_is_needed<T: Element>(
    variant: &'static Variant,
    function: GemmFn<T>,
) -> Result<(), Failed> {
    let tile = variant.tile;
    let [m, n, k] = [tile.m, tile.n, tile.k].map(|extent| extent as usize);
    // Whole tiles, and tiles that cross every edge; three steps along k, so that tiles are overwritten.
    for shape in [
        Shape { m, n, k: 3 * k },
        Shape {
            m: m + 1,
            n: n + 1,
            k: 3 * k + 1,
        },
    ] {
        let problem = Problem::<T>::random(
            shape,
            Layout::compact(shape),
            Data::SmallIntegers { largest: 4 },
            7,
            T::from_integer(1),
            T::default(),
        )?;
        let right = run(variant, &problem, |launch| launch)?;
        for order in ORDERS {
            let again = run(variant, &problem, move |launch| launch.thread_order(order))?;
            if again != right {
                return Err(format!("{shape}: order {order:?} changes the result").into());
            }
        }
        let report = report(variant, function, &problem)?;
        let shares_memory = report.shared_bytes > 0;
        if report.barriers.is_empty() == shares_memory {
            return Err(format!(
                "{} barriers, though shared memory is used: {shares_memory}",
                report.barriers.len()
            )
            .into());
        }
        let barriers = report.barriers.into_keys();
        let without_barriers =
            barriers.map(|site| ("barrier", site, Launch::without_barrier as LeaveOut));
        let waits = report.waits.into_keys();
        let without_waits = waits.map(|site| ("wait", site, Launch::without_wait as LeaveOut));
        for (what, site, leave_out) in without_barriers.chain(without_waits) {
            let caught = ORDERS.iter().any(|&order| {
                let mutant = run(variant, &problem, move |launch| {
                    leave_out(launch.thread_order(order), site)
                });
                mutant.map_or(true, |result| result != right)
            });
            if !caught {
                return Err(
                    format!("{shape}: nothing changes without the {what} at {site}").into(),
                );
            }
        }
    }
    Ok(())
}

/// C, as bits: equal only where NaNs are, too.
fn run<T: Element>(
    variant: &Variant,
    problem: &Problem<T>,
    configure: impl Fn(Launch) -> Launch + Send + Sync + 'static,
) -> Result<Vec<u64>, Failed> {
    let device = Device::Simulator(Simulator::configured(configure));
    let run = device.run(variant, problem)?;
    Ok(run
        .c
        .elements()
        .iter()
        .map(|element| element.bits())
        .collect())
}

/// What a launch of a kernel did: where in the source it waited, and how much shared memory it used.
fn report<T: Element>(
    variant: &Variant,
    function: GemmFn<T>,
    problem: &Problem<T>,
) -> Result<Report, Failed> {
    let Shape { m, n, k } = problem.shape();
    let mut c = vec![T::default(); m * n];
    let c = Elements(c.as_mut_ptr());
    let bands = bands(variant, problem.shape())?;
    let grid = bands.first().ok_or("nothing to launch")?.grid;
    let shared_bytes = variant.dynamic_shared_elements(k) as usize * size_of::<T>();
    let launch = Launch::new(grid, (variant.block.x, variant.block.y));
    let report = launch.dynamic_shared_bytes(shared_bytes).run(|| {
        let (a, b) = (problem.a.elements(), problem.b.elements());
        // SAFETY: compact matrices of this shape, in a launch of the shape that the variant asks for; `c` outlives it.
        unsafe {
            function(
                m,
                n,
                k,
                T::from_integer(1),
                a,
                k,
                b,
                n,
                T::default(),
                c.start(),
                n,
            )
        }
    })?;
    Ok(report)
}

/// C, shared by the simulated threads.
struct Elements<T>(*mut T);

// SAFETY: the threads of a kernel write different elements.
unsafe impl<T> Sync for Elements<T> {}

impl<T> Elements<T> {
    fn start(&self) -> *mut T {
        self.0
    }
}
