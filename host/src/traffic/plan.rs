//! The traffic of a whole plan: of its kernel, of the copies that it needs, and of the partial sums that blocks leave to each other.

use gpu_kernels::spec::Tile;
use gpu_kernels::streams::{Part, Streams};

use super::{Access, By, Direction, Space, Traffic};
use crate::blas::{Plan, Role};
use crate::problem::Shape;

impl Traffic {
    /// The accesses of everything that `plan` launches; `reads_c` unless beta is zero.
    pub fn of_plan(plan: &Plan<'_>, reads_c: bool) -> Traffic {
        let mut accesses = Traffic::of_part(plan, reads_c).accesses;
        let of_rest = plan.rest().map(|rest| Traffic::of_part(&rest, reads_c));
        accesses.extend(
            of_rest
                .into_iter()
                .flat_map(|rest| rest.accesses)
                .map(|access| match access.by {
                    By::Kernel => Access {
                        by: By::Rest,
                        ..access
                    },
                    _ => access,
                }),
        );
        accesses.sort_by_key(|access| access.space == Space::Shared);
        Traffic { accesses }
    }

    /// The same, but for the rest of `plan`.
    fn of_part(plan: &Plan<'_>, reads_c: bool) -> Traffic {
        use Direction::{Read, Write};
        let (variant, shape) = (plan.variant(), plan.call().shape);
        let mut accesses = Vec::new();
        for pack in plan.packs() {
            let (matrix, formula) = match pack.role {
                Role::A => ('A', "M*K"),
                Role::B => ('B', "K*N"),
            };
            let source = pack.source.0 as u128 * pack.source.1 as u128;
            for (direction, elements) in [(Read, source), (Write, pack.elements() as u128)] {
                let formula = formula.to_string();
                accesses.push(global(By::Copy, direction, matrix, formula, elements));
            }
        }
        accesses.extend(Traffic::of(variant, shape, reads_c).accesses);
        if let Some(partials) = Partials::of(plan) {
            let formula = format!("{} * {}", partials.parts, variant.tile.m * variant.tile.n);
            let Partials { written, read, .. } = partials;
            accesses.push(global(By::Kernel, Write, 'P', formula.clone(), written));
            accesses.push(global(By::FixUp, Read, 'P', formula, read));
        }
        Traffic { accesses }
    }
}

fn global(by: By, direction: Direction, matrix: char, formula: String, elements: u128) -> Access {
    Access {
        by,
        space: Space::Global,
        direction,
        matrix,
        formula,
        elements,
    }
}

/// The partial sums of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partials {
    /// Tiles that are in several hands.
    pub tiles: usize,
    /// Parts that those are in.
    pub parts: usize,
    /// Elements that the kernel leaves, and that `fix_up` reads.
    pub written: u128,
    pub read: u128,
}

impl Partials {
    /// None if no tile is split.
    pub fn of(plan: &Plan<'_>) -> Option<Partials> {
        let streams = plan.streams().filter(|_| plan.is_split())?;
        let (shape, tile) = (plan.call().shape, plan.variant().tile);
        let mut partials = Partials::default();
        for part in parts(&streams).filter(|part| !streams.is_whole(*part)) {
            let (rows, columns) = extent(&streams, part, shape, tile);
            // The first part of a tile stands for it.
            partials.tiles += usize::from(part.from == 0);
            partials.parts += 1;
            partials.written += (rows * tile.n as usize) as u128;
            // Four at a time.
            partials.read += (rows * columns.next_multiple_of(4)) as u128;
        }
        Some(partials)
    }
}

/// What the blocks that share steps do, block after block, as they see it themselves.
fn parts(streams: &Streams) -> impl Iterator<Item = Part> {
    let streams = *streams;
    (0..streams.streams).flat_map(move |block| {
        let mut share = streams.share(block, streams.whole_waves);
        std::iter::from_fn(move || {
            let part = (share.begin < share.end).then(|| streams.part(share))?;
            share.begin += part.to - part.from;
            Some(part)
        })
    })
}

/// Rows and columns of C that lie in the tile of a part.
fn extent(streams: &Streams, part: Part, shape: Shape, tile: Tile) -> (usize, usize) {
    let (tile_row, tile_col) = streams.place(part.tile);
    let inside = |size: usize, tile: u32, index: usize| {
        let tile = tile as usize;
        tile.min(size - index * tile)
    };
    (
        inside(shape.m, tile.m, tile_row),
        inside(shape.n, tile.n, tile_col),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blas::{Call, Sharing, Transpose};
    use gpu_kernels::spec::Variant;

    fn variant(name: &str) -> &'static Variant {
        let mut variants = gpu_kernels::async_pipeline::KERNEL.variants.iter();
        variants.find(|variant| variant.name == name).unwrap()
    }

    fn planned(name: &str, shape: Shape, streams: u32, whole_waves: u32) -> Plan<'static> {
        let call = Call::compact(shape, Transpose::No, Transpose::No);
        let sharing = Sharing {
            streams,
            whole_waves,
        };
        Plan::new(variant(name), call, sharing).unwrap()
    }

    #[test]
    fn every_step_that_is_shared_is_done_once() {
        let shape = Shape {
            m: 11 * 128,
            n: 128,
            k: 64,
        };
        let streams = planned("async-pipeline", shape, 4, 1).streams().unwrap();
        let mut done = vec![0; 11 * 8];
        for part in parts(&streams) {
            for step in part.from..part.to {
                done[part.tile * 8 + step] += 1;
            }
        }
        // The first four tiles are handed out whole.
        assert!(done[..32].iter().all(|count| *count == 0));
        assert!(done[32..].iter().all(|count| *count == 1));
    }

    #[test]
    fn partial_sums_are_those_of_split_tiles_and_end_with_c() {
        // 7 tiles for 4 blocks of 14 steps each: cut at steps 14, 28 and 42, inside of tiles 1, 3 and 5.
        let shape = Shape {
            m: 11 * 128 - 3,
            n: 98,
            k: 64,
        };
        let partials = Partials::of(&planned("async-pipeline-edges", shape, 4, 1)).unwrap();
        assert_eq!((partials.tiles, partials.parts), (3, 6));
        // Whole rows of the tile are left, and fours that C has something of are read.
        assert_eq!(partials.written, 6 * 128 * 128);
        assert_eq!(partials.read, 6 * 128 * 100);
    }

    #[test]
    fn a_plan_moves_what_its_kernel_moves_and_its_copies() {
        let shape = Shape::cube(256);
        let plan = planned("async-pipeline", shape, 4, 0);
        assert!(Partials::of(&plan).is_none());
        let whole = Traffic::of_plan(&plan, false).accesses;
        let kernel = Traffic::of(plan.variant(), shape, false).accesses;
        assert_eq!(whole.len(), kernel.len() + 2);
        // A, to and from its copy; B lies as it should.
        for (access, direction) in whole.iter().zip([Direction::Read, Direction::Write]) {
            assert_eq!((access.by, access.direction), (By::Copy, direction));
            assert_eq!((access.matrix, access.elements), ('A', 256 * 256));
        }
        assert_eq!(&whole[2..], &kernel[..]);
    }
}
