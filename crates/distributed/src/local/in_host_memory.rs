//! Products of parts in the host's memory.

use std::sync::Arc;

use gpu_gemm::{Chooser, Device, Shape};
use host::cpu::Team;
use host::cpu::view::{View, ViewMut};
use host::data::{Matrix, Number, Placement, Problem, ProblemError, Storage};
use host::rung::Rung;
use host::select::Asked;

use super::gpu::Gpu;
use super::{LocalError, LocalProduct};
use crate::{Element, MultiplyNatively};

/// A rung of the CPU's ladder.
pub(super) struct Native<T: Element> {
    pub multiply: MultiplyNatively<T>,
    pub team: Arc<Team>,
}

impl<T: Element> LocalProduct<T> for Native<T> {
    fn add_product(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LocalError> {
        (self.multiply)(a, b, c, &self.team);
        Ok(())
    }

    fn rows_of_a_strip(&self) -> Option<usize> {
        Some(512)
    }
}

/// A rank's GPU. Parts travel between the host's memory and the GPU's with each product.
pub(super) struct ByGpu<'a>(pub &'a Gpu);

impl<T: Element> LocalProduct<T> for ByGpu<'_> {
    fn add_product(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        mut c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LocalError> {
        let ByGpu(gpu) = self;
        let room = |part: View<'_, T>| gpu.room(part.rows() * part.columns());
        let (of_a, of_b) = (room(a)?, room(b)?);
        let on_gpu = (
            of_a.part(a.rows(), a.columns()),
            of_b.part(b.rows(), b.columns()),
        );
        // SAFETY: A and B are borrowed, and nobody else uses the rooms; `block_from` waits for the
        // copies, and `wait_for` for the product. If one of these fails, the job ends.
        unsafe {
            gpu.upload(a, on_gpu.0)?;
            gpu.upload(b, on_gpu.1)?;
            let mut block = gpu.block_from(c.reborrow())?;
            let columns = 0..c.columns();
            gpu.multiply(on_gpu.0, on_gpu.1, &mut block, columns)?;
            gpu.wait_for(&block)?;
            Ok(gpu.fetch(&block, c)?)
        }
    }

    fn rows_of_a_strip(&self) -> Option<usize> {
        None
    }
}

/// A GPU kernel on another device, such as the simulator, which gets copies of the matrices.
pub(super) struct OnDevice {
    pub device: Arc<Device>,
    pub asked: Asked,
    pub chooser: Arc<Chooser>,
    pub team: Arc<Team>,
}

impl<T: Element> LocalProduct<T> for OnDevice {
    fn add_product(
        &self,
        a: View<'_, T>,
        b: View<'_, T>,
        mut c: ViewMut<'_, T::Sum>,
    ) -> Result<(), LocalError> {
        let shape = Shape::new(a.rows(), b.columns(), a.columns());
        let call = Storage::default().call(shape, T::TYPE);
        let rung = self.asked.rung(&self.chooser, T::PRODUCT, call);
        let rung: Rung = rung.ok_or(LocalError::NoKernel(shape))?;
        let one = T::Sum::from_integer(1);
        let so_far = Matrix::from_rows(shape.m, shape.n, Placement::compact(shape.n), |_, _| ())?;
        // Of matrices in the type of C, which the kernel gets A and B of their own type from.
        let problem = Problem::new(one, one, compact(a)?, compact(b)?, so_far)?;
        let mut problem = Problem {
            inputs: T::TYPE,
            ..problem
        };
        for row in 0..shape.m {
            problem.c.row_mut(row).copy_from_slice(c.row_mut(row));
        }
        let run = rung.run(&self.device, &self.team, &problem, &|| ())?;
        for row in 0..shape.m {
            c.row_mut(row).copy_from_slice(run.c.row(row));
        }
        Ok(())
    }

    fn rows_of_a_strip(&self) -> Option<usize> {
        None
    }
}

/// A copy, in the type of sums.
fn compact<T: Element>(view: View<'_, T>) -> Result<Matrix<T::Sum>, ProblemError> {
    let placement = Placement::compact(view.columns());
    Matrix::from_rows(view.rows(), view.columns(), placement, |row, elements| {
        for (element, source) in elements.iter_mut().zip(view.row(row)) {
            *element = source.as_sum();
        }
    })
}
