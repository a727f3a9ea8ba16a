//! Arrays of Python: NumPy's, and by DLPack those of a GPU.

use std::ffi::c_void;

use gpu_gemm::{ElementType, MatrixLayout, Stored, Transpose};
use pyo3::PyResult;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The elements of an array.
pub struct Array {
    pub name: &'static str,
    pub start: usize,
    pub element: ElementType,
    /// The GPU's number, or `None` for the host.
    pub gpu: Option<u32>,
    pub shape: Vec<usize>,
    /// In elements.
    strides: Vec<isize>,
}

/// `DLTensor` of DLPack.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: [i32; 2],
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    /// Null for an array without gaps.
    strides: *const i64,
    byte_offset: u64,
}

impl Array {
    /// An array that its library describes by a capsule; or one of NumPy, aligned and in this
    /// machine's order of bytes.
    pub fn of(name: &'static str, of: &Bound<'_, PyAny>) -> PyResult<Array> {
        if let Ok(capsule) = of.cast::<PyCapsule>() {
            let tensor = capsule.pointer_checked(Some(c"dltensor"))?;
            // SAFETY: a capsule of this name begins with one.
            return unsafe { Array::of_tensor(name, tensor.cast::<Tensor>().as_ref()) };
        }
        let dtype: String = of.getattr("dtype")?.getattr("name")?.extract()?;
        let element = match dtype.as_str() {
            "float32" => ElementType::F32,
            "float64" => ElementType::F64,
            "bfloat16" => ElementType::Bf16,
            "float16" => ElementType::F16,
            "int32" => ElementType::I32,
            "int8" => ElementType::I8,
            other => return Err(PyTypeError::new_err(format!("{name} is of {other}."))),
        };
        let start = of.getattr("__array_interface__")?.get_item("data")?;
        let strides: Vec<isize> = of.getattr("strides")?.extract()?;
        let bytes = element.bytes() as isize;
        Ok(Array {
            name,
            start: start.get_item(0)?.extract()?,
            element,
            gpu: None,
            shape: of.getattr("shape")?.extract()?,
            strides: strides.iter().map(|step| step / bytes).collect(),
        })
    }

    /// # Safety
    ///
    /// Its pointers are valid.
    unsafe fn of_tensor(name: &'static str, tensor: &Tensor) -> PyResult<Array> {
        let element = match (tensor.code, tensor.bits, tensor.lanes) {
            (2, 32, 1) => ElementType::F32,
            (2, 64, 1) => ElementType::F64,
            (4, 16, 1) => ElementType::Bf16,
            (2, 16, 1) => ElementType::F16,
            (0, 32, 1) => ElementType::I32,
            (0, 8, 1) => ElementType::I8,
            _ => return Err(PyTypeError::new_err(format!("{name} is of another type."))),
        };
        let numbers = |start: *const i64| match tensor.dimensions {
            0 => &[][..],
            // SAFETY: there is one for each dimension.
            count => unsafe { std::slice::from_raw_parts(start, count as usize) },
        };
        let shape: Vec<usize> = numbers(tensor.shape)
            .iter()
            .map(|&size| size as usize)
            .collect();
        let strides = match tensor.strides.is_null() {
            true => compact(&shape),
            false => numbers(tensor.strides)
                .iter()
                .map(|&step| step as isize)
                .collect(),
        };
        let [kind, ordinal] = tensor.device;
        Ok(Array {
            name,
            start: tensor.data.addr() + tensor.byte_offset as usize,
            element,
            // CUDA's memory, and managed memory.
            gpu: matches!(kind, 2 | 13).then_some(ordinal as u32),
            shape,
            strides,
        })
    }

    /// Its matrices, if the elements of their rows or of their columns follow each other.
    pub fn matrices(&self) -> PyResult<Stored> {
        self.with_layout().ok_or_else(|| {
            PyValueError::new_err(format!(
                "{0} has the strides {1:?}: neither in rows nor in columns of a matrix does each \
                 element follow the one before it. Pass a copy: {0}.contiguous() in PyTorch, \
                 cupy.ascontiguousarray({0}) in CuPy.",
                self.name, self.strides
            ))
        })
    }

    fn with_layout(&self) -> Option<Stored> {
        let (count, by_matrix, rows, columns, by_row, by_column) =
            match (&self.shape[..], &self.strides[..]) {
                (&[rows, columns], &[by_row, by_column]) => {
                    (1, 0, rows, columns, by_row, by_column)
                }
                (&[count, rows, columns], &[by_matrix, by_row, by_column]) => {
                    (count, by_matrix, rows, columns, by_row, by_column)
                }
                _ => return None,
            };
        // Steps along a dimension of one element have no meaning.
        let is_empty = self.shape.contains(&0);
        let leading = |rows: usize, columns: usize, by_row: isize, by_column: isize| {
            let by_row = match rows <= 1 || is_empty {
                true => columns,
                false => usize::try_from(by_row).ok()?,
            };
            let follow = by_column == 1 || columns <= 1 || is_empty;
            (follow && by_row >= columns).then_some(by_row)
        };
        let (transpose, leading) = match leading(rows, columns, by_row, by_column) {
            Some(leading) => (Transpose::No, leading),
            None => (Transpose::Yes, leading(columns, rows, by_column, by_row)?),
        };
        let stride = match count > 1 && !is_empty {
            true => usize::try_from(by_matrix).ok()?,
            false => 0,
        };
        let one = MatrixLayout::one(transpose.of((rows, columns)), leading);
        Some(Stored {
            start: std::ptr::without_provenance_mut(self.start),
            layout: one.batched(count, stride),
            transpose,
        })
    }

    /// Whether it is row-major without gaps.
    pub fn is_compact(&self) -> bool {
        let mut steps = self
            .shape
            .iter()
            .zip(self.strides.iter().zip(compact(&self.shape)));
        self.shape.contains(&0)
            || steps.all(|(&size, (&step, compact))| size == 1 || step == compact)
    }
}

/// The strides of an array without gaps.
fn compact(shape: &[usize]) -> Vec<isize> {
    let after = |index: usize| shape[index + 1..].iter().product::<usize>() as isize;
    (0..shape.len()).map(after).collect()
}
