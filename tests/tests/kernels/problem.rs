//! Products of A and B in elements of one type and a C of another, and whether a result is right:
//! exactly on integers, else within the bound of rounding.

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{ElementType, Shape};
use libtest_mimic::Failed;
use verification::data::{Data, Matrix, Number, Problem};
use verification::verify::{self, Coverage, ErrorModel};

/// Where samples are taken of a C that is too large to compare all of it.
const TILE: Tile = Tile {
    m: 128,
    n: 128,
    k: 8,
};

/// Integers of which no sum rounds, and whose products show every bit that a kernel of this model
/// keeps of an element; of integers any, whose sums wrap.
pub fn integers<C: Number>(
    inputs: ElementType,
    shape: Shape,
    model: ErrorModel,
) -> Result<Data, Failed> {
    let exact = model.exact_data_of::<C>(inputs, shape);
    match inputs {
        ElementType::I32 | ElementType::I8 => Ok(Data::Uniform),
        _ => Ok(exact.ok_or("k is too large to be exact")?),
    }
}

/// Every product of a batch has this result, of such data.
pub fn is_right<C: Number>(
    problem: &Problem<C>,
    c: &Matrix<C>,
    (data, model): (Data, ErrorModel),
    coverage: Coverage<'static>,
) -> Result<(), Failed> {
    verify::each_product(problem, c, |_, problem, c| match data {
        Data::Uniform => verify::general(problem, c, TILE, data, coverage, model),
        _ => verify::exact(problem, c, TILE, coverage),
    })?;
    Ok(())
}
