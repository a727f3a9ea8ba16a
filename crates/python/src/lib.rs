//! `rust_gemm._native`: what the Python module `rust_gemm` does not do in Python.
//!
//! ```text
//!  a, b, out --> Array ------> gpu_gemm::Product --> gpu: the caller's stream, or copies
//!  of Python     address,      checked               cpu: where there is no GPU
//!                strides
//! ```

mod array;
mod cpu;
mod gpu;
mod product;

use gpu_gemm::{DeviceError, GemmError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;

use array::Array;
use product::{Math, Product};

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{device, has_layout, multiply, multiply_on_cpu};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// Where NumPy arrays are multiplied, and why.
#[pyfunction]
fn device(py: Python<'_>) -> PyResult<String> {
    py.detach(gpu::home).map(|home| home.description.clone())
}

/// Whether an array is multiplied without a copy.
#[pyfunction]
fn has_layout(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(Array::of("a", array)?.matrices().is_ok())
}

/// Multiplies, and says whether it did: false if these are the host's, for the CPU. The caller
/// keeps the arrays until the stream, or without one the call, has come past the product.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // those of Python's function
fn multiply(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    bias: Option<&Bound<'_, PyAny>>,
    epilogue: Option<&str>,
    math: &str,
    stream: Option<usize>,
    waits: bool,
) -> PyResult<bool> {
    let [a, b, out] = [("a", a), ("b", b), ("out", out)].map(|(name, of)| Array::of(name, of));
    let (a, b, out) = (a?, b?, out?);
    let bias = bias.map(|bias| Array::of("bias", bias)).transpose()?;
    let math = Math::named(math)?;
    let product = Product::of([&a, &b, &out], bias.as_ref(), epilogue)?;
    py.detach(|| match (a.gpu, stream) {
        (Some(gpu), Some(stream)) => gpu::on_stream(&product, gpu, stream, math, waits),
        _ => gpu::on_host(&product, math),
    })
}

/// Multiplies arrays of the host, of float32, float64 or int32 and without gaps.
#[pyfunction]
fn multiply_on_cpu(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let (a, b, out) = (
        Array::of("a", a)?,
        Array::of("b", b)?,
        Array::of("out", out)?,
    );
    let product = Product::of([&a, &b, &out], None, None)?;
    // SAFETY: the caller keeps the arrays, which are the host's.
    py.detach(|| unsafe { cpu::multiply(&product) })
}

/// The library's sentence, or one with advice for Python.
fn exception(error: GemmError) -> PyErr {
    match &error {
        GemmError::Device(DeviceError::OutOfMemory { .. }) => PyMemoryError::new_err(format!(
            "{error} PyTorch and CuPy keep what they have freed."
        )),
        GemmError::Device(DeviceError::NotPrepared { kernel }) => PyRuntimeError::new_err(format!(
            "This product is captured into a CUDA graph, and its kernel {kernel} is not loaded yet. \
             Call it once with the same shapes before the capture."
        )),
        GemmError::NoFusedKernel { data_type, .. } => PyRuntimeError::new_err(format!(
            "No kernel multiplies {data_type} with an epilogue on this GPU. Leave epilogue and bias \
             out, and apply them to the result."
        )),
        GemmError::Workspace { needed, .. } => PyMemoryError::new_err(format!(
            "This product takes {needed} bytes of workspace, which cannot be allocated. Free memory."
        )),
        _ => PyRuntimeError::new_err(DeviceError::without_simulator(&error.to_string())),
    }
}
