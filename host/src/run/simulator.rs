//! A kernel on the simulator, once.

use std::time::Instant;

use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Choice, DeviceFacts, Simulator};

use super::error::{RunError, Trespass};
use super::guard;
use super::layout::{Run, bindings, call};
use super::pitched;
use super::simulated::Guarded;
use crate::data::{Number, Problem, Stored, by_inputs};

/// Runs the chosen kernel on copies of the problem's matrices.
pub(super) fn run<T: Number>(
    simulator: &Simulator,
    choice: Choice,
    problem: &Problem<T>,
    cta_done: &(dyn Fn() + Sync),
) -> Result<Run<T>, RunError> {
    match choice.variant.allocation {
        Allocation::AsGiven => by_inputs!(
            problem,
            run_as_given::<_, T>(simulator, choice, problem, cta_done)
        ),
        Allocation::Pitched => pitched::run(problem, |problem| {
            run_as_given::<T, T>(simulator, choice, problem, cta_done)
        }),
    }
}

/// Runs it on the matrices as they lie.
fn run_as_given<Input: Number, T: Number>(
    simulator: &Simulator,
    choice: Choice,
    problem: &Problem<T>,
    cta_done: &(dyn Fn() + Sync),
) -> Result<Run<T>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let [mut a, mut b] = [&*stored.a, &*stored.b].map(Guarded::new);
    let mut c = Guarded::new(stored.c);
    let placed = [a.placed(), b.placed(), c.placed()];
    let plan = choice.plan(call(problem, placed), &DeviceFacts::simulator())?;
    let mut workspace = Guarded::<T>::poison(plan.workspace_bytes().div_ceil(size_of::<T>()));
    let bindings = bindings(problem, placed, workspace.placed().start);
    let start = Instant::now();
    // SAFETY: the matrices and the workspace live until all has been run, and the plan is that
    // of this problem.
    unsafe { gpu_gemm::run(&simulator.observed(cta_done), &plan, &bindings)? };
    let time = start.elapsed();

    let checked = workspace
        .check('W')
        .and_then(|()| check([&a, &b], &c, &stored));
    checked.map_err(|what| RunError::Trespass {
        kernel: choice.variant.name.to_string(),
        what,
    })?;
    let c = problem.c.with_buffer(c.buffer().to_vec());
    Ok(Run { c, time })
}

/// Checks everything that a kernel must not write.
fn check<Input: Number, T: Number>(
    [a, b]: [&Guarded<Input>; 2],
    c: &Guarded<T>,
    stored: &Stored<'_, T, Input>,
) -> Result<(), Trespass> {
    a.check('A')?;
    b.check('B')?;
    c.check('C')?;
    guard::check_input('A', stored.a.buffer(), a.buffer(), 0)?;
    guard::check_input('B', stored.b.buffer(), b.buffer(), 0)?;
    guard::check_padding(stored.c, c.buffer())
}

#[cfg(test)]
mod tests {
    use super::super::simulated::ALIGNMENT;
    use super::*;
    use crate::data::{Data, Layout, Matrix};
    use crate::planted;
    use gpu_gemm::gpu_kernels::spec::EntryFn;
    use gpu_gemm::{Device, Shape};

    fn simulator() -> Device {
        Device::Simulator(Simulator::default())
    }

    /// Runs a planted kernel on 3 x 4 x 5 with one element of padding everywhere.
    fn run(function: EntryFn) -> Result<Run<f32>, RunError> {
        let shape = Shape::new(3, 4, 5);
        let layout = Layout::padded(shape, [1; 3], [1; 3]);
        let problem = Problem::random(shape, layout, Data::Uniform, 1, 1.0, 1.0).unwrap();
        let choice = planted::kernel(function);
        crate::run::run(&simulator(), choice, &problem, &|| ())
    }

    macro_rules! planted {
        (|$a:ident, $c:ident, $ldc:ident| $body:expr) => {
            |block| {
                let gemm = planted::gemm(block);
                let ($a, $c, $ldc) = (gemm.a, gemm.c, gemm.ldc);
                let shape = (gemm.m, gemm.n, gemm.k);
                assert_eq!((shape, gemm.lda, gemm.ldb, $ldc), ((3, 4, 5), 6, 5, 5));
                assert_eq!(($a.len(), gemm.b.len()), (2 * 6 + 5, 4 * 5 + 4));
                let _ = $ldc;
                // SAFETY: each planted kernel stays inside C's guard bands.
                unsafe { $body }
            }
        };
    }

    const WRITES_INSIDE: EntryFn = planted!(|a, c, ldc| *c.add(2 * ldc + 3) = a[0]);
    const WRITES_PADDING: EntryFn = planted!(|a, c, ldc| *c.add(4) = 0.0);
    const WRITES_BEFORE: EntryFn = planted!(|a, c, ldc| *c.sub(2) = 0.0);
    const WRITES_PAST_THE_END: EntryFn = planted!(|a, c, ldc| *c.add(3 * ldc + 8) = 0.0);
    const READS_PAST_THE_END: EntryFn = planted!(|a, c, ldc| *c = a[a.len()]);

    fn trespass(function: EntryFn) -> Trespass {
        match run(function) {
            Err(RunError::Trespass { what, .. }) => what,
            other => panic!("not a trespass: {other:?}"),
        }
    }

    #[test]
    fn a_kernel_gets_the_arguments_of_the_problem_and_its_c_comes_back() {
        let c = run(WRITES_INSIDE).unwrap().c;
        assert!(c.row(2)[3].abs() <= 1.0);
    }

    #[test]
    fn writes_outside_of_c_are_caught() {
        assert_eq!(trespass(WRITES_PADDING), Trespass::Padding { index: 1 + 4 });
        let guard = |distance| Trespass::Guard {
            matrix: 'C',
            distance,
        };
        assert_eq!(trespass(WRITES_BEFORE), guard(-1));
        assert_eq!(trespass(WRITES_PAST_THE_END), guard(8));
    }

    #[test]
    fn an_index_out_of_bounds_names_the_kernel() {
        let message = run(READS_PAST_THE_END).unwrap_err().to_string();
        assert!(
            message.contains("`planted`") && message.contains("out of bounds"),
            "{message}"
        );
    }

    #[test]
    fn a_kernel_of_another_type_is_refused() {
        let shape = Shape::cube(1);
        let problem =
            Problem::<i32>::random(shape, Layout::compact(shape), Data::Uniform, 1, 1, 1).unwrap();
        let choice = planted::kernel(WRITES_INSIDE);
        let error = crate::run::run(&simulator(), choice, &problem, &|| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kernel `planted` does not multiply i32; it multiplies f32."
        );
    }

    #[test]
    fn buffers_are_aligned_as_the_driver_aligns_them() {
        let matrix = Matrix::from_elements(3, 5, |_, _| 1.0f32).unwrap();
        let guarded = Guarded::new(&matrix);
        assert!(guarded.buffer().as_ptr().addr().is_multiple_of(ALIGNMENT));
    }
}
