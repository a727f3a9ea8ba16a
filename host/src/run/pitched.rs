//! Matrices whose rows begin where NVIDIA's driver would have them begin, for devices that do not
//! say where that is best.

use super::error::RunError;
use super::layout::Run;
use crate::data::{Layout, Matrix, Number, Problem};

/// Bytes that the start of each row of a pitched matrix is a multiple of, as the driver has it.
const PITCH_BYTES: usize = 512;

/// Runs a copy of the problem whose matrices lie so, and puts C back where it was.
pub(super) fn run<T: Number>(
    problem: &Problem<T>,
    run: impl FnOnce(&Problem<T>) -> Result<Run<T>, RunError>,
) -> Result<Run<T>, RunError> {
    let run = run(&pitched(problem)?)?;
    Ok(Run {
        c: as_given(&problem.c, run.c),
        ..run
    })
}

/// A copy of the problem whose matrices lie so.
pub(crate) fn pitched<T: Number>(problem: &Problem<T>) -> Result<Problem<T>, RunError> {
    let shape = problem.shape();
    let pitch = |columns: usize| columns.next_multiple_of(PITCH_BYTES / size_of::<T>()) - columns;
    let padding = [shape.k, shape.n, shape.n].map(pitch);
    Ok(problem.moved_to(Layout::padded(shape, padding, [0; 3]))?)
}

/// A result of such a copy, or of the problem itself, as its own `c` lies.
pub(crate) fn as_given<T: Number>(c: &Matrix<T>, result: Matrix<T>) -> Matrix<T> {
    if result.placement() == c.placement() {
        return result;
    }
    let mut given = c.clone();
    for row in 0..c.rows() {
        given.row_mut(row).copy_from_slice(result.row(row));
    }
    given
}
