//! Contexts of `gpu_gemm`, and launches: on the caller's stream, or of copies of the host's arrays.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::{env, mem};

use gpu_gemm::device::cuda::capture::{Relaxed, is_captured};
use gpu_gemm::{Context, CudaDevice, Device, DeviceError, GemmError};
use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

use crate::exception;
use crate::product::{Math, Product};

/// The most workspace that a context gets if a product can do with less.
const MOST_WORKSPACE: usize = 1 << 30;

/// The workspace is a multiple of this: 32 MiB, which most products can do with.
const STEP: usize = 32 << 20;

/// The most contexts that are kept.
const MOST_CONTEXTS: usize = 32;

/// `CU_STREAM_PER_THREAD`, which is another stream in each thread.
const PER_THREAD: usize = 2;

/// The variable that names what multiplies NumPy's arrays.
const VARIABLE: &str = "RUST_GEMM_DEVICE";

/// What has a context of its own: a device, the caller's stream or `None` for the device's, and
/// what products may do.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    device: usize,
    stream: Option<usize>,
    thread: Option<ThreadId>,
    math: Math,
}

/// A context, for the thread that holds the lock.
struct Own {
    context: Context,
    device: &'static Device,
    key: Key,
    /// A CUDA graph uses the workspace.
    is_in_graph: bool,
}

#[derive(Default)]
struct Opened {
    gpus: HashMap<u32, &'static Device>,
    contexts: HashMap<Key, Arc<Mutex<Own>>>,
}

static OPENED: LazyLock<Mutex<Opened>> = LazyLock::new(Mutex::default);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A GPU, which is opened once.
fn gpu(ordinal: u32) -> Result<&'static Device, DeviceError> {
    let mut opened = locked(&OPENED);
    if let Some(gpu) = opened.gpus.get(&ordinal) {
        return Ok(gpu);
    }
    let gpu: &'static Device = Box::leak(Box::new(CudaDevice::open(ordinal)?.into()));
    opened.gpus.insert(ordinal, gpu);
    Ok(gpu)
}

/// What multiplies arrays of the host: a device, or without one the CPU.
pub struct Home {
    device: Option<&'static Device>,
    pub description: String,
}

/// What multiplies arrays of the host, which is decided once.
pub fn home() -> PyResult<&'static Home> {
    static HOME: OnceLock<Result<Home, String>> = OnceLock::new();
    let open = || {
        let named = env::var(VARIABLE).unwrap_or_else(|_| "auto".to_owned());
        let on_cpu = |why: &str| {
            Ok(Home {
                device: None,
                description: format!("CPU: {why}"),
            })
        };
        let opened = match named.as_str() {
            "auto" => gpu(0),
            "cpu" => return on_cpu(&format!("{VARIABLE} says so")),
            "sim" => Ok(&*Box::leak(Box::new(Device::simulator()))),
            _ => match named
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
            {
                Some(ordinal) => gpu(ordinal),
                None => {
                    return Err(format!(
                        "{VARIABLE} is {named:?}. It is auto, cpu, sim or cuda:0."
                    ));
                }
            },
        };
        match opened {
            Ok(device) => Ok(Home {
                device: Some(device),
                description: device.description(),
            }),
            Err(error) => {
                let why = DeviceError::without_simulator(&error.to_string());
                let may_be_cpu = named == "auto" && error.means_no_usable_gpu();
                if may_be_cpu { on_cpu(&why) } else { Err(why) }
            }
        }
    };
    let home = HOME.get_or_init(open).as_ref();
    home.map_err(|why| PyRuntimeError::new_err(why.clone()))
}

impl Key {
    fn context(self, device: &'static Device, bytes: usize) -> Result<Context, DeviceError> {
        let context = match (device.one_gpu(), self.stream) {
            // SAFETY: it is of the primary context, as those of PyTorch, CuPy and JAX are. If the
            // program destroys it, no call has it any more, but for a new one of the same handle.
            (Some(gpu), Some(stream)) => unsafe {
                Context::on_raw_stream(gpu, stream as *mut _, bytes)?
            },
            _ => Context::new(device, bytes)?,
        };
        Ok(match self.math {
            Math::Ieee => context,
            Math::Tf32 => context.allowing_tf32(),
            Math::Split => context.allowing_split(),
        })
    }
}

impl Own {
    /// The context of a device for a stream, as it was left by the product before.
    fn of(
        device: &'static Device,
        stream: Option<usize>,
        math: Math,
    ) -> Result<Arc<Mutex<Own>>, DeviceError> {
        let thread = (stream == Some(PER_THREAD)).then(|| thread::current().id());
        let key = Key {
            device: std::ptr::from_ref(device).addr(),
            stream,
            thread,
            math,
        };
        let mut opened = locked(&OPENED);
        if let Some(own) = opened.contexts.get(&key) {
            return Ok(Arc::clone(own));
        }
        if opened.contexts.len() >= MOST_CONTEXTS {
            let is_kept = |own: &Mutex<Own>| own.try_lock().map_or(true, |own| own.is_in_graph);
            opened.contexts.retain(|_, own| is_kept(own));
        }
        let context = key.context(device, STEP)?;
        let own = Arc::new(Mutex::new(Own {
            context,
            device,
            key,
            is_in_graph: false,
        }));
        opened.contexts.insert(key, Arc::clone(&own));
        Ok(own)
    }

    /// Launches a product, with the workspace of its fastest plan if there is memory for it.
    ///
    /// # Safety
    ///
    /// Its matrices are the device's memory until the stream has come past it.
    unsafe fn launch(&mut self, product: &gpu_gemm::Product) -> Result<(), GemmError> {
        if product.shape().is_empty() || product.batch().count == 0 {
            return Ok(());
        }
        let chooser = self.context.chooser();
        let fastest = chooser.plan(product.data_type, product.call(), usize::MAX);
        if let Some(plan) = fastest.ok().filter(|_| product.epilogue.is_none()) {
            self.grow(plan.workspace_bytes().min(MOST_WORKSPACE))?;
        }
        // SAFETY: as the caller vouches.
        match unsafe { self.context.enqueue(product) } {
            Err(GemmError::Workspace { needed, .. }) if needed < isize::MAX as usize => {
                self.grow(needed)?;
                // SAFETY: nothing has been launched.
                unsafe { self.context.enqueue(product) }
            }
            launched => launched,
        }
    }

    /// Makes the workspace as large as that, unless there is too little memory.
    fn grow(&mut self, bytes: usize) -> Result<(), DeviceError> {
        if bytes <= self.context.workspace_bytes() {
            return Ok(());
        }
        match self.key.context(self.device, bytes.next_multiple_of(STEP)) {
            Ok(larger) => {
                let smaller = mem::replace(&mut self.context, larger);
                // What has been launched uses it, and a graph may be launched at any time.
                match self.is_in_graph {
                    true => mem::forget(smaller),
                    false => smaller.synchronize()?,
                }
                Ok(())
            }
            Err(DeviceError::OutOfMemory { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Launches a product of arrays of a GPU; if it `waits`, until it is done.
pub fn on_stream(
    product: &Product,
    ordinal: u32,
    stream: usize,
    math: Math,
    waits: bool,
) -> PyResult<bool> {
    // For tests: the memory of a simulated GPU is the host's.
    if env::var(VARIABLE).is_ok_and(|named| named == "sim") {
        return on_host(product, math);
    }
    let multiply = || {
        let device = gpu(ordinal)?;
        let entered = device.one_gpu().map(CudaDevice::enter).transpose()?;
        // SAFETY: the caller works on the stream, and its context is current.
        let is_captured = unsafe { is_captured(stream as *mut _) };
        drop(entered);
        let _relaxed = Relaxed::begin();
        let own = Own::of(device, Some(stream), math)?;
        let mut own = locked(&own);
        own.is_in_graph |= is_captured;
        let product = product.fused(product.bias);
        // SAFETY: the caller keeps the arrays, as for all that is done on the stream.
        unsafe { own.launch(&product)? };
        if waits {
            own.context.synchronize().map_err(Into::into)
        } else {
            Ok(())
        }
    };
    multiply().map_err(exception)?;
    Ok(true)
}

/// Multiplies copies of the host's arrays on a device. False if there is none that can.
pub fn on_host(product: &Product, math: Math) -> PyResult<bool> {
    let Some(device) = home()?.device else {
        return Ok(false);
    };
    let multiply = || {
        let _relaxed = (!device.is_simulator()).then(Relaxed::begin);
        let own = Own::of(device, None, math)?;
        let mut own = locked(&own);
        let [a, b, c] = [product.plain.a, product.plain.b, product.plain.c].map(|of| of.start);
        let [a_bytes, b_bytes, c_bytes] = product.bytes;
        let columns = if product.bias == 0 {
            0
        } else {
            product.plain.shape().n
        };
        let bias: *const i8 = std::ptr::without_provenance(product.bias);
        // SAFETY: the caller keeps the arrays, and nothing writes them.
        let (a, b, bias) = unsafe {
            (
                bytes(a.cast(), a_bytes),
                bytes(b.cast(), b_bytes),
                bytes(bias, 4 * columns),
            )
        };
        let (a, b) = (own.context.upload(a)?, own.context.upload(b)?);
        let bias = if columns == 0 {
            None
        } else {
            Some(own.context.upload(bias)?)
        };
        let on_device = match device.is_simulator() {
            // What is given as a GPU's array in tests may have gaps.
            // SAFETY: as above.
            true => own.context.upload(unsafe { bytes(c.cast(), c_bytes) })?,
            false => own.context.allocate(c_bytes)?,
        };
        let bias = bias.as_ref().map_or(0, |bias| bias.start().addr());
        let mut copies = product.fused(bias);
        (copies.a.start, copies.b.start) = (a.start().cast(), b.start().cast());
        copies.c.start = on_device.start().cast();
        // SAFETY: the copies live until `download_into` has waited for the product.
        unsafe { own.launch(&copies)? };
        if c_bytes > 0 {
            // SAFETY: the caller keeps C, and nothing else touches it.
            let c = unsafe { std::slice::from_raw_parts_mut(c.cast::<i8>(), c_bytes) };
            own.context.download_into(&on_device, c)?;
        }
        Ok(())
    };
    match multiply() {
        Ok(()) => Ok(true),
        Err(GemmError::Device(DeviceError::NoTensorCores { .. })) => Ok(false),
        Err(error) => Err(exception(error)),
    }
}

/// # Safety
///
/// `length` of them exist, unless it is 0, and nothing writes them.
unsafe fn bytes<'a>(start: *const i8, length: usize) -> &'a [i8] {
    match length {
        0 => &[],
        // SAFETY: as the caller vouches.
        _ => unsafe { std::slice::from_raw_parts(start, length) },
    }
}
