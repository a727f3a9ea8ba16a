//! The gates that every result passes, each on its own data.

use std::io::Write;

use gpu_gemm::gpu_kernels::tiled;
use gpu_gemm::{Choice, Device, DeviceError, ElementType};

use super::candidate::{Candidate, Machine};
use super::error::EvaluateError;
use super::request::Request;
use crate::data::{Data, Layout, Problem};
use crate::memory;
use crate::npy;
use crate::npy::ReadError;
use crate::progress::Progress;
use crate::run::{RunError, run};
use crate::rung::Element;
use crate::verify::computed::{self, ComputedReference};
use crate::verify::{self, Coverage, Failure};

/// Proofs that make a result right.
pub(super) const GATES: usize = 2;

/// Both gates, each on its own data, for all candidates. Returns the problem of the second.
pub(super) fn prove<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    scalars: (T, T),
    mut output: Option<&mut dyn Write>,
    candidates: &mut [Candidate],
    progress: &Progress,
) -> Result<Problem<T>, EvaluateError> {
    prove_exact::<T>(machine, request, candidates, progress)?;
    progress.doing("reading or filling the matrices".to_string());
    let coverage = coverage(machine, request);
    let (problem, data) = problem(request, Data::Uniform, scalars)?;
    let mut reference = None;
    if coverage != Coverage::Full && candidates.iter().any(Candidate::is_right) {
        match computed_reference(machine, &problem, request.seed, progress)? {
            Ok(found) => reference = found,
            Err(failure) => {
                for candidate in candidates
                    .iter_mut()
                    .filter(|candidate| candidate.is_right())
                {
                    candidate.judge(Err(failure.clone()));
                }
            }
        }
    }
    for candidate in candidates
        .iter_mut()
        .filter(|candidate| candidate.is_right())
    {
        let c = candidate.run(machine, &problem, progress)?;
        let (tile, model) = (
            candidate.rung.tile(),
            candidate.rung.error_model(machine.team),
        );
        candidate.judge(match &reference {
            Some(reference) => verify::proven_by(&problem, &c, reference, data, model),
            None => verify::general(&problem, &c, tile, data, coverage, model),
        });
        if candidate.is_right() {
            candidate.corner = request.corner.map(|corner| corner.of(&c));
            if let Some(output) = output.take() {
                npy::write(&c, output).map_err(EvaluateError::Output)?;
            }
        }
    }
    Ok(problem)
}

/// A reference for every element, computed by the GPU; `None` where there is none, or no memory
/// for it, or the elements are too fine (f64) or do not round. An inner error if it is wrong.
fn computed_reference<T: Element>(
    machine: Machine<'_>,
    problem: &Problem<T>,
    seed: u64,
    progress: &Progress,
) -> Result<Result<Option<ComputedReference>, Failure>, EvaluateError> {
    let is_worth_it = T::TYPE == ElementType::F32
        && matches!(machine.device, Device::Cuda(_))
        && problem.alpha != T::default()
        && memory::check(problem.shape(), size_of::<f64>()).is_ok();
    // A simple kernel will do.
    let mut variants = tiled::KERNEL.variants.iter();
    let Some(kernel) = variants
        .find(|variant| variant.types.c == ElementType::F64)
        .filter(|_| is_worth_it)
    else {
        return Ok(Ok(None));
    };
    progress.doing("computing a reference in f64".to_string());
    let choice = Choice::even(kernel);
    let run = |operands: &Problem<f64>| match run(machine.device, choice, operands, &|| ()) {
        Ok(run) => Ok(Some(run.c)),
        Err(RunError::Device(DeviceError::OutOfMemory { .. })) => Ok(None),
        Err(error) => Err(error),
    };
    let mut operands = computed::operands(problem)?;
    let Some(product) = run(&operands)? else {
        return Ok(Ok(None));
    };
    computed::make_magnitudes(&mut operands);
    let Some(magnitude) = run(&operands)? else {
        return Ok(Ok(None));
    };
    drop(operands);
    progress.doing("checking the reference".to_string());
    Ok(ComputedReference::checked(
        problem, product, magnitude, seed,
    ))
}

fn coverage(machine: Machine<'_>, request: &Request) -> Coverage {
    match machine.device {
        Device::Cuda(_) => Coverage::beside_gpu(request.shape, request.seed),
        Device::Simulator(_) => Coverage::of(request.shape, request.seed),
    }
}

/// The exact gate: random integers, whatever data is requested, since only they have a proof
/// that hides nothing.
fn prove_exact<T: Element>(
    machine: Machine<'_>,
    request: &Request,
    candidates: &mut [Candidate],
    progress: &Progress,
) -> Result<(), EvaluateError> {
    let shape = request.shape;
    let coverage = coverage(machine, request);
    let integer = |scalar| T::from_integer(small_integer(scalar));
    let (alpha, beta) = (integer(request.alpha), integer(request.beta));
    // One candidate after the other, on data that suits it: the same for most.
    let mut last: Option<(Data, Problem<T>)> = None;
    for candidate in candidates {
        let Some(data) = candidate
            .rung
            .error_model(machine.team)
            .exact_data::<T>(shape)
        else {
            let why = format!("sums of {} products are too long to be exact.", shape.k);
            candidate.judge(Err(Failure::Unprovable(why)));
            continue;
        };
        let problem = match last.take() {
            Some((known, problem)) if known == data => problem,
            _ => {
                let layout = Layout::compact(shape);
                Problem::random(shape, layout, data, request.seed, alpha, beta)?
            }
        };
        let c = candidate.run(machine, &problem, progress)?;
        candidate.judge(verify::exact(&problem, &c, candidate.rung.tile(), coverage));
        last = Some((data, problem));
    }
    Ok(())
}

/// The matrices of the request, or `suitable` ones if it names none.
pub(super) fn problem<T: Element>(
    request: &Request,
    suitable: Data,
    scalars: (T, T),
) -> Result<(Problem<T>, Option<Data>), ReadError> {
    let Request {
        source,
        shape,
        seed,
        ..
    } = request;
    source.problem(suitable, *shape, *seed, scalars)
}

/// The integer that replaces a scalar where nothing may round: between -2 and 2, and zero only
/// for zero.
fn small_integer(scalar: f64) -> i32 {
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
