//! The gates that every result passes, each on its own data.

use std::any::Any;
use std::io::Write;

use gpu_gemm::gpu_kernels::spec::{Tile, Variant};
use gpu_gemm::gpu_kernels::{reference, tiled};
use gpu_gemm::{Choice, Device, DeviceError, ElementType};

use super::candidate::{Candidate, Task};
use super::error::EvaluateError;
use crate::data::{Data, Matrix, Number, Problem, Storage};
use crate::memory;
use crate::npy;
use crate::progress::Progress;
use crate::run::{Resident, RunError, run};
use crate::rung::Rung;
use crate::spelled;
use crate::verify::computed::{self, ComputedReference};
use crate::verify::{self, Coverage, ErrorModel, Failure, Verdict};

/// The number of gates that a result has to pass.
pub(super) const GATES: usize = 2;

/// A reference for each product; a group without rows has none.
type References = Vec<Option<ComputedReference>>;

/// A gate's problem, and the references for its results, both those of the gate and those that
/// were timed.
pub(super) struct Judge<'p, T: Number> {
    task: Task<'p>,
    pub problem: &'p Problem<T>,
    is_exact: bool,
    data: Option<Data>,
    coverage: Coverage<'static>,
    /// References for every element, one for each product, where the host would take too long; or
    /// why the GPU's references are wrong.
    references: Result<Option<References>, Failure>,
}

impl<'p, T: Number> Judge<'p, T> {
    pub fn new(
        task: Task<'p>,
        problem: &'p Problem<T>,
        is_exact: bool,
        data: Option<Data>,
    ) -> Result<Judge<'p, T>, EvaluateError> {
        let (batch, shape, seed) = (problem.batch, problem.shape(), task.request.seed);
        let coverage = match task.device.gpu() {
            Some(_) => Coverage::beside_gpu(batch, shape, seed),
            None => Coverage::of_each(batch, shape, seed),
        };
        // Without rounding, the sums of rows show as much.
        let are_sums = is_exact && !T::rounds_sums() && problem.epilogue.is_none();
        let needs_reference = coverage.is_sampled() && !are_sums;
        let references = match needs_reference {
            true => computed_references(task, problem)?,
            false => Ok(None),
        };
        Ok(Judge {
            task,
            problem,
            is_exact,
            data,
            coverage,
            references,
        })
    }

    /// Runs a candidate, judges its result and returns it; `None` where the references are wrong,
    /// so that there is nothing to compare it with.
    fn run(
        &self,
        resident: &mut Resident<'_, T>,
        candidate: &mut Candidate,
    ) -> Result<Option<Matrix<T>>, EvaluateError> {
        if let Err(failure) = &self.references {
            candidate.judge(Err(failure.clone()));
            return Ok(None);
        }
        let c = candidate.run(self.task, resident)?;
        candidate.judge(self.judge_rung(&c, candidate.rung));
        Ok(Some(c))
    }

    /// Compares a result of a rung.
    pub fn judge_rung(&self, c: &Matrix<T>, rung: Rung) -> Result<Verdict, Failure> {
        self.judge(c, rung.rounding(self.task.team))
    }

    /// Compares a result, which depends on a tile and has errors as this model says.
    pub fn judge(
        &self,
        c: &Matrix<T>,
        (tile, model): (Tile, ErrorModel),
    ) -> Result<Verdict, Failure> {
        let references = self.references.as_ref().map_err(Failure::clone)?;
        verify::each_product(self.problem, c, |index, problem, c| {
            let reference = references.as_ref().and_then(|of| of[index].as_ref());
            let coverage = match reference {
                _ if problem.shape().is_empty() => Coverage::Full,
                Some(reference) => Coverage::By(reference),
                None => self.coverage,
            };
            match self.is_exact {
                true => verify::exact(problem, c, tile, coverage),
                false => verify::general(problem, c, tile, self.data, coverage, model),
            }
        })
    }
}

/// The second gate, on the requested data, for the candidates that passed the first. Where its A
/// and B are quantised, `as_given` are those from which they were.
pub(super) fn check_general<T: Number>(
    judge: &Judge<'_, T>,
    resident: &mut Resident<'_, T>,
    as_given: Option<&Problem<f64>>,
    mut output: Option<&mut dyn Write>,
    candidates: &mut [Candidate],
) -> Result<(), EvaluateError> {
    let request = judge.task.request;
    for candidate in candidates.iter_mut().filter(|one| one.is_right()) {
        let c = judge.run(resident, candidate)?;
        let Some(c) = c.filter(|_| candidate.is_right()) else {
            continue;
        };
        candidate.passed_bits = Some(c.hash_of_bits());
        if let Some(corner) = request.corner {
            candidate.corner = Some(match judge.problem.batch {
                1 => corner.of(&c),
                _ => corner.of(&c.rows_from(0, request.shape.m)?),
            });
        }
        let element = |row: usize, column: usize| c.row(row)[column].to_f64();
        candidate.quantisation = as_given.and_then(|given| given.quantisation_error(&element));
        if let Some(output) = output.take() {
            npy::write_as(&request.shape_of_c(), &c, output).map_err(EvaluateError::Output)?;
        }
    }
    Ok(())
}

/// [`compute_reference`] for each product on the GPU; `None` without a GPU or memory for it, or if
/// the elements do not round.
fn computed_references<T: Number>(
    task: Task<'_>,
    problem: &Problem<T>,
) -> Result<Result<Option<References>, Failure>, EvaluateError> {
    let (device, seed, progress) = (task.device, task.request.seed, task.progress);
    let stored = Storage {
        batch: problem.batch,
        groups: problem.groups,
        ..Storage::COMPACT
    };
    let is_worth_it = T::TYPE != ElementType::I32
        && device.gpu().is_some()
        && problem.alpha != T::default()
        && memory::check(problem.shape(), stored, size_of::<f64>()).is_ok();
    if !is_worth_it {
        return Ok(Ok(None));
    }
    let mut references = Vec::with_capacity(problem.count());
    for index in 0..problem.count() {
        let product = problem.product(index)?;
        if product.shape().is_empty() {
            references.push(None);
            continue;
        }
        match compute_reference(device.first(), &product, seed, progress)? {
            Ok(Some(reference)) => references.push(Some(reference)),
            Ok(None) => return Ok(Ok(None)),
            Err(failure) => return Ok(Err(failure)),
        }
    }
    Ok(Ok(Some(references)))
}

/// A reference for every element, computed by the device; `None` if it lacks the memory; an inner
/// error if the reference is wrong.
///
/// # Errors
///
/// The device fails, or the host has no memory for the operands in f64.
pub fn compute_reference<T: Number>(
    device: &Device,
    problem: &Problem<T>,
    seed: u64,
    progress: &Progress,
) -> Result<Result<Option<ComputedReference>, Failure>, EvaluateError> {
    // For magnitudes, and for f32 products, a simple kernel is enough.
    let mut variants = tiled::KERNEL.variants.iter();
    let Some(plain) = variants.find(|variant| variant.types.c == ElementType::F64) else {
        return Ok(Ok(None));
    };
    let accurate = match T::TYPE {
        ElementType::F64 => &reference::KERNEL.variants[0],
        _ => plain,
    };
    progress.doing("computing a reference".to_string());
    let run = |kernel: &'static Variant, operands: &Problem<f64>| match run(
        device,
        Choice::even(kernel),
        operands,
        &|| (),
    ) {
        Ok(run) => Ok(Some(run.c)),
        Err(RunError::Device(DeviceError::OutOfMemory { .. })) => Ok(None),
        Err(error) => Err(error),
    };
    let mut operands = computed::operands(problem)?;
    let Some(product) = run(accurate, &operands)? else {
        return Ok(Ok(None));
    };
    computed::make_magnitudes(&mut operands);
    let Some(magnitude) = run(plain, &operands)? else {
        return Ok(Ok(None));
    };
    drop(operands);
    progress.doing("checking the reference".to_string());
    Ok(ComputedReference::checked(
        problem, product, magnitude, seed,
    ))
}

/// The exact gate: random integers, whatever data is requested, since only their products can be
/// checked without a tolerance. Candidates with the same requirements share the integers.
pub(super) fn check_exact<T: Number>(
    task: Task<'_>,
    candidates: &mut [Candidate],
) -> Result<(), EvaluateError> {
    let request = task.request;
    let (shape, seed, storage) = (request.shape, request.seed, request.storage);
    let inputs = request.data_type.inputs;
    let scalars = [request.alpha, request.beta].map(|one| T::from_integer(small_integer(one)));
    if let Some(epilogue) = request.epilogue.filter(|one| !one.is_exact()) {
        for candidate in candidates {
            let why = format!("{} of integers rounds", spelled(epilogue));
            candidate.judge(Ok(Verdict::exact("no exact gate", why)));
        }
        return Ok(());
    }
    let mut suits = Vec::new();
    for candidate in candidates.iter_mut() {
        let model = candidate.rung.error_model(task.team);
        let data = model.exact_data_of::<T>(inputs, shape);
        if data.is_none() {
            let why = format!("sums of {} products are too long to be exact.", shape.k);
            candidate.judge(Err(Failure::Unprovable(why)));
        }
        suits.push(data);
    }
    for (index, data) in suits.iter().enumerate() {
        let Some(data) = data.filter(|_| !suits[..index].contains(data)) else {
            continue;
        };
        task.progress
            .doing("reading or filling matrices".to_string());
        let mut problem = Problem::random_as(inputs, shape, storage, data, seed, scalars.into())?;
        problem.epilogue = request.epilogue;
        let of_f32 = (&mut problem as &mut dyn Any).downcast_mut::<Problem<f32>>();
        if let (Some(granularity), Some(problem)) = (request.scales, of_f32) {
            problem.add_signs(granularity, seed)?;
        }
        let judge = Judge::new(task, &problem, true, Some(data))?;
        let mut resident = Resident::new(task.device, &problem);
        let suited = candidates.iter_mut().zip(&suits);
        for (candidate, _) in suited.filter(|(_, of)| **of == Some(data)) {
            judge.run(&mut resident, candidate)?;
        }
    }
    Ok(())
}

/// The integer that replaces a scalar in the exact gate: between -2 and 2, and zero only for zero.
pub fn small_integer(scalar: f64) -> i32 {
    match scalar {
        0.0 => 0,
        scalar if scalar.abs() < 1.0 => scalar.signum() as i32,
        scalar => scalar.round().clamp(-2.0, 2.0) as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_becomes_a_small_integer_and_zero_only_if_it_is_zero() {
        for (scalar, integer) in [
            (0.0, 0),
            (1.0, 1),
            (0.1, 1),
            (-0.1, -1),
            (1.6, 2),
            (-7.5, -2),
            (1e30, 2),
            (-0.0, 0),
        ] {
            assert_eq!(small_integer(scalar), integer, "{scalar}");
        }
    }
}
