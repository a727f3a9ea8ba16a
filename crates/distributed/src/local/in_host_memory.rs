//! Products of parts in the host's memory.

use std::sync::Arc;

use gpu_gemm::{Chooser, Device, Shape};
use host::cpu::Team;
use host::cpu::view::{View, ViewMut};
use host::data::{Matrix, Number, Placement, Problem, ProblemError, Storage};
use host::rung::Rung;
use host::select::Asked;

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
