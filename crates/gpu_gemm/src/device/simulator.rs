//! Launches on the CPU: kernels as Rust functions, on `cuda_std`'s simulator.

use std::ops::Range;
use std::sync::Arc;

use cuda_std::simulator::{self, Report};

use crate::backend::{Allocated, Backend, Space, Way};
use crate::error::DeviceError;
use crate::gpu::DeviceFacts;
use crate::launch::{Argument, Bindings, Launch, NO_MAP};

/// A change to how a launch is simulated.
type Configure = dyn Fn(simulator::Launch) -> simulator::Launch + Send + Sync;

/// A callback that receives the report of a launch.
type Observe = dyn Fn(&Report) + Send + Sync;

/// The simulator, with its configuration.
#[derive(Clone)]
pub struct Simulator {
    configure: Arc<Configure>,
    report: Arc<Observe>,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator {
            configure: Arc::new(|launch| launch),
            report: Arc::new(|_| ()),
        }
    }
}

impl Simulator {
    /// A simulator that changes each launch before it runs: its thread order, or a barrier left
    /// out.
    ///
    /// # Safety
    ///
    /// The changed launches stay within their buffers: grid, block and shared memory are
    /// unchanged, and no address depends on data that an omitted barrier or wait protects.
    pub unsafe fn configured(
        configure: impl Fn(simulator::Launch) -> simulator::Launch + Send + Sync + 'static,
    ) -> Self {
        Simulator {
            configure: Arc::new(configure),
            ..Simulator::default()
        }
    }

    /// The same, with a callback for the report of each launch.
    pub fn reporting(self, report: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Simulator {
            report: Arc::new(report),
            ..self
        }
    }

    /// Its description for people.
    pub fn description(&self) -> String {
        match simulator::cpu_threads() {
            1 => "simulator on 1 CPU thread".to_string(),
            threads => format!("simulator on {threads} CPU threads"),
        }
    }

    /// The simulator as a backend that calls `cta_done` after each CTA, from any thread.
    pub fn observed<'a>(&self, cta_done: &'a (dyn Fn() + Sync)) -> Observed<'a> {
        Observed {
            simulator: self.clone(),
            cta_done,
        }
    }
}

/// A simulator with a callback after each CTA.
pub struct Observed<'a> {
    simulator: Simulator,
    cta_done: &'a (dyn Fn() + Sync),
}

/// A unit of the simulated GPU's memory, aligned as a GPU's allocations, to 256 bytes: the choice
/// of kernels depends on alignment.
#[derive(Clone)]
#[repr(align(256))]
struct Line {
    _bytes: [u8; 256],
}

// SAFETY: allocations are vectors of the host.
unsafe impl Backend for Observed<'_> {
    fn facts(&self) -> DeviceFacts {
        DeviceFacts::simulator()
    }

    fn space(&self) -> Space {
        Space::Host
    }

    /// Allocations are filled with NaNs.
    fn allocate(&self, bytes: usize) -> Result<Allocated, DeviceError> {
        let mut lines = vec![
            Line {
                _bytes: [0xff; 256]
            };
            bytes.div_ceil(size_of::<Line>())
        ];
        Ok(Allocated::new(lines.as_mut_ptr().cast(), lines))
    }

    unsafe fn copy(
        &self,
        from: *const u8,
        to: *mut u8,
        bytes: usize,
        _: Way,
    ) -> Result<(), DeviceError> {
        // SAFETY: as the caller vouches.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) };
        Ok(())
    }

    /// Nothing is running when a launch has returned.
    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError> {
        let kernel = launch.kernel;
        let block = launch.block(bindings, |map, address| {
            let map = map.tiles(address).and_then(|tiles| tiles.simulated().ok());
            Ok(map.unwrap_or(NO_MAP))
        })?;
        let block = Shared(block.as_ptr());
        // SAFETY: the launch is a plan's, with the shape that the kernel requires. Slices and maps
        // cover exactly the matrices and copies that it reads, and pointers are valid for C, for
        // copies and for partial sums, until the launch has ended, below, as the caller vouches.
        let thread = || unsafe { (kernel.function)(block.get()) };
        let (x, y) = launch.grid;
        let simulated = simulator::Launch::new((x, y, launch.products), launch.block)
            .dynamic_shared_bytes(launch.dynamic_shared_bytes as usize)
            .readable_by_copies(readable(launch, bindings));
        let simulated = (self.simulator.configure)(simulated);
        let report = simulated
            .run_observed(thread, self.cta_done)
            .map_err(|fault| DeviceError::Simulator {
                kernel: kernel.name.to_string(),
                fault: Box::new(fault),
            })?;
        (self.simulator.report)(&report);
        Ok(())
    }
}

/// The memory that copies to shared memory may read: slices, and matrices of tensor maps.
fn readable(launch: &Launch, bindings: &Bindings) -> Vec<Range<*const u8>> {
    let range =
        |start: *mut u8, bytes: usize| start.cast_const()..start.wrapping_add(bytes).cast_const();
    let of = |argument: &Argument| match *argument {
        Argument::Slice(_, 0) => None,
        Argument::Slice(address, length) => Some(range(
            bindings.pointer(address),
            length * launch.element.bytes(),
        )),
        Argument::Map(map) => {
            let start = bindings.pointer(map.address);
            let bytes = map.layout.extent() * map.element.bytes();
            map.tiles(start).map(|_| range(start, bytes))
        }
        _ => None,
    };
    launch.arguments.iter().filter_map(of).collect()
}

/// The argument block, which the threads of a launch share, as on a GPU.
struct Shared(*const u8);

// SAFETY: threads only read an argument block; the kernels that write through a pointer in it
// promise to write disjoint elements.
unsafe impl Sync for Shared {}

impl Shared {
    /// The address. A closure that calls this captures all of `self`, not the pointer in it.
    fn get(&self) -> *const u8 {
        self.0
    }
}
