//! The library call on several devices, and the kernels that it runs there.

use gpu_kernels::spec::ElementType;

use crate::buffer::Space;
use crate::call::{Call, Shape, Transpose};
use crate::choose::{Choice, Chooser};
use crate::device::several::{Devices, HostProblem, Start};
use crate::matrix::{GemmError, Input, Output, StoredMatrix};
use crate::plan::{Plan, PlanError};

impl Devices {
    /// What makes the plans of their parts: by the chosen kernel, or for `None` by the one that
    /// suits the part's shape on its device.
    pub fn planner(
        &self,
        choice: Option<Choice>,
        element: ElementType,
    ) -> impl Fn(usize, Call) -> Result<Plan, PlanError> {
        let devices = 0..self.count();
        let choosers: Vec<Chooser> = match choice {
            Some(_) => Vec::new(),
            None => devices
                .clone()
                .map(|index| Chooser::of_several(self, index).0)
                .collect(),
        };
        let facts: Vec<_> = devices.map(|index| self.facts(index)).collect();
        move |device, call| {
            let suitable = || choosers[device].choose_for(element, call);
            let choice = choice.or_else(suitable).ok_or(PlanError::CopiesTooLarge {
                kernel: "auto",
                shape: call.shape,
            })?;
            choice.plan(call, &facts[device])
        }
    }

    /// `C = alpha * op(A) * op(B) + beta * C` on row-major matrices in host memory, each given
    /// with its leading dimension, and A and B with whether they are stored transposed, as the
    /// table of [`gemm`](crate::gemm) says. They are spread over the devices, each computes its
    /// part of C while it receives what the others have, and C comes back.
    ///
    /// ```
    /// use gpu_gemm::{Device, DeviceChoice, Shape, Transpose};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let Device::Several(devices) = Device::open("sim+sim".parse::<DeviceChoice>()?)?.device else {
    ///     unreachable!("that is what was asked for");
    /// };
    /// let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]); // 2 x 2
    /// let mut c = [0.0; 4];
    /// let no = Transpose::No;
    /// devices.gemm(1.0, (&a, 2, no), (&b, 2, no), 0.0, (&mut c, 2), Shape::cube(2))?;
    /// assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// A leading dimension is too small, a matrix does not fit into its slice, or a device fails,
    /// which is named; in that case C is as it was, or incomplete.
    pub fn gemm(
        &self,
        alpha: f32,
        (a, lda, transpose_a): (&[f32], usize, Transpose),
        (b, ldb, transpose_b): (&[f32], usize, Transpose),
        beta: f32,
        (c, ldc): (&mut [f32], usize),
        shape: Shape,
    ) -> Result<(), GemmError> {
        let Shape { m, n, k } = shape;
        let check = |name, span, (rows, columns), leading| {
            let matrix = StoredMatrix {
                name,
                rows,
                columns,
                leading,
            };
            matrix.checked_extent(span, Space::Host).map(|_| ())
        };
        check('A', Input::from(a).span, transpose_a.of((m, k)), lda)?;
        check('B', Input::from(b).span, transpose_b.of((k, n)), ldb)?;
        check('C', Output::from(&mut *c).span, (m, n), ldc)?;
        if shape.is_empty() {
            return Ok(());
        }
        let problem = HostProblem {
            shape,
            a: (a, lda, transpose_a),
            b: (b, ldb, transpose_b),
            c: (&*c, ldc),
        };
        let plan = self.planner(None, ElementType::F32);
        let (starts, scalars) = ([Start::Spread; 3], (alpha, beta));
        let mut product = self.product(problem, self.count(), starts, scalars, &plan)?;
        product.multiply(&|| ())?;
        Ok(product.read_c(c, ldc)?)
    }
}
