//! Launches beside the kernel's own, and how a stream-K kernel's CTAs divide the tiles.

use gpu_gemm::plan::{OperandCopy, Panel};
use gpu_gemm::{Decomposition, Factor, Launch, Plan, Transpose};

use crate::traffic::Partials;

/// A copy of an operand, made before the kernel runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// `A` or `B`.
    pub matrix: char,
    /// Whether rows become columns.
    pub transposed: bool,
    /// The size of the copy.
    pub rows: usize,
    pub columns: usize,
    /// Whether it is larger than the matrix, padded with zeros.
    pub padded: bool,
}

impl Copied {
    /// All copies of a plan.
    pub(super) fn of(plan: &Plan) -> Vec<Copied> {
        let panels = plan.panels().iter();
        let copies = panels.flat_map(|panel| panel.copies().map(move |copy| (panel, copy)));
        let copied = |(panel, copy): (&Panel, OperandCopy)| {
            let transpose = match copy.transposed {
                true => Transpose::Yes,
                false => Transpose::No,
            };
            let (rows, columns) = copy.target;
            Copied {
                matrix: match panel.as_called(copy.factor) {
                    Factor::A => 'A',
                    Factor::B => 'B',
                },
                transposed: copy.transposed,
                rows,
                columns,
                padded: copy.target != transpose.of(copy.source),
            }
        };
        copies.map(copied).collect()
    }
}

/// How the CTAs of a stream-K kernel divide the k-iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// CTAs of a wave.
    pub ctas: u32,
    /// Waves in which each CTA computes one tile.
    pub data_parallel_waves: u32,
    /// Tiles that the CTAs of the last wave share, and k-iterations of each tile.
    pub stream_k_tiles: usize,
    pub k_iterations: usize,
    /// K-iterations of each of those CTAs, on average. No two CTAs differ by more than one.
    pub k_iterations_per_cta: f64,
    /// Tiles that several CTAs compute, and their segments.
    pub split_tiles: usize,
    pub segments: usize,
    /// The workspace, for operand copies and for partial sums.
    pub workspace_bytes: u128,
}

impl Work {
    /// None for a kernel that is not stream-K.
    pub(super) fn of(plan: &Plan) -> Option<Work> {
        let panel = plan.panels().first()?;
        let Decomposition {
            ctas,
            data_parallel_waves,
        } = panel.decomposition()?;
        let stream_k = panel.stream_k()?;
        let partials = Partials::of(panel).unwrap_or_default();
        let (tiles, k_iterations) = (stream_k.stream_k_tiles(), stream_k.k_iterations);
        Some(Work {
            ctas,
            data_parallel_waves,
            stream_k_tiles: tiles,
            k_iterations,
            k_iterations_per_cta: tiles as f64 * k_iterations as f64 / f64::from(ctas),
            split_tiles: partials.tiles,
            segments: partials.segments,
            workspace_bytes: plan.workspace_bytes() as u128,
        })
    }
}

/// The last columns of C, which another kernel computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// The variant that computes them.
    pub kernel: &'static str,
    pub columns: usize,
    /// CTAs of that variant.
    pub ctas: u64,
}

impl Remainder {
    /// None for a kernel that computes all columns.
    pub(super) fn of(plan: &Plan) -> Option<Remainder> {
        let panel: &Panel = plan.panels().get(1)?;
        let entry = panel.variant().entry.name;
        let own = plan
            .launches()
            .iter()
            .filter(|launch| launch.kernel.name == entry);
        Some(Remainder {
            kernel: panel.variant().name,
            columns: panel.call().shape.n,
            ctas: own.map(Launch::ctas).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::explain::data_sheets;
    use crate::explain::explanation::tests::explained;
    use gpu_gemm::{Choice, DeviceFacts, Shape, gpu_kernels};

    #[test]
    fn the_tiles_that_fill_no_wave_are_divided() {
        let facts = DeviceFacts::of_gpu(&data_sheets::find("h200").unwrap());
        let variant = &gpu_kernels::async_pipeline::KERNEL.variants[0];
        let choice = Choice::even(variant);
        let plan = choice.plan_compact(Shape::cube(4096), &facts).unwrap();
        let work = super::Work::of(&plan).unwrap();
        // 1024 tiles on 264 CTAs: 3 waves, and 232 tiles that are divided.
        assert_eq!((work.ctas, work.data_parallel_waves), (264, 3));
        assert_eq!((work.stream_k_tiles, work.k_iterations), (232, 512));
        assert!((work.k_iterations_per_cta - 232.0 * 512.0 / 264.0).abs() < 1e-9);
        assert!(work.split_tiles < 264 && work.segments >= 2 * work.split_tiles);
    }

    #[test]
    fn every_launch_is_listed_and_a_kernel_that_is_not_stream_k_says_nothing_of_it() {
        let stream_k = explained("async-pipeline");
        let launches = stream_k.plan.launches().iter();
        let names: Vec<&str> = launches.map(|launch| launch.kernel.name).collect();
        assert_eq!(names, ["transpose", "async_pipeline", "fix_up"]);
        let mut text = Vec::new();
        crate::explain::write(&stream_k, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for part in [
            "\ncopy       A is transposed to 4096 x 4096\n",
            "\n| transpose      | 64 x 64",
            "\nstream-K   ",
            "\n| fix_up | global read  | P ",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
        let tiled = explained("tiled-32").plan;
        assert!(super::Work::of(&tiled).is_none() && super::Copied::of(&tiled).is_empty());
    }
}
