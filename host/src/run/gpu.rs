//! A kernel on a GPU, once.

use std::time::Duration;

use cust::event::{Event, EventFlags};
use gpu_gemm::device::cuda::status::during;
use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Choice, CudaDevice, CudaStream, DeviceFacts};

use super::error::RunError;
use super::layout::{Run, bindings, call};
use super::uploaded::{Guarded, Pitched, Uploaded};
use crate::data::{Matrix, Number, Problem, by_inputs};

/// Runs the chosen kernel on copies of the problem's matrices.
pub(super) fn run<T: Number>(
    device: &CudaDevice,
    choice: Choice,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    device.enter()?;
    match choice.variant.allocation {
        Allocation::AsGiven => by_inputs!(problem, as_given::<_, T>(device, choice, problem)),
        Allocation::Pitched => run_on::<T, T, Pitched<T>, Pitched<T>>(device, choice, problem),
    }
}

fn as_given<Input: Number, T: Number>(
    device: &CudaDevice,
    choice: Choice,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    run_on::<Input, T, Guarded<Input>, Guarded<T>>(device, choice, problem)
}

fn run_on<Input: Number, T: Number, I: Uploaded<Input>, U: Uploaded<T>>(
    device: &CudaDevice,
    choice: Choice,
    problem: &Problem<T>,
) -> Result<Run<T>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let a = I::upload(device, &stored.a)?;
    let b = I::upload(device, &stored.b)?;
    let c = U::upload(device, stored.c)?;
    let placed = [a.placed(&stored.a), b.placed(&stored.b), c.placed(stored.c)];
    let facts = DeviceFacts::of(device.properties());
    let plan = choice.plan(call(problem, placed), &facts)?;
    let poison = Matrix::<T>::poison(plan.workspace_bytes().div_ceil(size_of::<T>()));
    let workspace = Guarded::upload(device, &poison)?;
    // Everything is compiled before the clock starts.
    device.compile(&plan)?;
    let event = || Event::new(EventFlags::DEFAULT).map_err(during("Making an event"));
    let (start, end) = (event()?, event()?);
    let stream = device.stream();
    start.record(stream).map_err(during("Recording an event"))?;
    let bindings = bindings(problem, placed, workspace.placed(&poison).start);
    // SAFETY: the matrices and the workspace live until the stream has been waited for, and the
    // plan is that of this problem.
    let launched = unsafe { gpu_gemm::run(&CudaStream::of(device), &plan, &bindings) };
    let recorded = end.record(stream);
    stream
        .synchronize()
        .map_err(device.after(choice.variant.name))?;
    launched?;
    recorded.map_err(during("Recording an event"))?;
    let time = end
        .elapsed_time_f32(&start)
        .map_err(during("Reading a time"))?;

    let trespass = |what| RunError::Trespass {
        kernel: choice.variant.name.to_string(),
        what,
    };
    workspace.check_bands('W')?.map_err(trespass)?;
    a.check_unchanged('A', &stored.a)?.map_err(trespass)?;
    b.check_unchanged('B', &stored.b)?.map_err(trespass)?;
    let c = c.result('C', stored.c)?.map_err(trespass)?;
    Ok(Run {
        c,
        time: Duration::from_secs_f64(f64::from(time) / 1e3),
    })
}
