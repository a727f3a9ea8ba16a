//! The traffic of a plan: its kernels, the operand copies, and the partial sums of split tiles.

use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::gpu_kernels::stream_k::{Segment, StreamK};
use gpu_gemm::plan::Panel;
use gpu_gemm::{Factor, Plan, Shape};

use super::kernel::{Access, By, Direction, Space, Traffic, element_bytes};

impl Traffic {
    /// The accesses of everything that `plan` launches; `reads_c` unless beta is zero.
    pub fn of_plan(plan: &Plan, reads_c: bool) -> Traffic {
        let mut accesses = Vec::new();
        for panel in plan.panels() {
            let of_panel = Traffic::of_panel(panel, reads_c).accesses;
            accesses.extend(of_panel.into_iter().map(|access| match access.by {
                By::Kernel if panel.first_column() > 0 => Access {
                    by: By::Remainder,
                    ..access
                },
                _ => access,
            }));
        }
        accesses.sort_by_key(|access| access.space == Space::Shared);
        Traffic { accesses }
    }

    fn of_panel(panel: &Panel, reads_c: bool) -> Traffic {
        use Direction::{Read, Write};
        let (variant, shape) = (panel.variant(), panel.call().shape);
        let global = |by, direction, matrix, formula, elements| Access {
            by,
            space: Space::Global,
            direction,
            matrix,
            formula,
            elements,
            bytes: elements * element_bytes(matrix, variant.types.data_type()),
            is_beside_formula: false,
        };
        let mut accesses = Vec::new();
        for copy in panel.copies() {
            let (matrix, formula) = match panel.as_called(copy.factor) {
                Factor::A => ('A', "M*K"),
                Factor::B => ('B', "K*N"),
            };
            let source = copy.source.0 as u128 * copy.source.1 as u128;
            for (direction, elements) in [(Read, source), (Write, copy.elements() as u128)] {
                let formula = formula.to_string();
                accesses.push(global(By::Copy, direction, matrix, formula, elements));
            }
        }
        let of_kernel = Traffic::of(variant, shape, reads_c).accesses.into_iter();
        accesses.extend(of_kernel.map(|access| Access {
            matrix: match (access.matrix, panel.is_transposed()) {
                ('A', true) => 'B',
                ('B', true) => 'A',
                (matrix, _) => matrix,
            },
            ..access
        }));
        if let Some(partials) = Partials::of(panel) {
            let tile = variant.tile.m * variant.tile.n;
            let formula = format!("{} * {tile}", partials.segments);
            let Partials { written, read, .. } = partials;
            accesses.push(global(By::Kernel, Write, 'P', formula.clone(), written));
            accesses.push(global(By::FixUp, Read, 'P', formula, read));
        }
        Traffic { accesses }
    }
}

/// The partial sums of a panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partials {
    /// Tiles that several CTAs compute.
    pub tiles: usize,
    /// Segments of those tiles.
    pub segments: usize,
    /// Elements that the kernel stores, and those that the fix-up reads.
    pub written: u128,
    pub read: u128,
}

impl Partials {
    /// None if no tile is split.
    pub fn of(panel: &Panel) -> Option<Partials> {
        let stream_k = panel.stream_k().filter(|_| panel.is_split())?;
        let (shape, tile) = (panel.call().shape, panel.variant().tile);
        let mut partials = Partials::default();
        for segment in segments(&stream_k).filter(|segment| !stream_k.covers_tile(*segment)) {
            let (rows, columns) = extent(&stream_k, segment, shape, tile);
            // Each tile is counted at its first segment.
            partials.tiles += usize::from(segment.from == 0);
            partials.segments += 1;
            // Persistent kernels store full tiles of partial sums.
            let written = match panel.variant().grid.is_mapped() {
                true => tile.m as usize,
                false => rows,
            };
            partials.written += (written * tile.n as usize) as u128;
            // The fix-up reads a float4 at a time.
            partials.read += (rows * columns.next_multiple_of(4)) as u128;
        }
        Some(partials)
    }
}

/// The segments of all stream-K CTAs, CTA by CTA.
fn segments(stream_k: &StreamK) -> impl Iterator<Item = Segment> {
    let stream_k = *stream_k;
    (0..stream_k.ctas).flat_map(move |cta| {
        let mut work = stream_k.work(cta, stream_k.data_parallel_waves);
        std::iter::from_fn(move || {
            let segment = (work.begin < work.end).then(|| stream_k.segment(work))?;
            work.begin += segment.to - segment.from;
            Some(segment)
        })
    })
}

/// The rows and columns of C in the tile of a segment.
fn extent(stream_k: &StreamK, segment: Segment, shape: Shape, tile: Tile) -> (usize, usize) {
    let (tile_row, tile_col) = stream_k.tile_position(segment.tile);
    let in_bounds = |size: usize, tile: u32, index: usize| {
        let tile = tile as usize;
        tile.min(size - index * tile)
    };
    (
        in_bounds(shape.m, tile.m, tile_row),
        in_bounds(shape.n, tile.n, tile_col),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_gemm::gpu_kernels::spec::Variant;
    use gpu_gemm::{Call, Decomposition, ElementType, Transpose};

    fn variant(name: &str) -> &'static Variant {
        let mut variants = gpu_gemm::gpu_kernels::async_pipeline::KERNEL
            .variants
            .iter();
        variants.find(|variant| variant.name == name).unwrap()
    }

    fn planned(name: &str, shape: Shape, ctas: u32, data_parallel_waves: u32) -> Plan {
        let call = Call::compact(shape, Transpose::No, Transpose::No, ElementType::F32);
        let decomposition = Decomposition {
            ctas,
            data_parallel_waves,
        };
        Plan::new(variant(name), call, decomposition).unwrap()
    }

    #[test]
    fn every_stream_k_iteration_is_done_once() {
        let shape = Shape::new(11 * 128, 128, 64);
        let plan = planned("async-pipeline", shape, 4, 1);
        let stream_k = plan.panels()[0].stream_k().unwrap();
        let mut done = vec![0; 11 * 8];
        for segment in segments(&stream_k) {
            for iteration in segment.from..segment.to {
                done[segment.tile * 8 + iteration] += 1;
            }
        }
        // The first four tiles are data-parallel.
        assert!(done[..32].iter().all(|count| *count == 0));
        assert!(done[32..].iter().all(|count| *count == 1));
    }

    #[test]
    fn partial_sums_are_those_of_split_tiles_and_end_with_c() {
        // 7 tiles for 4 CTAs of 14 k-iterations each: cut at 14, 28 and 42, inside tiles 1, 3 and
        // 5.
        let shape = Shape::new(11 * 128 - 3, 98, 64);
        let partials =
            Partials::of(&planned("async-pipeline-edges", shape, 4, 1).panels()[0]).unwrap();
        assert_eq!((partials.tiles, partials.segments), (3, 6));
        // Full rows of the tile are stored, and float4s that overlap C are read.
        assert_eq!(partials.written, 6 * 128 * 128);
        assert_eq!(partials.read, 6 * 128 * 100);
    }

    #[test]
    fn a_plan_moves_what_its_kernel_moves_and_its_copies() {
        let shape = Shape::cube(256);
        let plan = planned("async-pipeline", shape, 4, 0);
        assert!(Partials::of(&plan.panels()[0]).is_none());
        let all = Traffic::of_plan(&plan, false).accesses;
        let kernel = Traffic::of(plan.variant(), shape, false).accesses;
        assert_eq!(all.len(), kernel.len() + 2);
        // A is copied; B needs no copy.
        for (access, direction) in all.iter().zip([Direction::Read, Direction::Write]) {
            assert_eq!((access.by, access.direction), (By::Copy, direction));
            assert_eq!((access.matrix, access.elements), ('A', 256 * 256));
        }
        assert_eq!(&all[2..], &kernel[..]);
    }
}
