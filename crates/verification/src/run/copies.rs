//! The matrices of a problem as passed to kernels, and copies of them in device memory.

use std::borrow::Cow;
use std::ffi::c_void;
use std::ptr;

use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Backend, DeviceError, Product, Stored, Transpose};

use super::error::RunError;
use super::guard::Guarded;
use crate::data::{Matrix, Number, Placement, Problem, ProblemError, by_inputs};
use crate::epilogue::Epilogue;

/// Copies of a problem's matrices, each between guard bands, for any type of A and B.
pub trait Copies<T: Number> {
    /// Bytes of a copy, without guard bands.
    fn bytes(&self) -> usize;

    /// Makes copies until there are `count`.
    fn make(&mut self, backend: &dyn Backend, count: usize) -> Result<(), DeviceError>;

    /// The product of the copies with this number.
    fn product(&self, number: usize) -> Product;

    /// The address of the epilogue's bias in the type of C, as libraries want it; null if there is
    /// none.
    fn bias_of_c(&self) -> *const c_void;

    /// What a kernel gets for its workspace: that, or for groups their ends.
    fn workspace(&self, workspace: *mut u8) -> *mut u8;

    /// Sets C of this copy to the problem's C again.
    fn restore_c(&mut self, backend: &dyn Backend, number: usize) -> Result<(), DeviceError>;

    /// Checks that `kernel` left A and B of this copy, and the ends of groups (E), unchanged.
    fn check_inputs(
        &self,
        backend: &dyn Backend,
        kernel: &str,
        number: usize,
    ) -> Result<(), RunError>;

    /// Reads back C of this copy after `kernel`. A write outside of C is an error.
    fn result(
        &self,
        backend: &dyn Backend,
        kernel: &str,
        number: usize,
    ) -> Result<Matrix<T>, RunError>;
}

/// An empty set of copies, for kernels that need this allocation.
pub(super) fn none<'a, T: Number>(
    allocation: Allocation,
    problem: &'a Problem<T>,
) -> Result<Box<dyn Copies<T> + 'a>, ProblemError> {
    by_inputs!(problem, none_as::<_, T>(allocation, problem))
}

fn none_as<'a, Input: Number, T: Number>(
    allocation: Allocation,
    problem: &'a Problem<T>,
) -> Result<Box<dyn Copies<T> + 'a>, ProblemError> {
    let ([mut a, mut b], mut c) = (problem.factors_as::<Input>()?, Cow::Borrowed(&problem.c));
    if allocation == Allocation::Pitched {
        (a, b) = (Cow::Owned(pitched(&a)?), Cow::Owned(pitched(&b)?));
        c = Cow::Owned(pitched(&c)?);
    }
    Ok(Box::new(OnDevice {
        problem,
        a,
        b,
        c,
        copies: Vec::new(),
        bias: problem
            .epilogue
            .map(|epilogue| Bias::new(epilogue, problem.shape().n))
            .transpose()?,
        scales: None,
        ends: problem.groups.map(|groups| {
            let ends = groups.ends().to_vec();
            (Matrix::new(ends, 1, groups.count()), None)
        }),
    }))
}

/// Elements from a row to the next where rows begin at multiples of 512 bytes, as with
/// `cuMemAllocPitch` on every GPU so far.
pub fn pitch(columns: usize, element_bytes: usize) -> usize {
    columns.next_multiple_of(512 / element_bytes)
}

fn pitched<T: Number>(matrix: &Matrix<T>) -> Result<Matrix<T>, ProblemError> {
    let leading = pitch(matrix.columns(), size_of::<T>());
    matrix.moved_to(Placement::compact(leading))
}

/// The matrices with the leading dimensions of an allocation, and copies of them.
struct OnDevice<'a, Input: Number, T: Number> {
    problem: &'a Problem<T>,
    a: Cow<'a, Matrix<Input>>,
    b: Cow<'a, Matrix<Input>>,
    c: Cow<'a, Matrix<T>>,
    copies: Vec<(Guarded<Input>, Guarded<Input>, Guarded<T>)>,
    /// The bias of the epilogue, if the problem has one.
    bias: Option<Bias<T>>,
    /// Copies of the scales of A and B, if the problem has any.
    scales: Option<[Guarded<f32>; 2]>,
    /// The ends of the groups, if it has any, and their copy.
    ends: Option<(Matrix<i32>, Option<Guarded<i32>>)>,
}

/// An epilogue's bias, in f32 for kernels and in the type of C for libraries, and copies of both.
struct Bias<T: Number> {
    of_f32: Matrix<f32>,
    of_c: Matrix<T>,
    copies: Option<(Guarded<f32>, Guarded<T>)>,
}

impl<T: Number> Bias<T> {
    fn new(epilogue: Epilogue, columns: usize) -> Result<Bias<T>, ProblemError> {
        let of = |col| epilogue.bias(col);
        Ok(Bias {
            of_f32: Matrix::from_elements(1, columns, |_, col| of(col))?,
            of_c: Matrix::from_elements(1, columns, |_, col| {
                T::from_scalar(of(col).into()).unwrap_or_default()
            })?,
            copies: None,
        })
    }
}

impl<Input: Number, T: Number> Copies<T> for OnDevice<'_, Input, T> {
    fn bytes(&self) -> usize {
        size_of_val(self.a.buffer()) + size_of_val(self.b.buffer()) + size_of_val(self.c.buffer())
    }

    fn make(&mut self, backend: &dyn Backend, count: usize) -> Result<(), DeviceError> {
        while self.copies.len() < count {
            let copy = match self.copies.first() {
                None => (
                    Guarded::upload(backend, &self.a)?,
                    Guarded::upload(backend, &self.b)?,
                    Guarded::upload(backend, &self.c)?,
                ),
                Some((a, b, c)) => (
                    a.duplicate(backend)?,
                    b.duplicate(backend)?,
                    c.duplicate(backend)?,
                ),
            };
            self.copies.push(copy);
        }
        if let Some(bias) = self.bias.as_mut().filter(|bias| bias.copies.is_none()) {
            let of_f32 = Guarded::upload(backend, &bias.of_f32)?;
            bias.copies = Some((of_f32, Guarded::upload(backend, &bias.of_c)?));
        }
        if let (Some(scales), None) = (&self.problem.scales, &self.scales) {
            let of_a = Guarded::upload(backend, &scales.a.table)?;
            self.scales = Some([of_a, Guarded::upload(backend, &scales.b.table)?]);
        }
        if let Some((ends, copy @ None)) = &mut self.ends {
            *copy = Some(Guarded::upload(backend, ends)?);
        }
        Ok(())
    }

    fn product(&self, number: usize) -> Product {
        let ((a, b, c), problem) = (&self.copies[number], self.problem);
        let [transpose_a, transpose_b] = problem.transposes;
        let stored = |start: *mut u8, layout, transpose| Stored {
            start,
            layout,
            transpose,
        };
        let (batch, count) = (problem.batch, problem.count());
        let scales = problem.scales.as_deref();
        let of_blocks = scales
            .zip(self.scales.as_ref())
            .and_then(|(scales, [a, b])| {
                let [a, b] = [a.start(&scales.a.table), b.start(&scales.b.table)];
                scales.fusion(a.cast(), b.cast())
            });
        Product {
            data_type: problem.data_type(),
            alpha: scales
                .map_or(problem.alpha, |scales| scales.alpha(problem.alpha))
                .scalar(),
            beta: problem.beta.scalar(),
            a: stored(a.start(&self.a), self.a.layout(batch), transpose_a),
            b: stored(b.start(&self.b), self.b.layout(count), transpose_b),
            c: stored(c.start(&self.c), self.c.layout(batch), Transpose::No),
            epilogue: of_blocks.or(problem.epilogue.map(|epilogue| {
                let bias = self.bias.as_ref().and_then(|bias| {
                    let (copy, _) = bias.copies.as_ref()?;
                    Some(copy.start(&bias.of_f32))
                });
                epilogue.fusion(bias.unwrap_or(ptr::null_mut()).cast())
            })),
            first: [0; 3],
        }
    }

    fn bias_of_c(&self) -> *const c_void {
        let bias = self.bias.as_ref().and_then(|bias| {
            let (_, copy) = bias.copies.as_ref()?;
            Some(copy.start(&bias.of_c).cast_const().cast())
        });
        bias.unwrap_or(ptr::null())
    }

    fn workspace(&self, workspace: *mut u8) -> *mut u8 {
        match &self.ends {
            Some((ends, Some(copy))) => copy.start(ends),
            _ => workspace,
        }
    }

    fn restore_c(&mut self, backend: &dyn Backend, number: usize) -> Result<(), DeviceError> {
        self.copies[number].2.restore(backend, &self.c)
    }

    fn check_inputs(
        &self,
        backend: &dyn Backend,
        kernel: &str,
        number: usize,
    ) -> Result<(), RunError> {
        let (a, b, _) = &self.copies[number];
        let trespass = RunError::trespass_of(kernel);
        a.check_unchanged(backend, 'A', &self.a)?
            .map_err(&trespass)?;
        b.check_unchanged(backend, 'B', &self.b)?
            .map_err(&trespass)?;
        match &self.ends {
            Some((ends, Some(copy))) => {
                copy.check_unchanged(backend, 'E', ends)?.map_err(&trespass)
            }
            _ => Ok(()),
        }
    }

    fn result(
        &self,
        backend: &dyn Backend,
        kernel: &str,
        number: usize,
    ) -> Result<Matrix<T>, RunError> {
        let (_, _, c) = &self.copies[number];
        let result = c.result(backend, 'C', &self.c)?;
        let mut result = result.map_err(RunError::trespass_of(kernel))?;
        if let Some(scales) = &self.problem.scales {
            scales.finish(&mut result);
        }
        if result.placement() == self.problem.c.placement() {
            return Ok(result);
        }
        let mut as_given = self.problem.c.clone();
        as_given.set_rows(0, &result);
        Ok(as_given)
    }
}
