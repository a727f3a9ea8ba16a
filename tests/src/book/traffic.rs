//! How often a kernel reads memory, as the host derives it ([`host::traffic`]), in a table.

use gpu_kernels::spec::Stages;
use host::problem::Shape;
use host::traffic::{Direction, Space, Traffic};

use super::{kernel, results};

/// The size that intensities are given for, and at which rows fit in shared memory.
const SHAPE: Shape = Shape::cube(4096);

/// Launch shape and traffic of a kernel's variants.
///
/// # Errors
///
/// There is no such kernel.
pub fn table(name: &str) -> Result<String, String> {
    let mut table = format!(
        "\n| variant | threads of a block | tile of a block | patch of a thread | global reads | shared reads | \
         flops a byte at {} |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        SHAPE.k
    );
    for variant in results::of_floats(kernel(name)?) {
        let (block, tile) = (variant.block, variant.tile);
        let (rows, columns) = variant.patch();
        let depth = match variant.stages {
            Stages::Nothing => String::new(),
            Stages::RowOfA | Stages::Tiles => format!(", {} deep", tile.k),
        };
        let traffic = Traffic::of(variant, SHAPE, false);
        table += &format!(
            "| `{}` | {} × {} | {} × {}{depth} | {rows} × {columns} | {} | {} | {:.2} |\n",
            variant.name,
            block.x,
            block.y,
            tile.m,
            tile.n,
            reads(&traffic, Space::Global),
            reads(&traffic, Space::Shared),
            traffic.intensity(SHAPE, size_of::<f32>()),
        );
    }
    Ok(table + "\n")
}

/// What is read from a memory, matrix by matrix.
fn reads(traffic: &Traffic, space: Space) -> String {
    let of_space = |access: &&host::traffic::Access| {
        access.space == space && access.direction == Direction::Read
    };
    let reads: Vec<String> = traffic
        .accesses
        .iter()
        .filter(of_space)
        .map(|access| format!("{}: {}", access.matrix, access.formula.replace('*', "·")))
        .collect();
    match reads.is_empty() {
        true => "none".to_string(),
        false => reads.join(", "),
    }
}
