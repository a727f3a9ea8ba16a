//! Kernels on a problem: each buffer between guard bands, and what the kernel wrote where it must
//! not is an error.

pub mod error;
pub mod guard;
mod layout;
pub mod several;

use std::borrow::Cow;

use gpu_gemm::gpu_kernels::spec::Allocation;
use gpu_gemm::{Backend, Choice, Device, Space};

pub use error::{RunError, Trespass};
use guard::Guarded;
pub use layout::Run;
pub(crate) use layout::{Placed, pitched, product};
use layout::{as_given, pitched_matrix};

use crate::data::{Matrix, Number, Problem, by_inputs};

/// Runs the chosen kernel on `problem`, once: see [`Resident::run`].
pub fn run<T: Number>(
    device: &Device,
    choice: Choice,
    problem: &Problem<T>,
    cta_done: &(dyn Fn() + Sync),
) -> Result<Run<T>, RunError> {
    Resident::new(device, problem).run(choice, cta_done)
}

/// A problem on a device, for any number of kernels, one after the other. Its matrices are copied
/// there before the first, and again for a kernel that needs them allocated in another way.
pub struct Resident<'a, T: Number> {
    pub device: &'a Device,
    pub problem: &'a Problem<T>,
    there: Option<(Allocation, Box<dyn Multiply<T> + 'a>)>,
}

impl<'a, T: Number> Resident<'a, T> {
    /// Copies nothing yet.
    pub fn new(device: &'a Device, problem: &'a Problem<T>) -> Self {
        let there = None;
        Resident {
            device,
            problem,
            there,
        }
    }

    /// Runs the chosen kernel and returns C. Each buffer lies between guard bands; what the kernel
    /// wrote into them, into A, into B or between the rows of C is an error. An empty C launches
    /// nothing. `cta_done` is called after each CTA on the simulator, from any thread, and once on
    /// any other device and on several.
    ///
    /// # Errors
    ///
    /// The kernel does not multiply this type, the device fails, or the kernel writes where it must
    /// not.
    pub fn run(
        &mut self,
        choice: Choice,
        cta_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, RunError> {
        let (device, problem) = (self.device, self.problem);
        let (multiplies, asked) = (choice.variant.types.data_type(), problem.data_type());
        if multiplies != asked {
            return Err(RunError::WrongType {
                kernel: choice.variant.name.to_string(),
                multiplies: vec![multiplies],
                asked,
            });
        }
        if let Some(error) = device.lacks_tensor_cores(choice.variant) {
            return Err(error.into());
        }
        if let Device::Several(devices) = device {
            let run = several::run(devices, Some(choice), problem)?;
            cta_done();
            return Ok(run);
        }
        let backend = &*device.as_backend(cta_done)?;
        backend.enter()?;
        let allocation = choice.variant.allocation;
        // Copies for the other allocation are freed first. After an error they are not used again.
        let known = self.there.take().filter(|(known, _)| *known == allocation);
        let mut there = match known {
            Some((_, there)) => there,
            None => by_inputs!(problem, upload::<_, T>(backend, allocation, problem))?,
        };
        let run = there.multiply(backend, choice, problem)?;
        self.there = Some((allocation, there));
        if backend.space() != Space::Host {
            cta_done();
        }
        Ok(run)
    }
}

/// The matrices of a problem as they lie for some kernels, and copies of them on a device.
struct OnDevice<'a, Input: Number, T: Number> {
    a: Cow<'a, Matrix<Input>>,
    b: Cow<'a, Matrix<Input>>,
    c: Cow<'a, Matrix<T>>,
    copies: (Guarded<Input>, Guarded<Input>, Guarded<T>),
    /// Whether a kernel has written to the copy of C.
    is_used: bool,
}

fn upload<'a, Input: Number, T: Number>(
    backend: &dyn Backend,
    allocation: Allocation,
    problem: &'a Problem<T>,
) -> Result<Box<dyn Multiply<T> + 'a>, RunError> {
    let stored = problem.stored_as::<Input>()?;
    let (a, b, c) = match allocation {
        Allocation::AsGiven => (stored.a, stored.b, Cow::Borrowed(stored.c)),
        Allocation::Pitched => (
            Cow::Owned(pitched_matrix(&stored.a)?),
            Cow::Owned(pitched_matrix(&stored.b)?),
            Cow::Owned(pitched_matrix(stored.c)?),
        ),
    };
    let copies = (
        Guarded::upload(backend, &*a)?,
        Guarded::upload(backend, &*b)?,
        Guarded::upload(backend, &*c)?,
    );
    let is_used = false;
    Ok(Box::new(OnDevice {
        a,
        b,
        c,
        copies,
        is_used,
    }))
}

/// [`OnDevice`], whatever the type of A and B.
trait Multiply<T: Number> {
    fn multiply(
        &mut self,
        backend: &dyn Backend,
        choice: Choice,
        problem: &Problem<T>,
    ) -> Result<Run<T>, RunError>;
}

impl<Input: Number, T: Number> Multiply<T> for OnDevice<'_, Input, T> {
    fn multiply(
        &mut self,
        backend: &dyn Backend,
        choice: Choice,
        problem: &Problem<T>,
    ) -> Result<Run<T>, RunError> {
        let (a, b, c) = &mut self.copies;
        if std::mem::replace(&mut self.is_used, true) {
            c.restore(backend, &self.c)?;
        }
        let placed = [a.placed(&self.a), b.placed(&self.b), c.placed(&self.c)];
        let product = product(problem, placed);
        let plan = choice.plan(product.call(), &backend.facts())?;
        let poison = Matrix::<T>::poison(plan.workspace_bytes().div_ceil(size_of::<T>()));
        let workspace = Guarded::upload(backend, &poison)?;
        // Everything is compiled before the clock starts.
        backend.compile(&plan)?;
        let kernel = choice.variant.name;
        let bindings = product.bindings(workspace.placed(&poison).start);
        // SAFETY: the matrices and the workspace live until `time` has waited, and the plan is that
        // of this problem.
        let time = backend.time(kernel, &mut || unsafe {
            gpu_gemm::run(backend, &plan, &bindings)
        })?;

        let trespass = |what| RunError::Trespass {
            kernel: kernel.to_string(),
            what,
        };
        workspace.check_bands(backend, 'W')?.map_err(trespass)?;
        let checked = a.check_unchanged(backend, 'A', &self.a)?;
        checked.map_err(trespass)?;
        let checked = b.check_unchanged(backend, 'B', &self.b)?;
        checked.map_err(trespass)?;
        let result = c.result(backend, 'C', &self.c)?.map_err(trespass)?;
        let c = as_given(&problem.c, result);
        Ok(Run { c, time })
    }
}

#[cfg(test)]
mod tests {
    use super::{run as run_by, *};
    use crate::data::{Data, Layout};
    use crate::planted;
    use gpu_gemm::gpu_kernels::spec::EntryFn;
    use gpu_gemm::gpu_kernels::{naive, pitched};
    use gpu_gemm::{Shape, Simulator};

    fn simulator() -> Device {
        Device::Simulator(Simulator::default())
    }

    /// Runs a planted kernel on 3 x 4 x 5 with one element of padding everywhere.
    fn run(function: EntryFn) -> Result<Run<f32>, RunError> {
        let shape = Shape::new(3, 4, 5);
        let layout = Layout::padded(shape, [1; 3], [1; 3]);
        let problem = Problem::random(shape, layout, Data::Uniform, 1, 1.0, 1.0).unwrap();
        let choice = planted::kernel(function);
        run_by(&simulator(), choice, &problem, &|| ())
    }

    macro_rules! planted {
        (|$a:ident, $c:ident, $ldc:ident| $body:expr) => {
            |block| {
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

    /// The planted one leaves zeros where the others read C.
    #[test]
    fn a_problem_is_copied_once_for_each_allocation_and_each_kernel_finds_it_as_it_was() {
        let shape = Shape::new(33, 60, 19);
        let layout = Layout::padded(shape, [1, 2, 3], [3, 2, 1]);
        let problem = Problem::<f32>::random(shape, layout, Data::Normal, 1, 1.0, 1.0).unwrap();
        let device = simulator();
        let [naive, pitched] =
            [&naive::KERNEL, &pitched::KERNEL].map(|kernel| Choice::even(&kernel.variants[0]));
        let zeros = planted::kernel(|block| planted::write_each(block, |_, _, _| 0.0));
        let mut resident = Resident::new(&device, &problem);
        for choice in [zeros, naive, pitched, pitched, naive] {
            let alone = run_by(&device, choice, &problem, &|| ()).unwrap().c;
            let c = resident.run(choice, &|| ()).unwrap().c;
            assert_eq!(
                c.hash_of_bits(),
                alone.hash_of_bits(),
                "{}",
                choice.variant.name
            );
            let there = resident.there.as_ref().map(|there| there.0);
            assert_eq!(there, Some(choice.variant.allocation));
        }
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
        let error = run_by(&simulator(), choice, &problem, &|| ()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kernel `planted` does not multiply i32; it multiplies f32."
        );
    }
}
