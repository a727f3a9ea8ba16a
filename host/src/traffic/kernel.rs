//! The traffic of one kernel: each access, its formula and its elements.

use gpu_gemm::gpu_kernels::spec::{Staging, Unit, Variant};
use gpu_gemm::{DataType, ElementType, Shape};
use serde::Serialize;

/// A memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    Global,
    Shared,
}

/// Whether an element is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Read,
    Write,
}

/// One of the launches of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A copy of an operand, before the kernel.
    Copy,
    Kernel,
    /// The addition of partial sums, after it.
    FixUp,
    /// The kernel that computes the N remainder.
    #[serde(rename = "n_remainder")]
    Remainder,
}

/// Accesses of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub by: By,
    pub space: Space,
    pub direction: Direction,
    /// `A`, `B` or `C`; `P` for partial sums.
    pub matrix: char,
    /// The formula, for shapes that tiles divide evenly, such as `M*N*K / 128`.
    pub formula: String,
    /// The number for this shape, edges included.
    pub elements: u128,
    pub bytes: u128,
    /// Whether the formula gives another number, because tiles do not divide the shape evenly.
    pub is_beside_formula: bool,
}

/// Bytes of an element of this matrix, for a kernel of `data_type`. Partial sums of 16-bit
/// elements are f32.
pub(super) fn element_bytes(matrix: char, data_type: DataType) -> u128 {
    let element = match matrix {
        'A' | 'B' => data_type.inputs,
        'P' if data_type.c.bytes() == 2 => ElementType::F32,
        _ => data_type.c,
    };
    element.bytes() as u128
}

/// The tile of one reader: of a thread, a warp or a warpgroup.
fn reader(variant: &Variant) -> (u32, u32) {
    match (variant.unit, variant.staging) {
        (Unit::CudaCores, _) => variant.thread_tile,
        // The four warps of a warpgroup, 16 rows each, count as one reader: their tiles are below
        // each other, or, where they compute the transpose, beside each other.
        (Unit::TensorCores { warp_tile: (16, n) }, Staging::Ring { .. }) => (64, n),
        (Unit::TensorCores { warp_tile: (m, 16) }, Staging::Ring { .. }) => (m, 64),
        (Unit::TensorCores { warp_tile }, _) => warp_tile,
    }
}

/// All accesses of a kernel that computes one result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    pub accesses: Vec<Access>,
}

impl Traffic {
    /// The accesses of `variant` itself on a problem of this shape; `reads_c` unless beta is zero.
    pub fn of(variant: &Variant, shape: Shape, reads_c: bool) -> Traffic {
        let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| size as u128);
        let [tile_m, tile_n, tile_k] =
            [variant.tile.m, variant.tile.n, variant.tile.k].map(u128::from);
        let (reader_m, reader_n) = reader(variant);
        let (reader_m, reader_n) = (u128::from(reader_m), u128::from(reader_n));
        // A formula, and its value for this shape as a dividend and a divisor.
        let per = |divisor: u128| {
            let formula = match divisor {
                1 => "M*N*K".to_string(),
                divisor => format!("M*N*K / {divisor}"),
            };
            (formula, m * n * k, divisor)
        };
        let once = |formula: &str, elements: u128| (formula.to_string(), elements, 1);
        // The dimensions, rounded up to full tiles.
        let [full_m, full_n, full_k] =
            [(m, tile_m), (n, tile_n), (k, tile_k)].map(|(size, tile)| size.next_multiple_of(tile));

        let mut accesses = Vec::new();
        let mut add = |space, direction, matrix, formula: (String, u128, u128), elements: u128| {
            let (formula, dividend, divisor) = formula;
            accesses.push(Access {
                by: By::Kernel,
                space,
                direction,
                matrix,
                formula,
                elements,
                bytes: elements * element_bytes(matrix, variant.types.data_type()),
                is_beside_formula: elements * divisor != dividend,
            });
        };
        use Direction::{Read, Write};
        use Space::{Global, Shared};
        match variant.staging {
            Staging::None => {
                let (a, b) = (m * k * n.div_ceil(reader_n), n * k * m.div_ceil(reader_m));
                add(Global, Read, 'A', per(reader_n), a);
                add(Global, Read, 'B', per(reader_m), b);
            }
            Staging::RowOfA => {
                // A row that fits stays in shared memory; the parts of a longer row are loaded
                // again for each tile of columns.
                let (formula, staged) = match k <= tile_k {
                    true => (once("M*K", m * k), m * k),
                    false => (per(tile_n), m * k * n.div_ceil(tile_n)),
                };
                let (a, b) = (m * k * n.div_ceil(reader_n), n * k * m.div_ceil(reader_m));
                add(Global, Read, 'A', formula.clone(), staged);
                add(Global, Read, 'B', per(reader_m), b);
                add(Shared, Write, 'A', formula, staged);
                add(Shared, Read, 'A', per(reader_n), a);
            }
            Staging::Tiles | Staging::Ring { .. } => {
                let (tiles_m, tiles_n) = (full_m / tile_m, full_n / tile_n);
                let full = full_m * full_n * full_k;
                let (rows, columns, depth) = match variant.exact_tiles {
                    true => (full_m, full_n, full_k),
                    false => (m, n, k),
                };
                add(Global, Read, 'A', per(tile_n), rows * depth * tiles_n);
                add(Global, Read, 'B', per(tile_m), columns * depth * tiles_m);
                add(Shared, Write, 'A', per(tile_n), full_m * full_k * tiles_n);
                add(Shared, Write, 'B', per(tile_m), full_n * full_k * tiles_m);
                add(Shared, Read, 'A', per(reader_n), full / reader_n);
                add(Shared, Read, 'B', per(reader_m), full / reader_m);
            }
        }
        if reads_c {
            add(Global, Read, 'C', once("M*N", m * n), m * n);
        }
        add(Global, Write, 'C', once("M*N", m * n), m * n);
        // Accesses to shared memory after those to global memory, otherwise in the same order.
        accesses.sort_by_key(|access: &Access| access.space == Shared);
        Traffic { accesses }
    }

    /// The bytes moved in this space and direction.
    pub fn bytes(&self, space: Space, direction: Direction) -> u128 {
        let accesses = self.accesses.iter();
        let such = accesses.filter(|one| (one.space, one.direction) == (space, direction));
        such.map(|access| access.bytes).sum()
    }

    /// Operations for each byte that threads move from or to global memory; infinite if they move
    /// none.
    pub fn intensity(&self, shape: Shape) -> f64 {
        let bytes = [Direction::Read, Direction::Write].map(|way| self.bytes(Space::Global, way));
        shape.flops() / bytes.iter().sum::<u128>() as f64
    }
}

/// Operations for each byte if every element of A, B and C moved once: no kernel can have more.
pub fn compulsory_intensity(shape: Shape, data_type: DataType, reads_c: bool) -> f64 {
    let [m, n, k] = [shape.m, shape.n, shape.k].map(|size| size as f64);
    let [inputs, c] = [data_type.inputs, data_type.c].map(|element| element.bytes() as f64);
    let times = if reads_c { 2.0 } else { 1.0 };
    shape.flops() / ((m * k + k * n) * inputs + times * m * n * c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::gpu_kernels::spec::Grid;
    use gpu_gemm::gpu_kernels::variants;

    /// Accesses in the order global A, B, shared writes A, B, shared reads A, B.
    type Counts = [u128; 6];

    /// Counts the accesses of every CTA, k-iteration by k-iteration.
    fn counted(variant: &Variant, shape: Shape) -> Counts {
        let Shape { m, n, k } = shape;
        let [tile_m, tile_n, tile_k] =
            [variant.tile.m, variant.tile.n, variant.tile.k].map(|size| size as usize);
        let (reader_m, reader_n) = reader(variant);
        let (reader_m, reader_n) = (reader_m as usize, reader_n as usize);
        let mut counts = [0; 6];
        let mut count = |which: usize, elements: usize| counts[which] += elements as u128;
        match variant.staging {
            Staging::None => {
                for row in (0..m).step_by(reader_m) {
                    for col in (0..n).step_by(reader_n) {
                        count(0, k * (m - row).min(reader_m));
                        count(1, k * (n - col).min(reader_n));
                    }
                }
            }
            Staging::RowOfA => {
                assert_eq!(variant.grid, Grid::Rows);
                for _row in 0..m {
                    let mut staged = None;
                    for first_col in (0..n).step_by(tile_n) {
                        for k0 in (0..k).step_by(tile_k) {
                            let part = tile_k.min(k - k0);
                            if staged.replace(k0) != Some(k0) {
                                [0, 2].into_iter().for_each(|which| count(which, part));
                            }
                            let columns = tile_n.min(n - first_col);
                            [1, 4]
                                .into_iter()
                                .for_each(|which| count(which, part * columns));
                        }
                    }
                }
            }
            Staging::Tiles | Staging::Ring { .. } => {
                let is_ring = matches!(variant.staging, Staging::Ring { .. });
                let threads = variant.block.threads();
                // If there are several warpgroups, all but one multiply.
                let warpgroups = (threads / 128 - u32::from(is_ring).min(threads / 128)).max(1);
                let readers = match variant.unit {
                    Unit::CudaCores => threads,
                    Unit::TensorCores { .. } if !is_ring => threads / 32,
                    Unit::TensorCores {
                        warp_tile: (16, _) | (_, 16),
                    } => warpgroups,
                    // Each warp by itself.
                    Unit::TensorCores { .. } => 4 * warpgroups,
                };
                let reads = readers as usize * (tile_k / variant.k_slices as usize);
                for row0 in (0..m).step_by(tile_m) {
                    for col0 in (0..n).step_by(tile_n) {
                        for k0 in (0..k).step_by(tile_k) {
                            let (rows, columns, depth) = match variant.exact_tiles {
                                true => (tile_m, tile_n, tile_k),
                                false => (m - row0, n - col0, k - k0),
                            };
                            let depth = depth.min(tile_k);
                            count(0, rows.min(tile_m) * depth);
                            count(1, columns.min(tile_n) * depth);
                            count(2, tile_m * tile_k);
                            count(3, tile_n * tile_k);
                            count(4, reads * reader_m);
                            count(5, reads * reader_n);
                        }
                    }
                }
            }
        }
        counts
    }

    fn derived(variant: &Variant, shape: Shape) -> Counts {
        use Direction::{Read, Write};
        let traffic = Traffic::of(variant, shape, false);
        [
            (Space::Global, Read, 'A'),
            (Space::Global, Read, 'B'),
            (Space::Shared, Write, 'A'),
            (Space::Shared, Write, 'B'),
            (Space::Shared, Read, 'A'),
            (Space::Shared, Read, 'B'),
        ]
        .map(|way| {
            let is = |access: &&Access| (access.space, access.direction, access.matrix) == way;
            let found = traffic.accesses.iter().find(is);
            found.map_or(0, |access| access.elements)
        })
    }

    #[test]
    fn the_formulas_count_what_threads_do_with_edges_and_without() {
        for variant in variants() {
            for (m, n, k) in [
                (128, 256, 32),
                (129, 257, 33),
                (1, 1, 1),
                (63, 300, 9),
                (2, 513, 4100),
                (3, 5, 0),
            ] {
                let shape = Shape { m, n, k };
                let (derived, counted) = (derived(variant, shape), counted(variant, shape));
                assert_eq!(derived, counted, "{} at {shape}", variant.name);
            }
        }
    }

    #[test]
    fn where_tiles_divide_the_shape_the_formulas_give_the_counts() {
        // Every tile divides this one, and a row of A fits in shared memory.
        let divided = Shape::new(1 << 12, 3 << 12, 1 << 12);
        for variant in variants() {
            let is_beside = |shape| {
                let accesses = Traffic::of(variant, shape, true).accesses;
                accesses.iter().any(|access| access.is_beside_formula)
            };
            assert!(!is_beside(divided), "{}", variant.name);
            let has_tiles = variant.staging == Staging::Tiles;
            assert!(!has_tiles || is_beside(Shape::new(4097, 5, 3)));
        }
    }

    fn intensity(kernel: &str, shape: Shape) -> f64 {
        let variant = variants().find(|variant| variant.name == kernel).unwrap();
        Traffic::of(variant, shape, false).intensity(shape)
    }

    #[test]
    fn the_naive_kernel_does_a_quarter_operation_a_byte() {
        let shape = Shape::new(4096, 4096, 1 << 20);
        assert!((intensity("naive", shape) - 0.25).abs() < 1e-6);
        assert!((intensity("tiled-32", shape) - 8.0).abs() < 1e-2);
    }

    #[test]
    fn no_kernel_moves_less_than_everything_once() {
        let shape = Shape::cube(1024);
        let compulsory = compulsory_intensity(shape, DataType::F32, false);
        assert!((compulsory - 2.0 * 1024.0 / 12.0).abs() < 1e-9);
        for variant in variants() {
            let intensity = Traffic::of(variant, shape, false).intensity(shape);
            assert!(intensity <= compulsory, "{}", variant.name);
        }
    }
}
