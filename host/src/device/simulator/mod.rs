//! Kernels on the CPU: the launch that `cuda.rs` gives a GPU, given to `cuda_std`'s simulator.

mod buffer;
mod launches;

use std::time::Instant;

use cuda_std::simulator::{Launch, Report};
use gpu_kernels::spec::{Allocation, Variant};

use super::Run;
use super::error::{DeviceError, Trespass};
use super::guard;
use super::planned;
use crate::blas::{Call, Plan, Processor, Sharing, Stored, Transpose};
use crate::element::Element;
use crate::problem::{Layout, Matrix, Problem, Shape};
use buffer::{Guarded, SharedPointer};
use launches::Matrices;

/// Bytes that the start of each row of a pitched matrix is a multiple of, as the driver has it.
const PITCH_BYTES: usize = 512;

/// A change to how a launch is simulated.
type Configure = dyn Fn(Launch) -> Launch + Send + Sync;

/// Someone who is told what a launch did.
type Observe = dyn Fn(&Report) + Send + Sync;

/// The simulator, and how it is to run blocks.
pub struct Simulator {
    configure: Box<Configure>,
    report: Box<Observe>,
}

impl Default for Simulator {
    fn default() -> Self {
        Simulator::configured(|launch| launch)
    }
}

impl Simulator {
    /// A simulator that changes each launch before it runs: its thread order, or a barrier left out.
    pub fn configured(configure: impl Fn(Launch) -> Launch + Send + Sync + 'static) -> Self {
        Simulator {
            configure: Box::new(configure),
            report: Box::new(|_| ()),
        }
    }

    /// The same, and tells what each launch did.
    pub fn reporting(self, report: impl Fn(&Report) + Send + Sync + 'static) -> Self {
        Simulator {
            report: Box::new(report),
            ..self
        }
    }

    /// What it runs on.
    pub fn description(&self) -> String {
        match rayon::current_num_threads() {
            1 => "simulator on 1 CPU thread".to_string(),
            threads => format!("simulator on {threads} CPU threads"),
        }
    }

    /// See [`super::Device::run_shared`]. `variant` multiplies `T`.
    pub(crate) fn run<T: Element>(
        &self,
        variant: &Variant,
        sharing: Option<Sharing>,
        problem: &Problem<T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        match variant.allocation {
            Allocation::Packed => self.run_packed(variant, sharing, problem, block_done),
            Allocation::Pitched => {
                let shape = problem.shape();
                let pitch = |columns: usize| {
                    columns.next_multiple_of(PITCH_BYTES / size_of::<T>()) - columns
                };
                let padding = [shape.k, shape.n, shape.n].map(pitch);
                let pitched = problem
                    .moved_to(Layout::padded(shape, padding, [0; 3]))
                    .map_err(DeviceError::Host)?;
                let run = self.run_packed(variant, sharing, &pitched, block_done)?;
                let mut c = problem.c.clone();
                for row in 0..shape.m {
                    c.row_mut(row).copy_from_slice(run.c.row(row));
                }
                Ok(Run { c, ..run })
            }
        }
    }

    /// Runs it on the matrices as they lie.
    fn run_packed<T: Element>(
        &self,
        variant: &Variant,
        sharing: Option<Sharing>,
        problem: &Problem<T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        let product = Product {
            alpha: problem.alpha,
            a: (&problem.a, Transpose::No),
            b: (&problem.b, Transpose::No),
            beta: problem.beta,
            c: &problem.c,
        };
        let processor = || Ok(Processor::simulator());
        let plan = |call| planned::plan(variant, call, sharing, processor);
        self.gemm(&product, plan, block_done)
    }

    /// Does a product as `plan` says of it, and returns C. A, B, C and the workspace lie between guard bands; what a kernel wrote
    /// there, into A, into B or between the rows of C is an error.
    ///
    /// # Errors
    ///
    /// There is no plan, a kernel fails, or writes where it must not.
    ///
    /// # Panics
    ///
    /// If the matrices do not fit each other, or the plan's kernel does not multiply this type.
    pub fn gemm<'v, T: Element>(
        &self,
        product: &Product<'_, T>,
        plan: impl FnOnce(Call) -> Result<Plan<'v>, DeviceError>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        let shape = product.shape();
        let a = Guarded::new(product.a.0);
        let b = Guarded::new(product.b.0);
        let mut c = Guarded::new(product.c);
        let stored = |matrix: &Guarded<T>, transpose| {
            let address = matrix.elements().as_ptr() as usize;
            Stored::at(address, matrix.leading, transpose)
        };
        let call = Call {
            shape: match product.alpha == T::default() {
                true => Shape { k: 0, ..shape },
                false => shape,
            },
            a: stored(&a, product.a.1),
            b: stored(&b, product.b.1),
        };
        let plan = plan(call)?;
        let mut workspace = Guarded::poison(plan.workspace_elements());
        let matrices = Matrices {
            a: (a.elements(), a.leading),
            b: (b.elements(), b.leading),
            c: (SharedPointer(c.elements_pointer()), c.leading),
            workspace: SharedPointer(workspace.elements_pointer()),
        };
        let start = Instant::now();
        self.launch_plan(&plan, product, &matrices, block_done)?;
        let time = start.elapsed();

        let checked = workspace
            .check('W')
            .and_then(|()| check(&a, &b, &c, product));
        checked.map_err(|what| DeviceError::Trespass {
            kernel: plan.variant().name.to_string(),
            what,
        })?;
        let c = product.c.with_buffer(c.buffer().to_vec());
        Ok(Run { c, time })
    }
}

/// `C = alpha * op(A) * op(B) + beta * C`, on matrices of this machine: with `Transpose::Yes`, a matrix is stored as the transpose of
/// what is multiplied.
pub struct Product<'a, T> {
    pub alpha: T,
    pub a: (&'a Matrix<T>, Transpose),
    pub b: (&'a Matrix<T>, Transpose),
    pub beta: T,
    pub c: &'a Matrix<T>,
}

impl<T: Element> Product<'_, T> {
    /// Its dimensions.
    ///
    /// # Panics
    ///
    /// If the matrices do not fit each other.
    pub fn shape(&self) -> Shape {
        let turned = |(matrix, transpose): (&Matrix<T>, Transpose)| match transpose {
            Transpose::No => (matrix.rows(), matrix.columns()),
            Transpose::Yes => (matrix.columns(), matrix.rows()),
        };
        let (m, k) = turned(self.a);
        let n = self.c.columns();
        assert_eq!((m, (k, n)), (self.c.rows(), turned(self.b)));
        Shape { m, n, k }
    }
}

/// Checks everything that a kernel must not write.
fn check<T: Element>(
    a: &Guarded<T>,
    b: &Guarded<T>,
    c: &Guarded<T>,
    product: &Product<'_, T>,
) -> Result<(), Trespass> {
    for (name, guarded) in [('A', a), ('B', b), ('C', c)] {
        guarded.check(name)?;
    }
    guard::check_input('A', product.a.0.buffer(), a.buffer(), 0)?;
    guard::check_input('B', product.b.0.buffer(), b.buffer(), 0)?;
    guard::check_padding(product.c, c.buffer())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::problem::{Data, Shape};
    use gpu_kernels::spec::{Block, Function, GemmFn, Tile};

    fn variant(function: GemmFn<f32>) -> Variant {
        Variant::new(
            "planted",
            "planted",
            Block { x: 1, y: 1 },
            Tile { m: 64, n: 64, k: 1 },
            Function::F32(function),
        )
    }

    /// Runs a planted kernel on 3 x 4 x 5 with one element of padding everywhere.
    fn run(function: GemmFn<f32>) -> Result<Run<f32>, DeviceError> {
        let shape = Shape { m: 3, n: 4, k: 5 };
        let layout = Layout::padded(shape, [1; 3], [1; 3]);
        let problem = Problem::random(shape, layout, Data::Uniform, 1, 1.0, 1.0).unwrap();
        Device::Simulator(Simulator::default()).run(&variant(function), &problem)
    }

    macro_rules! planted {
        ($name:ident($a:ident, $c:ident, $ldc:ident) $body:block) => {
            #[allow(clippy::too_many_arguments, unused_variables)]
            unsafe fn $name(
                m: usize,
                n: usize,
                k: usize,
                alpha: f32,
                $a: &[f32],
                lda: usize,
                b: &[f32],
                ldb: usize,
                beta: f32,
                $c: *mut f32,
                $ldc: usize,
            ) {
                assert_eq!((m, n, k, lda, ldb, $ldc), (3, 4, 5, 6, 5, 5));
                assert_eq!(($a.len(), b.len()), (2 * 6 + 5, 4 * 5 + 4));
                // SAFETY: each planted kernel stays inside C's guard bands.
                unsafe { $body }
            }
        };
    }

    planted!(writes_inside(a, c, ldc) {
        *c.add(2 * ldc + 3) = a[0];
    });
    planted!(writes_padding(a, c, ldc) {
        *c.add(4) = 0.0;
    });
    planted!(writes_before(a, c, ldc) {
        *c.sub(2) = 0.0;
    });
    planted!(writes_past_the_end(a, c, ldc) {
        *c.add(3 * ldc + 8) = 0.0;
    });
    planted!(reads_past_the_end(a, c, ldc) {
        *c = a[a.len()];
    });

    fn trespass(function: GemmFn<f32>) -> Trespass {
        match run(function) {
            Err(DeviceError::Trespass { what, .. }) => what,
            other => panic!("not a trespass: {other:?}"),
        }
    }

    #[test]
    fn a_kernel_gets_the_arguments_of_the_problem_and_its_c_comes_back() {
        let c = run(writes_inside).unwrap().c;
        assert!(c.row(2)[3].abs() <= 1.0);
    }

    #[test]
    fn writes_outside_of_c_are_caught() {
        assert_eq!(trespass(writes_padding), Trespass::Padding { index: 1 + 4 });
        let guard = |distance| Trespass::Guard {
            matrix: 'C',
            distance,
        };
        assert_eq!(trespass(writes_before), guard(-1));
        assert_eq!(trespass(writes_past_the_end), guard(8));
    }

    #[test]
    fn an_index_out_of_bounds_names_the_kernel() {
        let message = run(reads_past_the_end).unwrap_err().to_string();
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
        let error = Device::Simulator(Simulator::default())
            .run(&variant(writes_inside), &problem)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "Kernel `planted` multiplies f32, not i32."
        );
    }

    #[test]
    fn buffers_are_aligned_as_the_driver_aligns_them() {
        let shape = Shape { m: 3, n: 4, k: 5 };
        let problem =
            Problem::<f32>::random(shape, Layout::compact(shape), Data::Uniform, 1, 1.0, 1.0)
                .unwrap();
        assert_eq!(
            Guarded::new(&problem.a).buffer().as_ptr() as usize % buffer::ALIGNMENT,
            0
        );
    }
}
