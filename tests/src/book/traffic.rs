//! How often a kernel reads memory, derived from its tile, its patch and what it stages.
//!
//! An operand that a block stages comes from global memory once for each tile, and from shared memory once for each
//! thread's patch; one that it does not comes from global memory once for each patch. See Kirk and Hwu, "Programming
//! Massively Parallel Processors", on tiling and on thread coarsening.

use gpu_kernels::spec::{Grid, Stages, Variant};

use super::{kernel, results};

/// Reads of one operand: M*N*K divided by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reuse {
    /// An element that was read serves so many products.
    Times(u32),
    /// All N columns of C.
    Columns,
}

/// Reads of A and of B.
type Reads = [Reuse; 2];

fn global_reads(variant: &Variant) -> Reads {
    let (rows, columns) = variant.patch();
    let tile = variant.tile;
    match variant.stages {
        Stages::Nothing => [Reuse::Times(columns), Reuse::Times(rows)],
        Stages::RowOfA => [Reuse::Columns, Reuse::Times(rows)],
        Stages::Tiles if variant.grid == Grid::Rows => [Reuse::Columns, Reuse::Times(tile.m)],
        Stages::Tiles => [Reuse::Times(tile.n), Reuse::Times(tile.m)],
    }
}

fn shared_reads(variant: &Variant) -> Vec<Reuse> {
    let (rows, columns) = variant.patch();
    match variant.stages {
        Stages::Nothing => vec![],
        Stages::RowOfA => vec![Reuse::Times(columns)],
        Stages::Tiles => vec![Reuse::Times(columns), Reuse::Times(rows)],
    }
}

/// The reads as a formula.
fn formula(reads: &[Reuse]) -> String {
    match reads {
        [] => "none".to_string(),
        [Reuse::Columns, Reuse::Times(1)] => "M·K + M·N·K".to_string(),
        [Reuse::Times(1), Reuse::Times(1)] => "2·M·N·K".to_string(),
        [Reuse::Times(1)] => "M·N·K".to_string(),
        reads => {
            let terms = reads.iter().map(|reuse| match reuse {
                Reuse::Times(1) => "1".to_string(),
                Reuse::Times(times) => format!("1/{times}"),
                Reuse::Columns => "1/N".to_string(),
            });
            format!("M·N·K·({})", terms.collect::<Vec<_>>().join(" + "))
        }
    }
}

/// Floating-point operations for each byte of `f32` read from global memory, for large matrices.
fn intensity(variant: &Variant) -> f64 {
    let reads: f64 = global_reads(variant)
        .iter()
        .map(|reuse| match reuse {
            Reuse::Times(times) => 1.0 / f64::from(*times),
            Reuse::Columns => 0.0,
        })
        .sum();
    2.0 / (4.0 * reads)
}

/// With two digits after the point, or none if they are zeros.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.strip_suffix(".00").unwrap_or(&text).to_string()
}

/// Launch shape and traffic of a kernel's variants.
///
/// # Errors
///
/// There is no such kernel.
pub fn table(name: &str) -> Result<String, String> {
    let mut table = "\n| variant | threads of a block | tile of a block | patch of a thread | global reads | shared reads | \
                     flops a byte |\n| --- | --- | --- | --- | --- | --- | --- |\n"
        .to_string();
    for variant in results::of_floats(kernel(name)?) {
        let (block, tile) = (variant.block, variant.tile);
        let (rows, columns) = variant.patch();
        let depth = match variant.stages {
            Stages::Nothing => String::new(),
            Stages::RowOfA | Stages::Tiles => format!(", {} deep", tile.k),
        };
        table += &format!(
            "| `{}` | {} × {} | {} × {}{depth} | {rows} × {columns} | {} | {} | {} |\n",
            variant.name,
            block.x,
            block.y,
            tile.m,
            tile.n,
            formula(&global_reads(variant)),
            formula(&shared_reads(variant)),
            number(intensity(variant)),
        );
    }
    Ok(table + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> (String, String, f64) {
        let variant = results::of_floats(kernel(name).unwrap()).next().unwrap();
        (
            formula(&global_reads(variant)),
            formula(&shared_reads(variant)),
            intensity(variant),
        )
    }

    /// As worked out by hand in the kernels' own headers.
    #[test]
    fn traffic_is_as_worked_out_by_hand() {
        let case =
            |global: &str, shared: &str, flops| (global.to_string(), shared.to_string(), flops);
        assert_eq!(of("naive"), case("2·M·N·K", "none", 0.25));
        assert_eq!(of("row-shared"), case("M·K + M·N·K", "M·N·K", 0.5));
        assert_eq!(of("tiled"), case("M·N·K·(1/32 + 1/32)", "2·M·N·K", 8.0));
        assert_eq!(
            of("register-blocked"),
            case("M·N·K·(1/128 + 1/128)", "M·N·K·(1/8 + 1/8)", 32.0)
        );
    }
}
