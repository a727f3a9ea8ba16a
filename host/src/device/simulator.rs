//! Kernels on the CPU: the launch that `cuda.rs` gives a GPU, given to `cuda_std`'s simulator.

use std::time::Instant;

use cuda_std::simulator::Launch;
use gpu_kernels::spec::{Allocation, Variant};

use super::Run;
use super::error::{DeviceError, Trespass};
use super::guard::{self, GUARD};
use super::launch::bands;
use crate::element::{Element, Entry};
use crate::problem::{Layout, Matrix, Problem};

/// Bytes that every buffer starts at a multiple of, as the driver's allocations do: kernels choose by alignment.
const ALIGNMENT: usize = 256;

/// Bytes that the start of each row of a pitched matrix is a multiple of, as the driver has it.
const PITCH_BYTES: usize = 512;

/// A change to how a launch is simulated.
type Configure = dyn Fn(Launch) -> Launch + Send + Sync;

/// The simulator, and how it is to run blocks.
pub struct Simulator {
    configure: Box<Configure>,
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
        }
    }

    /// What it runs on.
    pub fn description(&self) -> String {
        match rayon::current_num_threads() {
            1 => "simulator on 1 CPU thread".to_string(),
            threads => format!("simulator on {threads} CPU threads"),
        }
    }

    /// See [`super::Device::run_observed`]. `variant` multiplies `T`.
    pub(crate) fn run<T: Element>(
        &self,
        variant: &Variant,
        problem: &Problem<T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        match variant.allocation {
            Allocation::Packed => self.run_packed(variant, problem, block_done),
            Allocation::Pitched => {
                let shape = problem.shape();
                let pitch = |columns: usize| {
                    columns.next_multiple_of(PITCH_BYTES / size_of::<T>()) - columns
                };
                let padding = [shape.k, shape.n, shape.n].map(pitch);
                let pitched = problem
                    .moved_to(Layout::padded(shape, padding, [0; 3]))
                    .map_err(DeviceError::Host)?;
                let run = self.run_packed(variant, &pitched, block_done)?;
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
        problem: &Problem<T>,
        block_done: &(dyn Fn() + Sync),
    ) -> Result<Run<T>, DeviceError> {
        let Some(Entry::Gemm(function)) = T::function(variant) else {
            unreachable!("the caller has compared the types");
        };
        let shape = problem.shape();
        let a = Guarded::new(&problem.a);
        let b = Guarded::new(&problem.b);
        let mut c = Guarded::new(&problem.c);
        let (lda, ldb, ldc) = (a.leading, b.leading, c.leading);
        let c_pointer = SharedPointer(c.elements_pointer());

        let bands = bands(variant, shape)?;
        let start = Instant::now();
        for band in bands {
            let a_rows = a.rows_from(band.first_row);
            let b_rows = b.rows_from(0);
            let c_rows = SharedPointer(c_pointer.get().wrapping_add(band.first_row * ldc));
            let kernel = || {
                // SAFETY: the slices end with A and B, `c_rows` is valid for the band's rows of C, which nothing else
                // touches until the launch ends, and the launch has the shape that the variant asks for.
                unsafe {
                    function(
                        band.rows,
                        shape.n,
                        shape.k,
                        problem.alpha,
                        a_rows,
                        lda,
                        b_rows,
                        ldb,
                        problem.beta,
                        c_rows.get(),
                        ldc,
                    )
                }
            };
            let shared_bytes = variant.dynamic_shared_elements(shape.k) as usize * size_of::<T>();
            let launch = Launch::new(band.grid, (variant.block.x, variant.block.y))
                .dynamic_shared_bytes(shared_bytes);
            (self.configure)(launch)
                .run_observed(kernel, block_done)
                .map_err(|fault| DeviceError::Simulator {
                    kernel: variant.name.to_string(),
                    fault,
                })?;
        }
        let time = start.elapsed();

        check(&a, &b, &c, problem).map_err(|what| DeviceError::Trespass {
            kernel: variant.name.to_string(),
            what,
        })?;
        let c = problem.c.with_buffer(c.buffer().to_vec());
        Ok(Run { c, time })
    }
}

/// Checks everything that a kernel must not write.
fn check<T: Element>(
    a: &Guarded<T>,
    b: &Guarded<T>,
    c: &Guarded<T>,
    problem: &Problem<T>,
) -> Result<(), Trespass> {
    for (name, guarded) in [('A', a), ('B', b), ('C', c)] {
        let (before, after) = guarded.guards();
        guard::check_bands(name, before, after)?;
    }
    guard::check_input('A', problem.a.buffer(), a.buffer(), 0)?;
    guard::check_input('B', problem.b.buffer(), b.buffer(), 0)?;
    guard::check_padding(&problem.c, c.buffer())
}

/// A copy of a matrix's buffer, aligned, between guard bands.
struct Guarded<T> {
    storage: Vec<T>,
    /// Where the buffer starts in `storage`.
    start: usize,
    /// Elements of the buffer.
    length: usize,
    /// Where the matrix starts in the buffer, and its extent from there.
    offset: usize,
    extent: usize,
    leading: usize,
}

impl<T: Element> Guarded<T> {
    fn new(matrix: &Matrix<T>) -> Self {
        let buffer = matrix.buffer();
        let slack = ALIGNMENT / size_of::<T>();
        let mut storage = vec![T::POISON; buffer.len() + 2 * GUARD + slack];
        let start = GUARD + storage[GUARD..].as_ptr().align_offset(ALIGNMENT).min(slack);
        storage[start..start + buffer.len()].copy_from_slice(buffer);
        Guarded {
            storage,
            start,
            length: buffer.len(),
            offset: matrix.placement().offset,
            extent: matrix.extent(),
            leading: matrix.leading(),
        }
    }

    fn buffer(&self) -> &[T] {
        &self.storage[self.start..self.start + self.length]
    }

    fn guards(&self) -> (&[T], &[T]) {
        (
            &self.storage[..self.start],
            &self.storage[self.start + self.length..],
        )
    }

    /// From the first element of `row` to the last element of the matrix; empty for an empty matrix.
    fn rows_from(&self, row: usize) -> &[T] {
        let skipped = (row * self.leading).min(self.extent);
        let first = self.start + self.offset;
        &self.storage[first + skipped..first + self.extent]
    }

    fn elements_pointer(&mut self) -> *mut T {
        self.storage[self.start + self.offset..].as_mut_ptr()
    }
}

/// A pointer that the threads of a launch share, as they do on a GPU.
struct SharedPointer<T>(*mut T);

// SAFETY: it only carries an address; the kernels that write through it promise to write disjoint elements.
unsafe impl<T: Send> Sync for SharedPointer<T> {}

impl<T> SharedPointer<T> {
    fn get(&self) -> *mut T {
        self.0
    }
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
            Guarded::new(&problem.a).buffer().as_ptr() as usize % ALIGNMENT,
            0
        );
    }
}
