//! A product as cuBLAS has it, the same row-major, and which of them are taken.

use std::ffi::{c_int, c_void};
use std::fmt;

use gpu_gemm::{MatrixLayout, Scalar, Shape, Stored, Transpose};

use crate::Refusal;
use crate::epilogue::Epilogue;
use crate::settings::{Math, Settings, Take};
use crate::types::{BF16, F16, F32, F64, Types};

/// A column-major matrix, or the first of a batch.
#[derive(Clone, Copy)]
pub struct Matrix {
    pub start: *const c_void,
    pub data_type: c_int,
    pub leading: i64,
    pub stride: i64,
}

/// What says on which stream a product runs, and where its scalars are.
#[derive(Clone, Copy)]
pub enum Origin {
    /// A handle of cuBLAS.
    Handle(*mut c_void),
    /// A call of cublasLt, with scalars on the host.
    Stream(*mut c_void),
}

/// `C = alpha * op(A) * op(B) + beta * C`, with an epilogue or without.
pub struct Product {
    pub origin: Origin,
    pub transposes: [c_int; 2],
    pub shape: [i64; 3],
    /// Alpha and beta, which may be in the GPU's memory.
    pub scalars: [*const c_void; 2],
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub batch: i64,
    /// A `cublasComputeType_t`.
    pub compute: c_int,
    pub epilogue: Option<Epilogue>,
}

/// What the program allows for products of f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Pedantic,
    Ieee,
    Tf32,
}

/// The product as `gpu_gemm` has it. A column-major matrix is the transposed one row-major, and
/// `C^T = op(B)^T * op(A)^T`: A and B change places, and so do the rows and columns of C.
pub struct RowMajor {
    pub types: Types,
    pub asked: Asked,
    pub a: Stored,
    pub b: Stored,
    pub c: Stored,
    pub epilogue: Option<Epilogue>,
}

const INVALID: Refusal = Refusal::PassedOn("its arguments are not valid");

impl Product {
    /// # Errors
    ///
    /// Arguments are not valid, which cuBLAS reports, or of types that no kernel multiplies.
    pub fn row_major(&self) -> Result<RowMajor, Refusal> {
        let size = |size: i64| usize::try_from(size).map_err(|_| INVALID);
        // `CUBLAS_COMPUTE_32F`, the pedantic one, and those that may round f32; then of f64.
        let (sums, asked) = match self.compute {
            68 => (F32, Asked::Ieee),
            69 => (F32, Asked::Pedantic),
            74 | 75 | 77 => (F32, Asked::Tf32),
            70 | 71 => (F64, Asked::Ieee),
            _ => return Err(Refusal::PassedOn("its sums are of another type")),
        };
        let inputs = [self.a, self.b].map(|matrix| matrix.data_type);
        let types = match (inputs, self.c.data_type, sums) {
            ([F32, F32], F32, F32) => Types::F32,
            ([F64, F64], F64, F64) => Types::F64,
            ([BF16, BF16], BF16, F32) => Types::Bf16,
            ([BF16, BF16], F32, F32) => Types::Bf16F32,
            ([F16, F16], F16, F32) => Types::F16,
            ([F16, F16], F32, F32) => Types::F16F32,
            _ => return Err(Refusal::PassedOn("no kernel multiplies its types")),
        };
        if self
            .epilogue
            .is_some_and(|epilogue| epilogue.fusion(types).is_none())
        {
            return Err(Refusal::PassedOn("no kernel has its epilogue in its types"));
        }
        let [m, n, k] = [
            size(self.shape[1])?,
            size(self.shape[0])?,
            size(self.shape[2])?,
        ];
        let count = size(self.batch)?;
        let stored = |matrix: Matrix, operation, rows_columns| {
            let transpose = match operation {
                0 => Transpose::No,
                // The conjugate of a real matrix is the matrix.
                1 | 2 => Transpose::Yes,
                _ => return Err(INVALID),
            };
            let leading = size(matrix.leading)?;
            let stride = if count > 1 { size(matrix.stride)? } else { 0 };
            let one = MatrixLayout::one(transpose.of(rows_columns), leading);
            let stored = Stored {
                start: matrix.start.cast_mut().cast(),
                layout: one.batched(count, stride),
                transpose,
            };
            let extent = stored.layout.extent();
            let fits = extent
                .checked_mul(8)
                .is_some_and(|bytes| bytes < isize::MAX as usize);
            match fits
                && leading >= stored.layout.columns.max(1)
                && (extent == 0 || !stored.start.is_null())
            {
                true => Ok(stored),
                false => Err(INVALID),
            }
        };
        if self.scalars.iter().any(|scalar| scalar.is_null()) {
            return Err(INVALID);
        }
        let c = stored(self.c, 0, (m, n))?;
        if c.layout.overlaps() {
            return Err(Refusal::PassedOn("its matrices C overlap"));
        }
        Ok(RowMajor {
            types,
            asked,
            a: stored(self.b, self.transposes[1], (m, k))?,
            b: stored(self.a, self.transposes[0], (k, n))?,
            c,
            epilogue: self.epilogue,
        })
    }
}

impl RowMajor {
    pub fn shape(&self) -> Shape {
        let ((m, k), (_, n)) = (self.a.size(), self.b.size());
        Shape { m, n, k }
    }

    /// The number of products.
    pub fn count(&self) -> usize {
        self.c.layout.count
    }

    /// For plans and launches.
    pub fn as_launched(&self, [alpha, beta]: [f64; 2]) -> gpu_gemm::Product {
        let scalar = |value: f64| match self.types {
            Types::F64 => Scalar::F64(value),
            _ => Scalar::F32(value as f32),
        };
        gpu_gemm::Product {
            data_type: self.types.data_type(),
            alpha: scalar(alpha),
            beta: scalar(beta),
            a: self.a,
            b: self.b,
            c: self.c,
            epilogue: self
                .epilogue
                .and_then(|epilogue| epilogue.fusion(self.types)),
            first: [0; 3],
        }
    }

    /// Whether this library multiplies it, and if not, why. What is small is passed on first: a
    /// launch of 10 us gains nothing that the call does not cost. All figures are from
    /// `docs/src/results.md`: an H200, beside the faster of cuBLAS and cublasLt.
    pub fn is_taken(&self, settings: &Settings) -> Result<(), Refusal> {
        let shape @ Shape { m, n, k } = self.shape();
        let flops = shape.flops() * self.count() as f64;
        let (shorter, is_f32) = (m.min(n), self.types == Types::F32);
        let rounds = |math| is_f32 && settings.math == math && self.asked != Asked::Pedantic;
        let why_not = match settings.take {
            _ if shape.is_empty() || self.count() == 0 => "it is empty",
            _ if is_f32 && settings.math != Math::Ieee && self.asked == Asked::Pedantic => {
                "it is pedantic"
            }
            Take::Nothing => "GEMM_BLAS_TAKE is none",
            Take::All => return Ok(()),
            Take::Faster if flops < (1 << 28) as f64 => "it is small",
            Take::Faster => match self.types {
                // As fast as cuBLAS from 2048 on, and slower below.
                Types::F64 => "cuBLAS is as fast in f64",
                Types::F32 if self.epilogue.is_some_and(|one| one.activation.is_some()) => {
                    "cublasLt computes the activation in its kernel"
                }
                // 2.7 times as fast at 2048, 4.4 times at 8192. The program that allows tf32 has
                // what is faster still.
                Types::F32 if rounds(Math::Split) && self.asked == Asked::Ieee => {
                    match shorter.min(k) >= 256 && flops >= (1 << 30) as f64 {
                        true => return Ok(()),
                        false => "it is too small to be split",
                    }
                }
                Types::F32 if rounds(Math::Tf32) => match shorter.min(k) >= 128 {
                    true => return Ok(()),
                    false => "it is too narrow for tf32",
                },
                Types::F32 if self.asked == Asked::Tf32 => "cuBLAS is as fast in tf32",
                // The kernels with an epilogue are not those for large products.
                Types::F32 if self.epilogue.is_some() => "cublasLt adds the bias in its kernel",
                // 1.46 to 1.81 times as fast.
                Types::F32 if (4..=16).contains(&shorter) && k >= 128 => return Ok(()),
                // 1.00 to 1.20 times as fast; of the smaller shapes some are at 0.94.
                Types::F32 if shorter >= 128 && k >= 128 && flops >= (1_u64 << 32) as f64 => {
                    return Ok(());
                }
                Types::F32 => "cuBLAS may be faster at this shape",
                // 1.3 to 2.3 times as fast, where cuBLAS loads single elements.
                _ if !self.is_aligned() && shorter >= 256 && flops >= (1 << 30) as f64 => {
                    return Ok(());
                }
                // 0.85 to 1.04.
                _ => "cuBLAS is as fast in 16 bits",
            },
        };
        Err(Refusal::PassedOn(why_not))
    }

    /// Whether each row of A, B and C, of 16 bits, begins at a multiple of 16 bytes.
    fn is_aligned(&self) -> bool {
        [&self.a, &self.b, &self.c].iter().all(|stored| {
            let rows = [stored.layout.leading, stored.layout.stride]
                .iter()
                .all(|step| step.is_multiple_of(8));
            rows && stored.start.addr().is_multiple_of(16)
        })
    }
}

impl fmt::Display for RowMajor {
    /// As the program called it: column-major.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |stored: &Stored| match stored.transpose {
            Transpose::No => 'N',
            Transpose::Yes => 'T',
        };
        let ([a, b], shape) = ([&self.b, &self.a], self.shape());
        write!(
            formatter,
            "{:?} m={} n={} k={} {}{} lda={} ldb={} ldc={} batch={}",
            self.types,
            shape.n,
            shape.m,
            shape.k,
            letter(a),
            letter(b),
            a.layout.leading,
            b.layout.leading,
            self.c.layout.leading,
            self.count(),
        )?;
        match &self.epilogue {
            Some(epilogue) => write!(formatter, " {epilogue}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epilogue::{Activation, Vector};

    /// Why a product without gaps is passed on, if it is.
    fn why_not(
        data_type: c_int,
        shape: [i64; 3],
        compute: c_int,
        math: Math,
    ) -> Option<&'static str> {
        why_not_with(None, data_type, shape, compute, math)
    }

    fn why_not_with(
        epilogue: Option<Epilogue>,
        data_type: c_int,
        [m, n, k]: [i64; 3],
        compute: c_int,
        math: Math,
    ) -> Option<&'static str> {
        let settings = Settings {
            math,
            take: Take::Faster,
            check: 0,
            log: None,
            workspace_bytes: 0,
            captures_all: false,
            is_simulator: true,
        };
        let matrix = |leading| Matrix {
            start: std::ptr::without_provenance(256),
            data_type,
            leading,
            stride: 0,
        };
        let scalar = std::ptr::without_provenance(8);
        let product = Product {
            origin: Origin::Stream(std::ptr::null_mut()),
            transposes: [0; 2],
            shape: [m, n, k],
            scalars: [scalar; 2],
            a: matrix(m),
            b: matrix(k),
            c: matrix(m),
            batch: 1,
            compute,
            epilogue,
        };
        match product.row_major().unwrap().is_taken(&settings) {
            Ok(()) => None,
            Err(Refusal::PassedOn(why)) => Some(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_was_measured_to_be_faster_is_taken() {
        let ieee = |shape| why_not(F32, shape, 68, Math::Ieee);
        for shape in [
            [2048, 2048, 2048],
            [128, 24576, 1536],
            [5124, 9124, 1760],
            [4096, 16, 4096],
        ] {
            assert_eq!(ieee(shape), None, "{shape:?}");
        }
        assert_eq!(ieee([64, 64, 64]), Some("it is small"));
        assert_eq!(
            ieee([1023, 1023, 1023]),
            Some("cuBLAS may be faster at this shape")
        );
        assert_eq!(
            ieee([8191, 63, 2047]),
            Some("cuBLAS may be faster at this shape")
        );
        let split = |shape, compute| why_not(F32, shape, compute, Math::Split);
        assert_eq!(split([1024, 1024, 1024], 68), None);
        assert_eq!(split([1024, 1024, 64], 68), Some("it is small"));
        assert_eq!(
            split([4096, 4096, 64], 68),
            Some("it is too small to be split")
        );
        // The program allows tf32, or nothing.
        assert_eq!(split([4096; 3], 77), Some("cuBLAS is as fast in tf32"));
        assert_eq!(split([4096; 3], 69), Some("it is pedantic"));
        assert_eq!(why_not(F32, [4096; 3], 69, Math::Ieee), None);
        assert_eq!(why_not(F32, [4096; 3], 77, Math::Tf32), None);
        for data_type in [BF16, F16] {
            let half = |shape| why_not(data_type, shape, 68, Math::Ieee);
            assert_eq!(half([4096; 3]), Some("cuBLAS is as fast in 16 bits"));
            assert_eq!(half([4097, 4096, 4096]), None);
            assert_eq!(half([127, 129, 131]), Some("it is small"));
        }
        let bias = |data_type, activation| {
            let start = std::ptr::without_provenance(256);
            Some(Epilogue {
                bias: Some(Vector { start, data_type }),
                activation,
            })
        };
        let gelu = Some(Activation::Gelu);
        let odd = [4097, 4096, 4096];
        assert_eq!(
            why_not_with(bias(BF16, gelu), BF16, odd, 68, Math::Ieee),
            None
        );
        let split = |epilogue| why_not_with(epilogue, F32, [4096; 3], 68, Math::Split);
        assert_eq!(split(bias(F32, None)), None);
        assert_eq!(
            split(bias(F32, gelu)),
            Some("cublasLt computes the activation in its kernel")
        );
        assert_eq!(
            why_not_with(bias(F32, None), F32, [4096; 3], 68, Math::Ieee),
            Some("cublasLt adds the bias in its kernel")
        );
        assert_eq!(
            why_not(F64, [4096; 3], 70, Math::Ieee),
            Some("cuBLAS is as fast in f64")
        );
    }
}
