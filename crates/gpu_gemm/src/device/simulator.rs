//! Launches on the CPU: kernels as Rust functions, on `cuda_std`'s simulator.

use cuda_std::simulator::{self, Report};
use gpu_kernels::spec::{CopyFn, FixUpFn, Function, GemmFn, StreamKFn};

use super::error::DeviceError;
use crate::backend::Backend;
use crate::launch::{Argument, Bindings, Element, Launch, Scalar};

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
        Simulator::configured(|launch| launch)
    }
}

impl Simulator {
    /// A simulator that changes each launch before it runs: its thread order, or a barrier left
    /// out.
    pub fn configured(
        configure: impl Fn(simulator::Launch) -> simulator::Launch + Send + Sync + 'static,
    ) -> Self {
        Simulator {
            configure: Box::new(configure),
            report: Box::new(|_| ()),
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
        // SAFETY: the caller vouches for the memory, and that nothing else touches it until the
        // launch has ended, below.
        let thread =
            unsafe { thread_of(launch, bindings) }.ok_or(DeviceError::WrongArguments { kernel })?;
        let simulated = simulator::Launch::new(launch.grid, launch.block)
            .dynamic_shared_bytes(launch.dynamic_shared_bytes as usize);
        let simulated = (self.simulator.configure)(simulated);
        let ran = simulated.run_observed(thread, self.cta_done);
        let told = ran.map(|report| (self.simulator.report)(&report));
        told.map_err(|fault| DeviceError::Simulator {
            kernel: kernel.to_string(),
            fault,
        })
    }
}

/// The work of one thread of a launch.
type Thread = Box<dyn Fn() + Sync>;

/// A parameter whose address is known.
#[derive(Clone, Copy)]
enum Value {
    Count(usize),
    Scalar(Scalar),
    Slice(*mut u8, usize),
    Pointer(*mut u8),
}

/// The kernel with its arguments. `None` if the arguments do not match the kernel.
///
/// # Safety
///
/// As for [`Backend::launch`], for as long as the result is used.
unsafe fn thread_of(launch: &Launch, bindings: &Bindings) -> Option<Thread> {
    let value = |argument: &Argument| match *argument {
        Argument::Count(count) => Value::Count(count),
        Argument::Alpha => Value::Scalar(bindings.alpha),
        Argument::Beta => Value::Scalar(bindings.beta),
        Argument::Slice(address, length) => Value::Slice(bindings.pointer(address), length),
        Argument::Pointer(address) => Value::Pointer(bindings.pointer(address)),
    };
    let values: Vec<Value> = launch.arguments.iter().map(value).collect();
    // SAFETY: as the caller vouches.
    unsafe {
        match launch.kernel.function {
            Function::GemmF32(kernel) => gemm(kernel, &values),
            Function::GemmF64(kernel) => gemm(kernel, &values),
            Function::GemmI32(kernel) => gemm(kernel, &values),
            Function::StreamK(kernel) => stream_k(kernel, &values),
            Function::Copy(kernel) => copy(kernel, &values),
            Function::FixUp(kernel) => fix_up(kernel, &values),
        }
    }
}

use Value::{Count, Pointer, Slice};

/// # Safety
///
/// As for [`thread_of`].
unsafe fn gemm<T: Element>(kernel: GemmFn<T>, values: &[Value]) -> Option<Thread> {
    let &[
        Count(m),
        Count(n),
        Count(k),
        Value::Scalar(alpha),
        Slice(a, a_length),
        Count(lda),
        Slice(b, b_length),
        Count(ldb),
        Value::Scalar(beta),
        Pointer(c),
        Count(ldc),
    ] = values
    else {
        return None;
    };
    let (alpha, beta) = (T::of(alpha)?, T::of(beta)?);
    // SAFETY: as the caller vouches.
    let (a, b) = unsafe { (slice::<T>(a, a_length), slice::<T>(b, b_length)) };
    let c = Shared(c.cast::<T>());
    Some(Box::new(move || {
        // SAFETY: the slices cover exactly A and B, `c` is valid for C, and the launch has the
        // shape that the variant gives.
        unsafe { kernel(m, n, k, alpha, a, lda, b, ldb, beta, c.get(), ldc) }
    }))
}

/// # Safety
///
/// As for [`thread_of`].
unsafe fn stream_k(kernel: StreamKFn<f32>, values: &[Value]) -> Option<Thread> {
    let &[
        Count(m),
        Count(n),
        Count(k),
        Value::Scalar(alpha),
        Slice(a, a_length),
        Count(lda),
        Slice(b, b_length),
        Count(ldb),
        Value::Scalar(beta),
        Pointer(c),
        Count(ldc),
        Pointer(partials),
    ] = values
    else {
        return None;
    };
    let (alpha, beta) = (f32::of(alpha)?, f32::of(beta)?);
    // SAFETY: as the caller vouches.
    let (a, b) = unsafe { (slice(a, a_length), slice(b, b_length)) };
    let (c, partials) = (Shared(c.cast()), Shared(partials.cast()));
    Some(Box::new(move || {
        let (c, partials) = (c.get(), partials.get());
        // SAFETY: A and B lie as the variant requires, C and the partial sums are valid, and the
        // launch is the plan's.
        unsafe { kernel(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, partials) }
    }))
}

/// # Safety
///
/// As for [`thread_of`].
unsafe fn copy(kernel: CopyFn<f32>, values: &[Value]) -> Option<Thread> {
    let &[
        Slice(source, length),
        Count(rows),
        Count(columns),
        Count(leading),
        Pointer(target),
        Count(target_rows),
        Count(target_leading),
    ] = values
    else {
        return None;
    };
    // SAFETY: as the caller vouches.
    let source = unsafe { slice(source, length) };
    let target = Shared(target.cast());
    Some(Box::new(move || {
        let target = target.get();
        // SAFETY: the source is a matrix of `rows x columns`, and the workspace has room for the
        // copy.
        unsafe {
            kernel(
                source,
                rows,
                columns,
                leading,
                target,
                target_rows,
                target_leading,
            )
        }
    }))
}

/// # Safety
///
/// As for [`thread_of`].
unsafe fn fix_up(kernel: FixUpFn<f32>, values: &[Value]) -> Option<Thread> {
    let &[
        Count(m),
        Count(n),
        Count(k),
        Value::Scalar(alpha),
        Value::Scalar(beta),
        Pointer(c),
        Count(ldc),
        Pointer(partials),
        Count(tile_m),
        Count(tile_n),
        Count(tile_k),
        Count(ctas),
        Count(waves),
        Count(groups),
    ] = values
    else {
        return None;
    };
    let (alpha, beta) = (f32::of(alpha)?, f32::of(beta)?);
    let (c, partials) = (Shared(c.cast()), Shared(partials.cast()));
    Some(Box::new(move || {
        let (c, partials) = (c.get(), partials.get());
        // SAFETY: C is valid, and the previous kernel has written the partial sums of this
        // decomposition.
        unsafe {
            kernel(
                m, n, k, alpha, beta, c, ldc, partials, tile_m, tile_n, tile_k, ctas, waves, groups,
            )
        }
    }))
}

/// # Safety
///
/// There are `length` elements at `start`, and nothing writes them while the slice is used.
unsafe fn slice<T>(start: *mut u8, length: usize) -> &'static [T] {
    match length {
        0 => &[],
        // SAFETY: as the caller vouches.
        length => unsafe { std::slice::from_raw_parts(start.cast(), length) },
    }
}

/// A pointer that the threads of a launch share, as they do on a GPU.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: it only carries an address; the kernels that write through it promise to write disjoint
// elements.
unsafe impl<T: Send> Sync for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}
