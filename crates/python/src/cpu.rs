//! The product without a GPU: by the rung of the CPU's ladder that the program takes, too.

use std::sync::LazyLock;

use gpu_gemm::{ElementType, Shape, Stored};
use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use verification::cpu::view::{View, ViewMut};
use verification::cpu::{Settings, Team, blocks, library};
use verification::data::Number;

use crate::product::Product;

/// Multiplies matrices of the host, row-major without gaps, of f32, f64 or i32.
///
/// # Errors
///
/// The threads do not start.
///
/// # Safety
///
/// The matrices exist, and nothing else touches C.
pub unsafe fn multiply(product: &Product) -> PyResult<()> {
    // SAFETY: as the caller vouches.
    unsafe {
        match product.plain.data_type.inputs {
            ElementType::F64 => of_type::<f64>(product),
            ElementType::I32 => of_type::<i32>(product),
            _ => of_type::<f32>(product),
        }
    }
}

/// # Safety
///
/// As for [`multiply`].
unsafe fn of_type<T: Number>(product: &Product) -> PyResult<()> {
    static TEAM: LazyLock<Result<Team, String>> =
        LazyLock::new(|| Team::new(Settings::default()).map_err(|error| error.to_string()));
    let team = TEAM
        .as_ref()
        .map_err(|error| PyRuntimeError::new_err(error.clone()))?;
    let mut rungs = [&library::RUNG, &blocks::RUNG].into_iter();
    let multiply = rungs.find_map(|rung| rung.functions.of::<T>());
    let multiply =
        multiply.ok_or_else(|| PyRuntimeError::new_err("No CPU kernel has this type."))?;
    let gpu_gemm::Product { a, b, c, .. } = product.plain;
    let Shape { m, n, k } = product.plain.shape();
    for index in 0..c.layout.count {
        let start = |of: Stored| of.start.cast::<T>().wrapping_add(index * of.layout.stride);
        if m * n > 0 {
            // SAFETY: as the caller vouches.
            let c = unsafe { std::slice::from_raw_parts_mut(start(c), m * n) };
            c.fill(T::default());
            if k > 0 {
                // SAFETY: as above.
                let [a, b] = unsafe {
                    [(a, m * k), (b, k * n)].map(|(of, length)| {
                        std::slice::from_raw_parts(start(of).cast_const(), length)
                    })
                };
                let c = ViewMut::new(c, m, n, n);
                multiply(View::new(a, m, k, k), View::new(b, k, n, n), c, team);
            }
        }
    }
    Ok(())
}
