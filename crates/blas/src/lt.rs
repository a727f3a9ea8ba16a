//! cublasLt's descriptions of a product.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use crate::epilogue::{Activation, Epilogue, Vector};
use crate::product::{Matrix, Origin, Product};
use crate::real::Real;
use crate::types::{F32, F64};
use crate::{COMPUTE_64F, Refusal};

/// An attribute of a description, or `None` if this cublasLt does not know it.
///
/// # Safety
///
/// The description is cublasLt's, of the kind that the function reads, and any bits are a `T`.
unsafe fn attribute<T: Copy>(get: &Real, description: *mut c_void, number: c_int) -> Option<T> {
    type Get = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize, *mut usize) -> c_int;
    let mut value = MaybeUninit::<T>::uninit();
    let mut written = 0;
    let real = get.other_than(0)?;
    // SAFETY: the type is that of `cublasLt.h`, and the value has room for what it writes.
    unsafe {
        let get = std::mem::transmute::<*mut c_void, Get>(real);
        let bytes = size_of::<T>();
        let status = get(
            description,
            number,
            value.as_mut_ptr().cast(),
            bytes,
            &mut written,
        );
        (status == 0 && written == bytes).then(|| value.assume_init())
    }
}

/// A call of `cublasLtMatmul`. `starts` and `layouts` are those of A, B, C and D.
///
/// # Errors
///
/// It does what `gpu_gemm` does not.
///
/// # Safety
///
/// The descriptions are cublasLt's, and beta is null or can be read, if it is the host's.
pub unsafe fn product(
    operation: *mut c_void,
    scalars: [*const c_void; 2],
    starts: [*const c_void; 4],
    layouts: [*mut c_void; 4],
    stream: *mut c_void,
) -> Result<Product, Refusal> {
    static OF_OPERATION: Real = Real::new("cublasLtMatmulDescGetAttribute\0");
    static OF_LAYOUT: Real = Real::new("cublasLtMatrixLayoutGetAttribute\0");
    let unknown = || Refusal::PassedOn("cublasLt does not say what it is called for");
    if layouts.contains(&operation)
        || operation.is_null()
        || layouts.iter().any(|one| one.is_null())
    {
        return Err(unknown());
    }
    // SAFETY: the caller vouches for the descriptions, and all of these are numbers.
    let (of_operation, of_layout) = unsafe {
        (
            |number| attribute::<c_int>(&OF_OPERATION, operation, number),
            |layout, number| attribute::<c_int>(&OF_LAYOUT, layout, number),
        )
    };
    // SAFETY: as above.
    let wide = |layout, number| unsafe {
        attribute::<i64>(&OF_LAYOUT, layout, number).ok_or_else(unknown)
    };
    // SAFETY: as above; these attributes are pointers.
    let pointer = |number| unsafe { attribute::<*const c_void>(&OF_OPERATION, operation, number) };
    let needed = |number| of_operation(number).ok_or_else(unknown);
    let [compute, scale, pointers, transpose_a, transpose_b, epilogue] = [
        needed(0)?,
        needed(1)?,
        needed(2)?,
        needed(3)?,
        needed(4)?,
        needed(7)?,
    ];
    if pointers != 0 {
        return Err(Refusal::PassedOn("its scalars are in the GPU's memory"));
    }
    // The transposed C, a target of SMs, scales of A, B, C and D, and the greatest element.
    let is_plain = |number| of_operation(number).is_none_or(|value| value == 0);
    let has_no_scale = (17..=21).all(|number| pointer(number).is_none_or(|scale| scale.is_null()));
    let scale_of_sums = if compute == COMPUTE_64F { F64 } else { F32 };
    if !is_plain(5) || !is_plain(15) || !has_no_scale || scale != scale_of_sums {
        return Err(Refusal::PassedOn(
            "it scales or transposes more than A and B",
        ));
    }
    // `CUBLASLT_EPILOGUE_DEFAULT`, `RELU`, `BIAS`, `RELU_BIAS`, `GELU` and `GELU_BIAS`.
    let (has_bias, activation) = match epilogue {
        1 => (false, None),
        2 => (false, Some(Activation::Relu)),
        4 => (true, None),
        6 => (true, Some(Activation::Relu)),
        32 => (false, Some(Activation::Gelu)),
        36 => (true, Some(Activation::Gelu)),
        _ => {
            return Err(Refusal::PassedOn(
                "it has another epilogue than bias, relu and gelu",
            ));
        }
    };
    let mut described = Vec::new();
    let (mut sizes, mut batches) = ([[0; 2]; 4], [0; 4]);
    for (index, &layout) in layouts.iter().enumerate() {
        // Column-major, and a batch by strides.
        if of_layout(layout, 1) != Some(0) || of_layout(layout, 8).is_some_and(|mode| mode != 0) {
            return Err(Refusal::PassedOn("a matrix is not column-major"));
        }
        sizes[index] = [wide(layout, 2)?, wide(layout, 3)?];
        batches[index] = of_layout(layout, 5).ok_or_else(unknown)?;
        let data_type = of_layout(layout, 0).ok_or_else(unknown)?;
        let (leading, stride) = (wide(layout, 4)?, wide(layout, 6)?);
        described.push(Matrix {
            start: starts[index],
            data_type,
            leading,
            stride,
        });
    }
    let [a, b, c, d] = described[..] else {
        return Err(unknown());
    };
    let op = |operation, [rows, columns]: [i64; 2]| match operation {
        0 => [rows, columns],
        _ => [columns, rows],
    };
    let ([m, k], [k_of_b, n]) = (op(transpose_a, sizes[0]), op(transpose_b, sizes[1]));
    if k != k_of_b || sizes[3] != [m, n] || batches.iter().any(|batch| *batch != batches[3]) {
        return Err(Refusal::PassedOn("its matrices do not fit together"));
    }
    let is_zero = match scale {
        _ if scalars[1].is_null() => false,
        // SAFETY: the caller vouches for beta, of this type.
        F64 => unsafe { scalars[1].cast::<f64>().read_unaligned() == 0.0 },
        // SAFETY: as above.
        _ => unsafe { scalars[1].cast::<f32>().read_unaligned() == 0.0 },
    };
    let same = |c: Matrix, d: Matrix| {
        (c.start, c.data_type, c.leading, c.stride) == (d.start, d.data_type, d.leading, d.stride)
    };
    if !is_zero && !same(c, d) {
        return Err(Refusal::PassedOn("C is not where the result goes"));
    }
    let epilogue = match (has_bias, activation) {
        (false, None) => None,
        // Where f32 is split, C is the bias first.
        _ if d.data_type == F32 && !is_zero => {
            return Err(Refusal::PassedOn("it has an epilogue beside a C of f32"));
        }
        _ if batches[3] != 1 => return Err(Refusal::PassedOn("it is a batch with an epilogue")),
        _ => Some(Epilogue {
            bias: match has_bias {
                true => Some(Vector {
                    start: pointer(8)
                        .filter(|bias| !bias.is_null())
                        .ok_or_else(unknown)?,
                    // That of D, if it is not said.
                    data_type: of_operation(26)
                        .filter(|data_type| *data_type != -1)
                        .unwrap_or(d.data_type),
                }),
                false => None,
            },
            activation,
        }),
    };
    Ok(Product {
        origin: Origin::Stream(stream),
        transposes: [transpose_a, transpose_b],
        shape: [m, n, k],
        scalars,
        a,
        b,
        c: d,
        batch: batches[3].into(),
        compute,
        epilogue,
    })
}
