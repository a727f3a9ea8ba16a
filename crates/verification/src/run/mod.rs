//! Kernels on a problem: each buffer is between guard bands, and a write outside of C is an error.

mod copies;
pub mod error;
pub mod guard;
pub mod several;

use std::sync::Arc;
use std::time::Duration;

use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Backend, Choice, Device, Plan, Space};

pub use copies::{Copies, pitch};
pub use error::{RunError, Trespass};
use guard::Guarded;

use crate::data::{Matrix, Number, Problem};

/// The result of a kernel.
#[derive(Debug)]
pub struct Run<T> {
    /// C after the kernel.
    pub c: Matrix<T>,
    /// From the first launch's start to the last one's end.
    pub time: Duration,
}

/// Runs the chosen kernel on `problem`, once: see [`Resident::run`].
pub fn run<T: Number>(
    device: &Device,
    choice: Choice,
    problem: &Problem<T>,
    cta_done: &(dyn Fn() + Sync),
) -> Result<Run<T>, RunError> {
    Resident::new(device, problem).run(choice, &mut None, cta_done)
}

/// A problem on a device, where kernels are checked, one after the other, and then timed. Its
/// matrices are copied there once for each kind of allocation that the kernels need.
pub struct Resident<'a, T: Number> {
    pub device: &'a Device,
    pub problem: &'a Problem<T>,
    copies: Vec<(Allocation, Box<dyn Copies<T> + 'a>)>,
}

impl<'a, T: Number> Resident<'a, T> {
    /// Nothing is copied yet.
    pub fn new(device: &'a Device, problem: &'a Problem<T>) -> Self {
        let copies = Vec::new();
        Resident {
            device,
            problem,
            copies,
        }
    }

    /// The number of the copies with the allocation that a kernel needs. At least one is made.
    pub fn allocated(
        &mut self,
        backend: &dyn Backend,
        allocation: Allocation,
    ) -> Result<usize, RunError> {
        let known = self.copies.iter().position(|(of, _)| *of == allocation);
        if let Some(known) = known {
            return Ok(known);
        }
        let mut copies = copies::none(allocation, self.problem)?;
        copies.make(backend, 1)?;
        self.copies.push((allocation, copies));
        Ok(self.copies.len() - 1)
    }

    /// The copies with this number.
    pub fn copies(&self, number: usize) -> &dyn Copies<T> {
        &*self.copies[number].1
    }

    /// [`Resident::copies`], to change them.
    pub fn copies_mut(&mut self, number: usize) -> &mut (dyn Copies<T> + 'a) {
        &mut *self.copies[number].1
    }

    /// Runs the chosen kernel and returns C. Each buffer is between guard bands; a write into
    /// them, into A, into B or between the rows of C is an error. An empty C launches nothing. It
    /// uses `plan` if that is the plan of this product and kernel; otherwise it makes one and
    /// stores it there. `cta_done` is called after each CTA on the simulator, from any thread, and
    /// once on any other device.
    ///
    /// # Errors
    ///
    /// The kernel does not multiply this type, there are several devices, a device fails, or the
    /// kernel writes where it must not.
    pub fn run(
        &mut self,
        choice: Choice,
        plan: &mut Option<Arc<Plan>>,
        cta_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, RunError> {
        let (multiplies, asked) = (choice.variant.types.data_type(), self.problem.data_type());
        if multiplies != asked {
            return Err(RunError::WrongType {
                kernel: choice.variant.name.to_string(),
                multiplies: vec![multiplies],
                asked,
            });
        }
        if let Some(error) = self.device.lacks_tensor_cores(choice.variant) {
            return Err(error.into());
        }
        let backend = &*self.device.as_backend(cta_done)?;
        let _entered = backend.enter()?;
        let run = self.run_on(backend, choice, plan);
        if run.is_err() {
            // The kernel may have corrupted the copies.
            self.copies.clear();
        }
        if backend.space() != Space::Host {
            cta_done();
        }
        run
    }

    fn run_on(
        &mut self,
        backend: &dyn Backend,
        choice: Choice,
        plan: &mut Option<Arc<Plan>>,
    ) -> Result<Run<T>, RunError> {
        let number = self.allocated(backend, choice.variant.allocation)?;
        let copies = self.copies_mut(number);
        copies.restore_c(backend, 0)?;
        let product = copies.product(0);
        let call = product.call();
        let is_its =
            |plan: &Arc<Plan>| std::ptr::eq(plan.variant(), choice.variant) && *plan.call() == call;
        let plan = match plan.take().filter(is_its) {
            Some(known) => plan.insert(known),
            None => plan.insert(Arc::new(choice.plan(call, &backend.facts())?)),
        };
        let poison = Matrix::<T>::poison(plan.workspace_bytes().div_ceil(size_of::<T>()));
        let workspace = Guarded::upload(backend, &poison)?;
        // Everything is compiled before the clock starts.
        backend.compile(plan)?;
        let kernel = choice.variant.name;
        let bindings = product.bindings(copies.workspace(workspace.start(&poison)));
        // SAFETY: the matrices and the workspace live until `time` has waited, and the plan
        // belongs to this problem.
        let time = backend.time(kernel, &mut || unsafe {
            gpu_gemm::run(backend, plan, &bindings)
        })?;
        let checked = workspace.check_bands(backend, 'W')?;
        checked.map_err(RunError::trespass_of(kernel))?;
        copies.check_inputs(backend, kernel, 0)?;
        let c = copies.result(backend, kernel, 0)?;
        Ok(Run { c, time })
    }
}

#[cfg(test)]
mod tests {
    use super::{run as run_by, *};
    use crate::data::{Data, Storage};
    use crate::planted;
    use gpu_gemm::Shape;
    use gpu_gemm::gpu_kernels::spec::EntryFn;
    use gpu_gemm::gpu_kernels::{naive, pitched};

    fn simulator() -> Device {
        Device::simulator()
    }

    /// Runs a planted kernel on 3 x 4 x 5 with one element of padding everywhere.
    fn run(function: EntryFn) -> Result<Run<f32>, RunError> {
        let shape = Shape::new(3, 4, 5);
        let storage = Storage::padded([1; 3], [1; 3]);
        let problem = Problem::random(shape, storage, Data::Uniform, 1, 1.0, 1.0).unwrap();
        let choice = planted::kernel(function);
        run_by(&simulator(), choice, &problem, &|| ())
    }

    macro_rules! planted {
        (|$a:ident, $c:ident, $ldc:ident| $body:expr) => {
            |block| {
                // SAFETY: the block is that of a launch of this kernel.
                let block = unsafe { planted::OfLaunch::new(block) };
                let gemm = planted::gemm(block);
                let ($a, $c, $ldc) = (gemm.a, gemm.c, gemm.ldc);
                let shape = (gemm.m, gemm.n, gemm.k);
                assert_eq!((shape, gemm.lda, gemm.ldb, $ldc), ((3, 4, 5), 6, 5, 5));
                assert_eq!(($a.len(), gemm.b.len()), (2 * 6 + 5, 4 * 5 + 4));
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

    /// The planted kernel writes zeros; the others read C.
    #[test]
    fn a_problem_is_copied_once_for_each_allocation_and_each_kernel_finds_it_as_it_was() {
        let shape = Shape::new(33, 60, 19);
        let storage = Storage::padded([1, 2, 3], [3, 2, 1]);
        let problem = Problem::<f32>::random(shape, storage, Data::Normal, 1, 1.0, 1.0).unwrap();
        let device = simulator();
        let [naive, pitched] =
            [&naive::KERNEL, &pitched::KERNEL].map(|kernel| Choice::even(&kernel.variants[0]));
        let zeros = planted::kernel(|block| {
            // SAFETY: the block is that of a launch of this kernel.
            let block = unsafe { planted::OfLaunch::new(block) };
            planted::write_each(block, |_, _, _| 0.0)
        });
        let mut resident = Resident::new(&device, &problem);
        for choice in [zeros, naive, pitched, pitched, naive] {
            let alone = run_by(&device, choice, &problem, &|| ()).unwrap().c;
            let c = resident.run(choice, &mut None, &|| ()).unwrap().c;
            assert_eq!(
                c.hash_of_bits(),
                alone.hash_of_bits(),
                "{}",
                choice.variant.name
            );
        }
        let allocations = resident.copies.iter().map(|(allocation, _)| *allocation);
        let both = [Allocation::AsGiven, Allocation::Pitched];
        assert_eq!(allocations.collect::<Vec<_>>(), both);
    }

    #[test]
    fn an_index_out_of_bounds_names_the_kernel() {
        let message = run(READS_PAST_THE_END).unwrap_err().to_string();
        assert!(
            message.contains("`planted`") && message.contains("out of bounds"),
            "{message}"
        );
    }
}
