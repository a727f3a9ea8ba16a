//! How often a kernel reads memory, as [`host::traffic`] derives it, in a table.

use gpu_gemm::Shape;
use gpu_kernels::spec::{Grid, Staging};
use host::traffic::{Direction, Space, Traffic};

use crate::ladder::{kernel, of_floats};
use crate::parts::unbroken;

/// The size for which arithmetic intensities are given; its rows of A fit in shared memory.
const SHAPE: Shape = Shape::cube(4096);

/// Launch shape and traffic of a kernel's variants; those that differ in neither share a row.
pub fn table(name: &str) -> Result<String, String> {
    let mut table = format!(
        "\n| variant | threads | block tile | thread tile | global reads | shared reads | \
         flop/byte at {} |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        SHAPE.k
    );
    let mut rows: Vec<(Vec<&str>, String)> = Vec::new();
    for variant in of_floats(kernel(name)?) {
        let (block, tile) = (variant.block, variant.tile);
        let (tile_m, tile_n) = variant.thread_tile;
        let staged = match variant.staging {
            Staging::None => String::new(),
            Staging::RowOfA | Staging::Tiles | Staging::Ring { .. } => format!(" × {}", tile.k),
        };
        let block_tile = match variant.grid {
            Grid::Linear => format!("{} in sequence", tile.n),
            _ => format!("{} × {}{staged}", tile.m, tile.n),
        };
        // The kernel gets the columns that full tiles take, where another has the remainder.
        let n = match variant.n_remainder {
            Some(_) => SHAPE.n - SHAPE.n % tile.n as usize,
            None => SHAPE.n,
        };
        let shape = Shape { n, ..SHAPE };
        let traffic = Traffic::of(variant, shape, false);
        let counts = format!(
            "{} | {} | {} | {} | {} | {:.2}",
            unbroken(&format!("{} × {}", block.x, block.y)),
            unbroken(&block_tile),
            unbroken(&format!("{tile_m} × {tile_n}")),
            reads(&traffic, Space::Global),
            reads(&traffic, Space::Shared),
            traffic.intensity(shape),
        );
        match rows.iter_mut().find(|(_, of_row)| *of_row == counts) {
            Some((names, _)) => names.push(variant.name),
            None => rows.push((vec![variant.name], counts)),
        }
    }
    for (names, counts) in rows {
        table += &format!("| {} | {counts} |\n", together(&names));
    }
    Ok(table + "\n")
}

/// The first name, and of the others what they add to it.
fn together(names: &[&str]) -> String {
    let short = names.iter().map(|name| match name.strip_prefix(names[0]) {
        Some(ending) if !ending.is_empty() => format!("`{ending}`"),
        _ => format!("`{name}`"),
    });
    short.collect::<Vec<String>>().join(", ")
}

/// The reads from a memory, matrix by matrix.
fn reads(traffic: &Traffic, space: Space) -> String {
    let of_space = |access: &&host::traffic::Access| {
        access.space == space && access.direction == Direction::Read
    };
    let reads: Vec<String> = traffic
        .accesses
        .iter()
        .filter(of_space)
        .map(|access| {
            let formula = access.formula.replace('*', "·");
            unbroken(&format!("{}: {formula}", access.matrix))
        })
        .collect();
    match reads.is_empty() {
        true => "none".to_string(),
        false => reads.join(", "),
    }
}
