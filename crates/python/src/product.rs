//! Which arrays make a product, and the product as `gpu_gemm` has it.

use std::ops::Range;

use gpu_gemm::{DataType, ElementType, Scalar, Stored, Transpose};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;
use verification::epilogue::Epilogue;

use crate::array::Array;

/// How float32 is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Math {
    Ieee,
    Tf32,
    Split,
}

impl Math {
    pub fn named(name: &str) -> PyResult<Math> {
        match name {
            "ieee" => Ok(Math::Ieee),
            "tf32" => Ok(Math::Tf32),
            "split" => Ok(Math::Split),
            _ => wrong(format!(
                "math is {name:?}. It is \"ieee\", \"split\" or \"tf32\"."
            )),
        }
    }
}

/// `C = epilogue(A * B)` of matrices that fit together.
pub struct Product {
    /// Without the epilogue.
    pub plain: gpu_gemm::Product,
    /// Bytes from the first of A, B and C to the last.
    pub bytes: [usize; 3],
    epilogue: Option<Epilogue>,
    /// The address of a float32 for each column of C, or 0.
    pub bias: usize,
}

// SAFETY: its pointers are addresses; each use of one states its requirements.
unsafe impl Send for Product {}
// SAFETY: as above.
unsafe impl Sync for Product {}

fn wrong<T>(sentence: impl Into<String>) -> PyResult<T> {
    Err(PyValueError::new_err(sentence.into()))
}

impl Product {
    /// The product of A and B into C. `__init__.py` has already said what does not fit together.
    pub fn of(
        arrays: [&Array; 3],
        bias: Option<&Array>,
        epilogue: Option<&str>,
    ) -> PyResult<Product> {
        let [a, b, c] = arrays.map(Array::matrices);
        let (a, b, c) = (a?, b?, c?);
        let data_type = DataType {
            inputs: arrays[0].element,
            c: arrays[2].element,
        };
        let (of_a, of_b, of_c) = (a.size(), b.size(), c.size());
        let is_bias = |bias: &Array| {
            let is_vector = bias.shape == [of_c.1] && bias.is_compact();
            bias.element == ElementType::F32 && is_vector && bias.gpu == arrays[0].gpu
        };
        let fits = (of_a.0, of_a.1, of_b.1) == (of_c.0, of_b.0, of_c.1)
            && [a, b].iter().all(|one| [c.layout.count, 1].contains(&one.layout.count))
            && arrays.iter().all(|one| one.gpu == arrays[0].gpu)
            && arrays[1].element == data_type.inputs
            && DataType::ALL.contains(&data_type)
            && bias.is_none_or(is_bias)
            // Copies of the host's arrays come back as a whole.
            && (arrays[2].gpu.is_some() || arrays[2].is_compact());
        if !fits {
            return wrong("These arrays do not fit together, or bias or out has gaps.");
        }
        if c.layout.overlaps() {
            return wrong("The matrices of out overlap. Pass another out, or none.");
        }
        let bytes = |of: Stored, array: &Array| of.layout.extent() * array.element.bytes();
        let bytes = [
            bytes(a, arrays[0]),
            bytes(b, arrays[1]),
            bytes(c, arrays[2]),
        ];
        let [in_a, in_b, in_c] =
            [(a, bytes[0]), (b, bytes[1]), (c, bytes[2])].map(|(of, bytes)| {
                let start = of.start.addr();
                start..start + bytes
            });
        let share = |of: Range<usize>| of.start < in_c.end && in_c.start < of.end;
        if share(in_a) || share(in_b) {
            return wrong("out shares memory with a or b. Pass another out, or none.");
        }
        // Those with a bias have none where its address is 0.
        let epilogue = match epilogue {
            None => bias.is_some().then_some(Epilogue::Bias),
            Some("relu") => Some(Epilogue::BiasRelu),
            Some("gelu") => Some(Epilogue::BiasGelu),
            Some(_) => Some(Epilogue::BiasSilu),
        };
        let is_flipped = c.transpose == Transpose::Yes;
        if is_flipped && bias.is_some() {
            return wrong("out is column-major. With a bias it must be row-major.");
        }
        // C^T = B^T * A^T.
        let [a, b, c] = match is_flipped {
            true => [b.transposed(), a.transposed(), c.transposed()],
            false => [a, b, c],
        };
        let (alpha, beta) = match data_type.inputs {
            ElementType::F64 => (Scalar::F64(1.0), Scalar::F64(0.0)),
            ElementType::I32 | ElementType::I8 => (Scalar::I32(1), Scalar::I32(0)),
            _ => (Scalar::F32(1.0), Scalar::F32(0.0)),
        };
        Ok(Product {
            plain: gpu_gemm::Product {
                data_type,
                alpha,
                beta,
                a,
                b,
                c,
                epilogue: None,
                first: [0; 3],
            },
            bytes: if is_flipped {
                [bytes[1], bytes[0], bytes[2]]
            } else {
                bytes
            },
            epilogue,
            bias: bias.map_or(0, |bias| bias.start),
        })
    }

    /// The product for a device, with a bias in its memory.
    pub fn fused(&self, bias: usize) -> gpu_gemm::Product {
        let bias = std::ptr::without_provenance(bias);
        gpu_gemm::Product {
            epilogue: self.epilogue.map(|epilogue| epilogue.fusion(bias)),
            ..self.plain
        }
    }
}
