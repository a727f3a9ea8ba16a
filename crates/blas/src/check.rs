//! Freivalds' check: `C * V = alpha * A * (B * V) + beta * C' * V` for a V of few random columns.
//!
//! It takes four products of few columns instead of the one that it checks. V is of +1 and -1, and
//! its products are compared in f64, with a bound from the sizes and the number of the summands. A
//! single wrong element of a C of f32 is found if it is wrong by more than about a hundredth of a
//! typical one; in a C of bf16, whose elements are themselves rounded by that, a wrong row of 16 or
//! more is.
//!
//! An activation is not linear. After one, V selects 16 random columns of C, and the activation is
//! computed in f64: a wrong row is found, and a wrong element in one of these columns.

use std::io::{Write, stderr};

use gpu_gemm::{
    Bf16, Context, Element, ElementType, F16, GemmError, Input, MatrixLayout, MultipliesInto,
    Scalar, Shape, Stored, Transpose, gemm,
};

use crate::Refusal;
use crate::epilogue::{Epilogue, Vector};
use crate::operands::{input, number};
use crate::product::RowMajor;
use crate::settings::{Math, SETTINGS};
use crate::types::{BF16, F16 as HALF, Types};

/// The columns of V.
const COLUMNS: usize = 16;

/// Numbers of few columns, row-major.
type Columns = Vec<f64>;

/// Runs `launch` and checks the result of one product of the batch. A wrong one ends the process.
pub fn checked<T: Factor, C: Factor>(
    context: &Context,
    product: &RowMajor,
    scalars: [f64; 2],
    seed: u64,
    launch: impl FnOnce() -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let one = one_of(product, seed as usize % product.count());
    let unable = |error: GemmError| Refusal::Unable(format!("A check is impossible: {error}"));
    let before = Check::before::<C>(context, &one, scalars, seed).map_err(unable)?;
    launch()?;
    match before.after::<T, C>(context, &one, scalars) {
        Ok(None) => Ok(()),
        // The result is there, and was not found to be wrong.
        Err(error) => {
            let _ = writeln!(stderr(), "gemm_blas: {}", error);
            Ok(())
        }
        Ok(Some(wrong)) => {
            let [alpha, beta] = scalars;
            let _ = writeln!(
                stderr(),
                "gemm_blas: GEMM_BLAS_CHECK found a wrong result: {product} alpha={alpha} \
                 beta={beta}: {wrong}"
            );
            std::process::abort()
        }
    }
}

/// A product of a batch alone.
fn one_of(product: &RowMajor, index: usize) -> RowMajor {
    let types = product.types.data_type();
    let at = |stored: Stored, element: ElementType| Stored {
        start: stored
            .start
            .wrapping_add(index * stored.layout.stride * element.bytes()),
        layout: stored.layout.batched(1, 0),
        ..stored
    };
    RowMajor {
        a: at(product.a, types.inputs),
        b: at(product.b, types.inputs),
        c: at(product.c, types.c),
        ..*product
    }
}

/// What is known before the product is computed.
struct Check {
    /// N rows: random signs, or, as an activation is of single elements, random columns of C.
    v: Columns,
    /// `C * V`, M rows, where beta is not 0.
    old: Columns,
    random: Random,
}

impl Check {
    fn before<C: Factor>(
        context: &Context,
        product: &RowMajor,
        [_, beta]: [f64; 2],
        seed: u64,
    ) -> Result<Check, GemmError> {
        let mut random = Random(seed.wrapping_mul(2).wrapping_add(1));
        let Shape { m, n, .. } = product.shape();
        let v = match product.epilogue {
            Some(Epilogue {
                activation: Some(_),
                ..
            }) => {
                let mut v = vec![0.0; n * COLUMNS];
                (0..COLUMNS).for_each(|column| v[random.below(n) * COLUMNS + column] = 1.0);
                v
            }
            _ => (0..n * COLUMNS).map(|_| random.sign()).collect(),
        };
        let old = match beta {
            0.0 => vec![0.0; m * COLUMNS],
            _ => C::times(context, &product.c, &v)?,
        };
        Ok(Check { v, old, random })
    }

    /// A sentence if the result is wrong.
    fn after<T: Factor, C: Factor>(
        mut self,
        context: &Context,
        product: &RowMajor,
        [alpha, beta]: [f64; 2],
    ) -> Result<Option<String>, GemmError> {
        let Shape { m, n, k } = product.shape();
        let new = C::times(context, &product.c, &self.v)?;
        let (expected, terms) = match alpha == 0.0 || k == 0 {
            true => (vec![0.0; m * COLUMNS], vec![0.0; m * COLUMNS]),
            false => {
                let bv = T::times(context, &product.b, &self.v)?;
                // 16 bits hold it in three parts, of a size that f16 has.
                let largest = bv.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
                let unit = match largest > 0.0 && largest.is_finite() {
                    true => largest.log2().floor().exp2() / 1024.0,
                    false => 1.0,
                };
                let mut rest: Columns = bv.iter().map(|value| value / unit).collect();
                let mut sum = vec![0.0; m * COLUMNS];
                for _ in 0..if size_of::<T>() == 2 { 3 } else { 1 } {
                    let part: Columns = rest.iter().map(|x| rounded::<T>(*x)).collect();
                    let product = T::times(context, &product.a, &part)?;
                    sum.iter_mut()
                        .zip(product)
                        .for_each(|(sum, x)| *sum += x * unit);
                    rest.iter_mut()
                        .zip(part)
                        .for_each(|(rest, part)| *rest -= part);
                }
                // The size of the terms of each sum: those of a row of B, with random signs.
                let sizes: Columns = bv
                    .chunks(COLUMNS)
                    .flat_map(|row| {
                        let size = mean_square(row).sqrt() / unit;
                        std::array::from_fn::<f64, COLUMNS, _>(|_| size * self.random.sign())
                    })
                    .collect();
                let terms = T::times(context, &product.a, &sizes)?;
                (sum, terms.into_iter().map(|x| x * unit).collect())
            }
        };
        let epilogue = product.epilogue;
        let bias = match epilogue.and_then(|epilogue| epilogue.bias) {
            Some(bias) => times_bias(context, bias, n, &self.v)?,
            None => vec![0.0; COLUMNS],
        };
        let (of_sums, of_c) = rounding(product.types);
        let depth = (k as f64).sqrt() + (n as f64).sqrt();
        for (row, new) in new.chunks(COLUMNS).enumerate() {
            let of_row = |columns: &Columns| columns[row * COLUMNS..][..COLUMNS].to_vec();
            let (expected, old, terms) = (of_row(&expected), of_row(&self.old), of_row(&terms));
            let size = alpha * alpha * mean_square(&terms) + beta * beta * mean_square(&old);
            let size = (size + mean_square(new) + mean_square(&bias)).sqrt();
            let bound = size * (16.0 * of_sums * depth + 4.0 * of_c) + f64::from(f32::MIN_POSITIVE);
            for (column, new) in new.iter().enumerate() {
                let expected = alpha * expected[column] + beta * old[column] + bias[column];
                let expected = epilogue.map_or(expected, |epilogue| epilogue.activation(expected));
                // Not of infinities and NaNs in the matrices, nor where 16 bits have no number.
                let is_known = expected.is_finite() && (new.is_finite() || size_of::<C>() > 2);
                let error = (new - expected).abs();
                if is_known && (error > bound || error.is_nan()) {
                    return Ok(Some(format!(
                        "row {row} of the row-major C times random signs is {new:e} in place of \
                         {expected:e}, and rounding explains only {bound:e}"
                    )));
                }
            }
        }
        Ok(None)
    }
}

/// The rounding of sums and of inputs, and of the elements of C, relative to them.
fn rounding(types: Types) -> (f64, f64) {
    let of_f32 = match SETTINGS.math {
        Math::Ieee => 2.0_f64.powi(-24),
        Math::Split => 2.0_f64.powi(-21),
        Math::Tf32 => 2.0_f64.powi(-10),
    };
    match types {
        Types::F32 => (of_f32, 0.0),
        Types::F64 => (2.0_f64.powi(-53), 0.0),
        Types::Bf16F32 | Types::F16F32 => (2.0_f64.powi(-23), 0.0),
        Types::Bf16 => (2.0_f64.powi(-23), 2.0_f64.powi(-8)),
        Types::F16 => (2.0_f64.powi(-23), 2.0_f64.powi(-11)),
    }
}

fn mean_square(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum::<f64>() / numbers.len() as f64
}

/// What is left of a number in a type.
fn rounded<T: Element>(value: f64) -> f64 {
    to_f64(number::<T>(value))
}

fn to_f64<T: Element>(number: T) -> f64 {
    match number.scalar() {
        Scalar::F32(value) => value.into(),
        Scalar::F64(value) => value,
        Scalar::I32(value) => value.into(),
    }
}

/// A type of elements, whose products are added up in another.
pub trait Factor: Element {
    /// The matrix, as it is multiplied, times few columns; waits for it.
    fn times(context: &Context, matrix: &Stored, columns: &[f64]) -> Result<Columns, GemmError>;
}

macro_rules! factors {
    ($($type:ty => $sum:ty;)*) => {$(
        impl Factor for $type {
            fn times(
                context: &Context,
                matrix: &Stored,
                columns: &[f64],
            ) -> Result<Columns, GemmError> {
                times::<$type, $sum>(context, matrix, columns)
            }
        }
    )*};
}

factors! {
    f32 => f32;
    f64 => f64;
    Bf16 => f32;
    F16 => f32;
}

/// A bias of a number for each of `n` columns of C, times few columns.
fn times_bias(
    context: &Context,
    bias: Vector,
    n: usize,
    columns: &[f64],
) -> Result<Columns, GemmError> {
    let row = Stored {
        start: bias.start.cast_mut().cast(),
        layout: MatrixLayout::one((1, n), n),
        transpose: Transpose::No,
    };
    match bias.data_type {
        BF16 => Bf16::times(context, &row, columns),
        HALF => F16::times(context, &row, columns),
        _ => f32::times(context, &row, columns),
    }
}

fn times<T: MultipliesInto<S>, S: Element>(
    context: &Context,
    matrix: &Stored,
    columns: &[f64],
) -> Result<Columns, GemmError> {
    let (rows, depth) = matrix.size();
    let columns: Vec<T> = columns.iter().map(|value| number(*value)).collect();
    let columns = context.upload(&columns)?;
    let mut product = context.allocate::<S>(rows * COLUMNS)?;
    // SAFETY: the matrix is the program's, as long as its sizes say, and the buffers live until
    // `download` has waited.
    unsafe {
        let matrix_input: Input<'_, T> = input(matrix);
        let [one, zero] = [1.0, 0.0].map(number);
        gemm(
            context,
            one,
            matrix_input,
            matrix.layout.leading,
            &columns,
            COLUMNS,
            zero,
            &mut product,
            COLUMNS,
            rows,
            COLUMNS,
            depth,
        )?;
    }
    let product = context.download(&product)?;
    Ok(product.into_iter().map(to_f64).collect())
}

/// xorshift.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 32) as usize
    }

    fn sign(&mut self) -> f64 {
        if self.bits() & 1 == 0 { 1.0 } else { -1.0 }
    }

    fn below(&mut self, end: usize) -> usize {
        self.bits() % end
    }
}

#[cfg(test)]
mod tests {
    use gpu_gemm::{Bf16, Device, F16, Transpose};

    use super::*;
    use crate::epilogue::Activation;
    use crate::product::Asked;

    /// What a check says of a product in which `wrong` changes C, of 30 rows and 40 columns, after
    /// it was computed.
    fn said<T: Factor, C: Factor>(types: Types, wrong: impl Fn(&mut [f64])) -> Option<String> {
        said_of::<T, C>(types, None, wrong)
    }

    /// The same after an activation, with a bias of f32.
    fn said_of<T: Factor, C: Factor>(
        types: Types,
        activation: Option<Activation>,
        wrong: impl Fn(&mut [f64]),
    ) -> Option<String> {
        // SAFETY: no other test reads the environment.
        unsafe { std::env::set_var("GEMM_BLAS_DEVICE", "simulator") };
        let mut random = Random(7);
        let mut matrix = |count| -> Vec<f64> {
            (0..count)
                .map(|i| (1.0 + (i % 7) as f64) * random.sign())
                .collect()
        };
        let (a, b, old) = (matrix(30 * 50), matrix(50 * 40), matrix(30 * 40));
        let mut new = old.clone();
        let bias: Vec<f32> = (0..40).map(|column| column as f32 - 20.0).collect();
        let epilogue = activation.map(|activation| Epilogue {
            bias: Some(Vector {
                start: bias.as_ptr().cast(),
                data_type: 0,
            }),
            activation: Some(activation),
        });
        for (index, c) in new.iter_mut().enumerate() {
            let terms =
                (0..50).map(|depth| a[index / 40 * 50 + depth] * b[depth * 40 + index % 40]);
            *c = 2.0 * terms.sum::<f64>() - 3.0 * *c;
            if let Some(epilogue) = epilogue {
                *c = epilogue.activation(*c + f64::from(bias[index % 40]));
            }
        }
        let in_type = |numbers: &[f64]| -> Vec<T> { numbers.iter().map(|x| number(*x)).collect() };
        let (a, b) = (in_type(&a), in_type(&b));
        let mut c: Vec<C> = old.iter().map(|x| number(*x)).collect();
        let stored = |start: *const u8, rows, columns| Stored {
            start: start.cast_mut(),
            layout: MatrixLayout::one((rows, columns), columns),
            transpose: Transpose::No,
        };
        let product = RowMajor {
            types,
            asked: Asked::Ieee,
            a: stored(a.as_ptr().cast(), 30, 50),
            b: stored(b.as_ptr().cast(), 50, 40),
            c: stored(c.as_mut_ptr().cast_const().cast(), 30, 40),
            epilogue,
        };
        let device = Device::simulator();
        let context = Context::new(&device, 0).unwrap();
        let scalars = [2.0, -3.0];
        let check = Check::before::<C>(&context, &product, scalars, 5).unwrap();
        wrong(&mut new);
        let written: Vec<C> = new.iter().map(|x| number(*x)).collect();
        c.copy_from_slice(&written);
        check.after::<T, C>(&context, &product, scalars).unwrap()
    }

    #[test]
    fn a_wrong_element_is_found_and_rounding_is_not_wrong() {
        assert_eq!(said::<f32, f32>(Types::F32, |_| ()), None);
        assert_eq!(said::<f64, f64>(Types::F64, |_| ()), None);
        assert_eq!(said::<Bf16, Bf16>(Types::Bf16, |_| ()), None);
        assert_eq!(said::<F16, F16>(Types::F16, |_| ()), None);
        assert_eq!(said::<F16, f32>(Types::F16F32, |_| ()), None);
        let found = said::<f32, f32>(Types::F32, |c| c[17 * 40 + 5] += 1.0).unwrap();
        assert!(found.starts_with("row 17 of the row-major C "), "{found}");
        assert!(said::<f64, f64>(Types::F64, |c| c[0] *= 1.0 + 1e-9).is_some());
        assert!(said::<f32, f32>(Types::F32, |c| c[1] = f64::NAN).is_some());
        // A row that was not written.
        assert!(said::<Bf16, Bf16>(Types::Bf16, |c| c[..40].fill(0.0)).is_some());
        assert!(said::<F16, F16>(Types::F16, |c| c[40..80].fill(1.0)).is_some());
    }

    #[test]
    fn a_wrong_row_is_found_after_an_activation() {
        for activation in [Activation::Relu, Activation::Gelu].map(Some) {
            let in_f32 = |wrong: &dyn Fn(&mut [f64])| {
                said_of::<f32, f32>(Types::F32, activation, |c| wrong(c))
            };
            let in_bf16 = |wrong: &dyn Fn(&mut [f64])| {
                said_of::<Bf16, Bf16>(Types::Bf16, activation, |c| wrong(c))
            };
            assert_eq!((in_f32(&|_| ()), in_bf16(&|_| ())), (None, None));
            // One that begins too early, and one that was not written.
            let shifted = |c: &mut [f64]| c.copy_within(17 * 40 + 1..18 * 40, 17 * 40);
            let missing = |c: &mut [f64]| c[3 * 40..4 * 40].fill(0.0);
            for found in [in_f32(&shifted), in_f32(&missing), in_bf16(&shifted)] {
                assert!(found.is_some(), "{activation:?}");
            }
            assert!(in_bf16(&missing).is_some(), "{activation:?}");
        }
    }
}
