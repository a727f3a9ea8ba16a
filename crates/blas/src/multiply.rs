//! Contexts of `gpu_gemm` on the program's streams, and the launches on them.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gpu_gemm::cust::sys::{cuCtxGetCurrent, cuCtxGetDevice};
use gpu_gemm::device::cuda::capture::{Relaxed, is_captured};
use gpu_gemm::{
    Bf16, Buffer, Context, CudaDevice, Device, DeviceError, F16, GemmError, MatrixLayout, Plan,
    Shape, Stored, Transpose,
};

use crate::check::checked;
use crate::epilogue::Epilogue;
use crate::product::{Asked, Origin, Product, RowMajor};
use crate::real::settings_of;
use crate::settings::{Math, SETTINGS};
use crate::types::Types;
use crate::{Refusal, log};

/// The rows of C, as stored, to which a bias is added.
const MOST_ROWS_WITH_BIAS: usize = 1 << 17;

/// The workspace of a check.
const CHECK_WORKSPACE: usize = 64 << 20;

/// The most streams, each of which has a workspace.
const MOST_STREAMS: usize = 64;

/// A device that products have run on. It lives as long as the process.
struct Gpu {
    device: Device,
    /// The column by which a bias is multiplied.
    ones: Buffer<f32>,
    /// The kernels that have been launched, and so are loaded.
    loaded: Mutex<HashSet<&'static str>>,
}

/// A context for one of the program's streams. Who holds it launches.
pub struct Own {
    gpu: &'static Gpu,
    stream: *mut c_void,
    context: Context,
    /// The same without permission to round, for a bias.
    exact: Context,
}

// SAFETY: the stream is a number for the driver, which may be called from any thread.
unsafe impl Send for Own {}

/// Those that have been opened, by the CUDA context, the stream and its thread. What failed is not
/// tried again.
#[derive(Default)]
struct Opened {
    gpus: HashMap<usize, Result<&'static Gpu, String>>,
    streams: HashMap<(usize, usize, u64), Result<&'static Mutex<Own>, String>>,
}

static OPENED: LazyLock<Mutex<Opened>> = LazyLock::new(Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Multiplies, and returns the name of the kernel.
pub fn multiply(product: &Product, call: &log::Call) -> Result<&'static str, Refusal> {
    let mut row_major = product.row_major()?;
    call.is_of(&row_major);
    // What is too small is passed on before cuBLAS is asked.
    row_major.is_taken(&SETTINGS)?;
    let stream = match product.origin {
        Origin::Stream(stream) => stream,
        Origin::Handle(handle) => {
            // SAFETY: the program calls cuBLAS with it.
            let settings = unsafe { settings_of(handle)? };
            if settings.pointer_mode != 0 {
                return Err(Refusal::PassedOn("its scalars are in the GPU's memory"));
            }
            // Without flags: `CUBLAS_PEDANTIC_MATH`, and those that allow tensor cores for f32.
            row_major.asked = match (row_major.asked, settings.math_mode & 0xf) {
                (_, 2) => Asked::Pedantic,
                (Asked::Ieee, 1 | 3) => Asked::Tf32,
                (asked, _) => asked,
            };
            row_major.is_taken(&SETTINGS)?;
            settings.stream
        }
    };
    let scalars = product.scalars.map(|scalar| match row_major.types {
        // SAFETY: they are the host's, of the type of sums.
        Types::F64 => unsafe { scalar.cast::<f64>().read_unaligned() },
        // SAFETY: as above.
        _ => unsafe { scalar.cast::<f32>().read_unaligned() }.into(),
    });
    let is_cuda = !SETTINGS.is_simulator;
    // SAFETY: the stream is the program's.
    let is_captured = is_cuda && unsafe { is_captured(stream) };
    let relaxed = is_cuda.then(Relaxed::begin).flatten();
    if is_captured && relaxed.is_none() {
        return Err(Refusal::PassedOn("it is captured, by an old driver"));
    }
    let own = locked(on_stream(stream, is_captured)?);
    own.multiply(&row_major, scalars, is_captured)
}

/// The number of this thread, from 1 on, if the stream's handle is for another stream in each.
fn thread_of(stream: *mut c_void) -> u64 {
    /// `CU_STREAM_PER_THREAD`.
    const PER_THREAD: usize = 2;
    static THREADS: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    match stream.addr() {
        PER_THREAD => NUMBER.with(|number| *number),
        _ => 0,
    }
}

/// The context for a stream of the current CUDA context. The first one opens the device.
fn on_stream(stream: *mut c_void, is_captured: bool) -> Result<&'static Mutex<Own>, Refusal> {
    let mut current = null_mut();
    if !SETTINGS.is_simulator {
        // SAFETY: the pointer outlives the call.
        let status = unsafe { cuCtxGetCurrent(&mut current) } as u32;
        if status != 0 || current.is_null() {
            return Err(Refusal::PassedOn("no CUDA context is current"));
        }
    }
    let mut opened = locked(&OPENED);
    let key = (current.addr(), stream.addr(), thread_of(stream));
    let known = opened.streams.get(&key).cloned();
    let own = match known {
        Some(own) => own,
        None if opened.streams.len() == MOST_STREAMS => {
            return Err(Refusal::PassedOn("there are too many streams"));
        }
        None => {
            let gpu = match opened.gpus.get(&key.0) {
                Some(gpu) => gpu.clone(),
                None if is_captured => {
                    return Err(Refusal::PassedOn("it is captured, and the first product"));
                }
                None => {
                    let gpu = Gpu::open(key.0);
                    opened.gpus.insert(key.0, gpu.clone());
                    gpu
                }
            };
            let own = gpu.and_then(|gpu| gpu.on_stream(stream).map_err(|error| error.to_string()));
            opened.streams.insert(key, own.clone());
            own
        }
    };
    own.map_err(Refusal::Unable)
}

impl Gpu {
    /// The device of the current CUDA context, or the simulator.
    fn open(current: usize) -> Result<&'static Gpu, String> {
        let open = || -> Result<(Device, usize), DeviceError> {
            if SETTINGS.is_simulator {
                return Ok((Device::simulator(), current));
            }
            let mut ordinal = 0;
            let mut primary = null_mut();
            // SAFETY: the pointers outlive the calls, and a context is current.
            unsafe {
                cuCtxGetDevice(&mut ordinal);
                let device = CudaDevice::open(ordinal.cast_unsigned())?;
                let entered = device.enter()?;
                cuCtxGetCurrent(&mut primary);
                drop(entered);
                Ok((device.into(), primary.addr()))
            }
        };
        let (device, context) = open().map_err(|error| error.to_string())?;
        if context != current {
            return Err("The CUDA context is not the primary one of its GPU.".to_owned());
        }
        let ones = Context::new(&device, 0).and_then(|context| {
            let ones = vec![1.0; MOST_ROWS_WITH_BIAS];
            context.upload(&ones)
        });
        Ok(Box::leak(Box::new(Gpu {
            device,
            ones: ones.map_err(|error| error.to_string())?,
            loaded: Mutex::default(),
        })))
    }

    fn on_stream(&'static self, stream: *mut c_void) -> Result<&'static Mutex<Own>, DeviceError> {
        let context = match SETTINGS.math {
            Math::Ieee => self.context(stream, SETTINGS.workspace_bytes)?,
            Math::Tf32 => self
                .context(stream, SETTINGS.workspace_bytes)?
                .allowing_tf32(),
            Math::Split => self
                .context(stream, SETTINGS.workspace_bytes)?
                .allowing_split(),
        };
        Ok(Box::leak(Box::new(Mutex::new(Own {
            gpu: self,
            stream,
            context,
            exact: self.context(stream, 0)?,
        }))))
    }

    /// A context without permission to round.
    fn context(&self, stream: *mut c_void, bytes: usize) -> Result<Context, DeviceError> {
        match self.device.one_gpu() {
            // SAFETY: the stream is of its primary context. If the program destroys it, no call has
            // it any more, but for a new one with the same handle.
            Some(gpu) => unsafe { Context::on_raw_stream(gpu, stream, bytes) },
            None => Context::new(&self.device, bytes),
        }
    }
}

/// The product `$of::<A and B, C>(..)` of these types.
macro_rules! of_types {
    ($types:expr, $of:ident($($argument:expr),*)) => {
        match $types {
            Types::F32 => $of::<f32, f32>($($argument),*),
            Types::F64 => $of::<f64, f64>($($argument),*),
            Types::Bf16 => $of::<Bf16, Bf16>($($argument),*),
            Types::Bf16F32 => $of::<Bf16, f32>($($argument),*),
            Types::F16 => $of::<F16, F16>($($argument),*),
            Types::F16F32 => $of::<F16, f32>($($argument),*),
        }
    };
}

/// A product with its alpha and beta, in one of a stream's contexts.
type Scaled<'a> = (&'a Context, &'a RowMajor, [f64; 2]);

impl Own {
    fn multiply(
        &self,
        product: &RowMajor,
        scalars: [f64; 2],
        is_captured: bool,
    ) -> Result<&'static str, Refusal> {
        let rounds = SETTINGS.math != Math::Ieee && product.asked != Asked::Pedantic;
        match product.epilogue {
            // No kernel that splits or rounds f32 has an epilogue.
            Some(Epilogue {
                bias: Some(bias),
                activation: None,
            }) if rounds && product.types == Types::F32 => {
                let bias = self.bias(bias.start, product)?;
                let of_bias = (&self.exact, &bias, [1.0, 0.0]);
                let plain = RowMajor {
                    epilogue: None,
                    ..*product
                };
                let then = (&self.context, &plain, [scalars[0], 1.0]);
                self.run(&[of_bias, then], is_captured)
            }
            _ => self.run(&[(&self.context, product, scalars)], is_captured),
        }
    }

    /// The product that writes a bias to each row of C: of a column of ones and the bias.
    fn bias(&self, bias: *const c_void, of: &RowMajor) -> Result<RowMajor, Refusal> {
        let Shape { m, n, .. } = of.shape();
        if m > MOST_ROWS_WITH_BIAS {
            return Err(Refusal::PassedOn("it has a bias and too many rows"));
        }
        let row = |start, columns, transpose| Stored {
            start,
            layout: MatrixLayout::one((1, columns), columns),
            transpose,
        };
        Ok(RowMajor {
            types: Types::F32,
            a: row(self.gpu.ones.start().cast(), m, Transpose::Yes),
            b: row(bias.cast_mut().cast(), n, Transpose::No),
            epilogue: None,
            ..*of
        })
    }

    /// Launches products of the same C, one after the other, with alpha and beta of each; returns
    /// the kernel of the last.
    fn run(&self, products: &[Scaled<'_>], is_captured: bool) -> Result<&'static str, Refusal> {
        let scaled = products
            .iter()
            .map(|(_, product, scalars)| product.as_launched(*scalars));
        let scaled: Vec<gpu_gemm::Product> = scaled.collect();
        let plan = |((context, ..), product): (&Scaled<'_>, _)| match context.plan_of(product) {
            Ok(plan) => Ok(Some(plan)),
            // It runs in parts.
            Err(GemmError::Workspace { .. }) => Ok(None),
            Err(_) => Err(Refusal::PassedOn("no kernel of this GPU has its epilogue")),
        };
        let plans = products.iter().zip(&scaled).map(plan);
        let plans: Vec<Option<Arc<Plan>>> = plans.collect::<Result<_, _>>()?;
        let kernels = || {
            let launches = plans.iter().flatten().flat_map(|plan| plan.launches());
            launches.map(|launch| launch.kernel.name)
        };
        if is_captured {
            let loaded = locked(&self.gpu.loaded);
            if plans.iter().any(Option::is_none) || !kernels().all(|name| loaded.contains(name)) {
                return Err(Refusal::PassedOn("it is captured, and has not run before"));
            }
            // Graphs of one stream may run at the same time, and would share its workspace.
            let uses_workspace = plans
                .iter()
                .flatten()
                .any(|plan| plan.workspace_bytes() > 0);
            if uses_workspace && !SETTINGS.captures_all {
                return Err(Refusal::PassedOn("it is captured, and needs workspace"));
            }
        }
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        let number = TAKEN.fetch_add(1, Ordering::Relaxed);
        let is_checked =
            SETTINGS.check > 0 && number.is_multiple_of(SETTINGS.check) && !is_captured;
        for (index, (context, product, scalars)) in products.iter().enumerate() {
            // SAFETY: the program vouches for the matrices as it does to cuBLAS, and they are as
            // long as its arguments say.
            let launched = || unsafe {
                match &plans[index] {
                    Some(plan) => Ok(context.launch(plan, &scaled[index])?),
                    None => context.enqueue(&scaled[index]),
                }
            };
            let launch = || {
                launched().map_err(|error: GemmError| {
                    // C may be half done, and is needed as it was.
                    let may_have_begun = matches!(
                        error,
                        GemmError::Device(
                            DeviceError::Launch { .. }
                                | DeviceError::Cuda { .. }
                                | DeviceError::Crashed { .. }
                                | DeviceError::ContextLost(_)
                        )
                    );
                    match may_have_begun && products[0].2[1] != 0.0 {
                        true => Refusal::Failed(error.to_string()),
                        false => Refusal::Unable(error.to_string()),
                    }
                })
            };
            match is_checked {
                true => {
                    let context = self.gpu.context(self.stream, CHECK_WORKSPACE);
                    let context = context.map_err(|error| Refusal::Unable(error.to_string()))?;
                    of_types!(
                        product.types,
                        checked(&context, product, *scalars, number, launch)
                    )?;
                }
                false => launch()?,
            }
        }
        if !is_captured {
            locked(&self.gpu.loaded).extend(kernels());
        }
        Ok(match plans.last() {
            Some(Some(plan)) => plan.variant().entry.name,
            _ => "kernels in parts",
        })
    }
}
