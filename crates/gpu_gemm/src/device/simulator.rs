//! Launches on the CPU: kernels as Rust functions, on `cuda_std`'s simulator.

use std::ops::Range;

use cuda_std::simulator::{self, Report};
use cuda_std::tma::TensorMap;
use gpu_kernels::spec::Function;

use super::error::DeviceError;
use crate::backend::Backend;
use crate::launch::{Argument, Bindings, Element, Launch, NO_MAP, Plain};

/// A change to how a launch is simulated.
type Configure = dyn Fn(simulator::Launch) -> simulator::Launch + Send + Sync;

/// A callback that receives the report of a launch.
type Observe = dyn Fn(&Report) + Send + Sync;

/// The simulator, and how it is to run CTAs.
pub struct Simulator {
    configure: Box<Configure>,
    report: Box<Observe>,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator {
            configure: Box::new(|launch| launch),
            report: Box::new(|_| ()),
        }
    }
}

impl Simulator {
    /// A simulator that changes each launch before it runs: its thread order, or a barrier left
    /// out.
    ///
    /// # Safety
    ///
    /// The changed launches of what runs on it stay within their buffers: grid, block and shared
    /// memory remain, and no address comes from what a barrier or a wait that is left out protects.
    pub unsafe fn configured(
        configure: impl Fn(simulator::Launch) -> simulator::Launch + Send + Sync + 'static,
    ) -> Self {
        Simulator {
            configure: Box::new(configure),
            ..Simulator::default()
        }
    }

    /// The same, and reports what each launch did.
    pub fn reporting(self, report: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Simulator {
            report: Box::new(report),
            ..self
        }
    }

    /// What it runs on.
    pub fn description(&self) -> String {
        match simulator::cpu_threads() {
            1 => "simulator on 1 CPU thread".to_string(),
            threads => format!("simulator on {threads} CPU threads"),
        }
    }

    /// The simulator as a backend that calls `cta_done` after each CTA, from any thread.
    pub fn observed<'a>(&'a self, cta_done: &'a (dyn Fn() + Sync)) -> impl Backend + 'a {
        Observed {
            simulator: self,
            cta_done,
        }
    }
}

impl Backend for Simulator {
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError> {
        // SAFETY: as the caller vouches.
        unsafe { self.observed(&|| ()).launch(launch, bindings) }
    }
}

struct Observed<'a> {
    simulator: &'a Simulator,
    cta_done: &'a (dyn Fn() + Sync),
}

impl Backend for Observed<'_> {
    unsafe fn launch(&self, launch: &Launch, bindings: &Bindings) -> Result<(), DeviceError> {
        let kernel = launch.kernel.name;
        let mut arguments = Arguments {
            remaining: launch.arguments.iter(),
            bindings,
            slices: Vec::new(),
        };
        // SAFETY: the caller vouches for the memory, and that nothing else touches it until the
        // launch has ended, below.
        let thread = unsafe { thread_of(launch, &mut arguments) }
            .ok_or(DeviceError::WrongArguments { kernel })?;
        let (x, y) = launch.grid;
        let simulated = simulator::Launch::new((x, y, launch.products), launch.block)
            .dynamic_shared_bytes(launch.dynamic_shared_bytes as usize)
            .readable_by_copies(arguments.slices);
        let simulated = (self.simulator.configure)(simulated);
        let report = simulated
            .run_observed(thread, self.cta_done)
            .map_err(|fault| DeviceError::Simulator {
                kernel: kernel.to_string(),
                fault: Box::new(fault),
            })?;
        (self.simulator.report)(&report);
        Ok(())
    }
}

/// The work of one thread of a launch.
type Thread = Box<dyn Fn() + Sync>;

/// The kernel with its arguments. `None` if the arguments do not match the kernel.
///
/// # Safety
///
/// As for [`Backend::launch`], for as long as the result is used.
unsafe fn thread_of(launch: &Launch, arguments: &mut Arguments<'_>) -> Option<Thread> {
    // A kernel, and for each of its parameters a name and the kind of argument that it takes.
    macro_rules! thread {
        ($kernel:ident: $($parameter:ident $kind:ident),*) => {{
            $(let $parameter = arguments.$kind()?;)*
            if arguments.remaining.next().is_some() {
                return None;
            }
            // SAFETY: the launch is a plan's, of the shape that the kernel requires. Slices cover
            // exactly the matrices and copies that it reads, and pointers are valid for C, for
            // copies and for partial sums, as the caller vouches.
            Some(Box::new(move || unsafe { $kernel($($parameter.get()),*) }))
        }};
    }
    macro_rules! gemm {
        ($kernel:ident $(, $further:ident $kind:ident)*) => {
            thread!(
                $kernel: m count, n count, k count, alpha scalar, a slice, lda count, b slice,
                ldb count, beta scalar, c pointer, ldc count $(, $further $kind)*
            )
        };
    }
    macro_rules! batched {
        ($kernel:ident $(, $partials:ident pointer)?) => {
            gemm!(
                $kernel $(, $partials pointer)?, stride_a count, stride_b count, stride_c count
            )
        };
    }
    macro_rules! mapped {
        ($kernel:ident) => {
            thread!(
                $kernel: m count, n count, k count, alpha scalar, a map, b map, beta scalar,
                c pointer, ldc count, c_boxes map
            )
        };
    }
    macro_rules! divided {
        ($kernel:ident) => {
            thread!(
                $kernel: m count, n count, k count, alpha scalar, a map, b map, beta scalar,
                c pointer, ldc count, c_boxes map, partials pointer, waves count
            )
        };
    }
    macro_rules! copy {
        ($kernel:ident) => {
            thread!(
                $kernel: source slice, rows count, columns count, leading count, target pointer,
                target_rows count, target_leading count
            )
        };
    }
    macro_rules! fix_up {
        ($kernel:ident) => {
            thread!(
                $kernel: m count, n count, k count, alpha scalar, beta scalar, c pointer, ldc count,
                partials pointer, tile_m count, tile_n count, tile_k count, ctas count,
                waves count, groups count
            )
        };
    }
    match launch.kernel.function {
        Function::GemmF32(kernel) => gemm!(kernel),
        Function::GemmF64(kernel) => gemm!(kernel),
        Function::GemmI32(kernel) => gemm!(kernel),
        Function::BatchedF32(kernel) => batched!(kernel),
        Function::BatchedF64(kernel) => batched!(kernel),
        Function::GemmBf16(kernel) | Function::GemmF16(kernel) => mapped!(kernel),
        Function::GemmBf16F32(kernel)
        | Function::GemmF16F32(kernel)
        | Function::GemmTf32(kernel) => mapped!(kernel),
        Function::MappedF64(kernel) => mapped!(kernel),
        Function::MappedStreamKBf16(kernel) | Function::MappedStreamKF16(kernel) => {
            divided!(kernel)
        }
        Function::MappedStreamKBf16F32(kernel) | Function::MappedStreamKF16F32(kernel) => {
            divided!(kernel)
        }
        Function::GemmSplit(kernel) => thread!(
            kernel: m count, n count, k count, alpha scalar, a map, a_scales slice, b map,
            b_scales slice, beta scalar, c pointer, ldc count
        ),
        Function::Split(kernel) => thread!(
            kernel: source slice, rows count, depth count, leading count, target pointer,
            target_depth count, scales pointer
        ),
        Function::StreamK(kernel) => gemm!(kernel, partials pointer),
        Function::StreamKBf16(kernel) | Function::StreamKF16(kernel) => {
            gemm!(kernel, partials pointer)
        }
        Function::StreamKBf16F32(kernel) | Function::StreamKF16F32(kernel) => {
            gemm!(kernel, partials pointer)
        }
        Function::BatchedStreamK(kernel) => batched!(kernel, partials pointer),
        Function::CopyF32(kernel) => copy!(kernel),
        Function::CopyF64(kernel) => copy!(kernel),
        Function::Copy16(kernel) => copy!(kernel),
        Function::FixUp(kernel) => fix_up!(kernel),
        Function::FixUp16(kernel) => fix_up!(kernel),
    }
}

/// The arguments that no parameter has taken yet. Each method takes the next one; `None` if it is
/// of another kind.
struct Arguments<'a> {
    remaining: std::slice::Iter<'a, Argument>,
    /// The memories outlive whatever is taken.
    bindings: &'a Bindings,
    /// The memories of the slices that were taken: of A and B, or of their copies.
    slices: Vec<Range<*const u8>>,
}

impl Arguments<'_> {
    fn count(&mut self) -> Option<Shared<usize>> {
        match *self.remaining.next()? {
            Argument::Count(count) => Some(Shared(count)),
            _ => None,
        }
    }

    fn scalar<T: Element>(&mut self) -> Option<Shared<T>> {
        match self.remaining.next()? {
            Argument::Alpha => T::of(self.bindings.alpha).map(Shared),
            Argument::Beta => T::of(self.bindings.beta).map(Shared),
            _ => None,
        }
    }

    fn slice<T: Plain>(&mut self) -> Option<Shared<&'static [T]>> {
        match *self.remaining.next()? {
            Argument::Slice(_, 0) => Some(Shared(&[])),
            Argument::Slice(address, length) => {
                let start = self.bindings.pointer(address).cast();
                // SAFETY: who made `self` vouches that these are elements which nothing writes
                // while the slice is used.
                let slice: &[T] = unsafe { std::slice::from_raw_parts(start, length) };
                let Range { start, end } = slice.as_ptr_range();
                self.slices.push(start.cast()..end.cast());
                Some(Shared(slice))
            }
            _ => None,
        }
    }

    fn map(&mut self) -> Option<SharedMap> {
        match *self.remaining.next()? {
            Argument::Map(map) => {
                let start = self.bindings.pointer(map.address);
                let tiles = map.tiles(start);
                if tiles.is_some() {
                    let end = start.wrapping_add(map.extent() * map.element.bytes());
                    self.slices.push(start.cast_const()..end.cast_const());
                }
                let map = tiles.and_then(|tiles| tiles.simulated().ok());
                Some(SharedMap(map.unwrap_or(NO_MAP)))
            }
            _ => None,
        }
    }

    fn pointer<T: Plain>(&mut self) -> Option<Shared<*mut T>> {
        match *self.remaining.next()? {
            Argument::Pointer(address) => Some(Shared(self.bindings.pointer(address).cast())),
            _ => None,
        }
    }
}

/// An argument that the threads of a launch share, as they do on a GPU.
#[derive(Clone, Copy)]
struct Shared<T>(T);

// SAFETY: an argument is a number, a slice of numbers, or a pointer; the kernels that write
// through a pointer promise to write disjoint elements.
unsafe impl<T: Copy> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// The argument. A closure that calls this captures all of `self`, not the pointer in it.
    fn get(&self) -> T {
        self.0
    }
}

/// A map that the threads of a launch share, which a kernel takes by its address.
struct SharedMap(TensorMap);

impl SharedMap {
    fn get(&self) -> &TensorMap {
        &self.0
    }
}
