//! A kernel on a device of OpenCL, once.

use std::time::Instant;

use gpu_gemm::device::opencl::OpenClBuffer;
use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Choice, OpenClDevice};

use super::error::{RunError, Trespass};
use super::guard::{self, GUARD};
use super::layout::{Placed, Run, bindings, call};
use super::pitched;
use crate::data::{Matrix, Number, Problem, by_inputs};

/// Runs the chosen kernel on copies of the problem's matrices.
pub(super) fn run<T: Number>(
    device: &OpenClDevice,
    choice: Choice,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    match choice.variant.allocation {
        Allocation::AsGiven => by_inputs!(problem, as_given::<_, T>(device, choice, problem)),
        Allocation::Pitched => pitched::run(problem, |problem| {
            by_inputs!(problem, as_given::<_, T>(device, choice, problem))
        }),
    }
}

fn as_given<Input: Number, T: Number>(
    device: &OpenClDevice,
    choice: Choice,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let a = Guarded::upload(device, &stored.a)?;
    let b = Guarded::upload(device, &stored.b)?;
    let c = Guarded::upload(device, stored.c)?;
    let placed = [a.placed(&stored.a), b.placed(&stored.b), c.placed(stored.c)];
    let plan = choice.plan(call(problem, placed), &device.facts())?;
    let poison = Matrix::<T>::poison(plan.workspace_bytes().div_ceil(size_of::<T>()));
    let workspace = Guarded::upload(device, &poison)?;
    // Everything is compiled before the clock starts.
    device.compile(&plan)?;
    let bindings = bindings(problem, placed, workspace.placed(&poison).start);
    let start = Instant::now();
    // SAFETY: the matrices and the workspace live until the device has been waited for, and the
    // plan is that of this problem.
    let launched = unsafe { gpu_gemm::run(device, &plan, &bindings) };
    let finished = device.synchronize();
    let time = start.elapsed();
    launched?;
    finished?;

    let trespass = |what| RunError::Trespass {
        kernel: choice.variant.name.to_string(),
        what,
    };
    workspace.checked('W')?.map_err(trespass)?;
    for (name, guarded, matrix) in [('A', &a, &stored.a), ('B', &b, &stored.b)] {
        let buffer = guarded.checked(name)?.map_err(trespass)?;
        guard::check_input(name, matrix.buffer(), &buffer, 0).map_err(trespass)?;
    }
    let buffer = c.checked('C')?.map_err(trespass)?;
    guard::check_padding(&problem.c, &buffer).map_err(trespass)?;
    Ok(Run {
        c: problem.c.with_buffer(buffer),
        time,
    })
}

/// A copy of a matrix's buffer in the device's memory, between guard bands.
struct Guarded<T: Number> {
    storage: OpenClBuffer<T>,
}

impl<T: Number> Guarded<T> {
    fn upload(device: &OpenClDevice, matrix: &Matrix<T>) -> Result<Self, RunError> {
        let storage = OpenClBuffer::upload(device, &guard::surround(matrix.buffer()))?;
        Ok(Guarded { storage })
    }

    /// The copy of `matrix`, for a kernel.
    fn placed(&self, matrix: &Matrix<T>) -> Placed {
        let offset = GUARD + matrix.placement().offset;
        Placed {
            start: self.storage.start().wrapping_add(offset).cast(),
            leading: matrix.leading(),
        }
    }

    /// The buffer, if the bands around it are as they were.
    fn checked(&self, name: char) -> Result<Result<Vec<T>, Trespass>, RunError> {
        let storage = self.storage.download()?;
        let (before, rest) = storage.split_at(GUARD);
        let (buffer, after) = rest.split_at(rest.len() - GUARD);
        let bands = guard::check_bands(name, before, after);
        Ok(bands.map(|()| buffer.to_vec()))
    }
}
