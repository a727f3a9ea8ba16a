//! Shapes that occur in programs, none of them a cube: `bench --preset shapes`.
//!
//! All are row-major, C `m x n`, and neither A nor B is transposed. Where they come from:
//!
//! - DeepBench: `code/kernels/gemm_problems.h` of baidu-research/DeepBench, the training set, and
//!   from the server's inference set the one with a single column. Its matrices are column-major,
//!   and C = A * B by columns is `C^T = B^T * A^T` by rows: their (M, N, K) is `m = N`, `n = M`,
//!   `k = K` here, and an A and B that they do not transpose are not transposed here either.
//! - LLM: the weights of a large language model of 671 billion parameters (DeepSeek-V3's
//!   projections), `n x k` each, for one token, 128 and 4096 of them.
//! - Odd: sizes next to or between multiples of every tile, and thin shapes.

use gpu_gemm::Shape;

/// A shape to measure; those of the preset have a name, and the programs that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub shape: Shape,
    pub name: Option<&'static str>,
    pub origin: Option<&'static str>,
}

impl From<Shape> for Target {
    fn from(shape: Shape) -> Target {
        Target {
            shape,
            name: None,
            origin: None,
        }
    }
}

const fn named(name: &'static str, origin: &'static str, shape: Shape) -> Target {
    Target {
        shape,
        name: Some(name),
        origin: Some(origin),
    }
}

/// From DeepBench's own (M, N, K), column-major.
const fn deep(name: &'static str, (m, n, k): (usize, usize, usize)) -> Target {
    named(name, "DeepBench", Shape::new(n, m, k))
}

const fn llm(name: &'static str, tokens: usize, (n, k): (usize, usize)) -> Target {
    named(name, "LLM", Shape::new(tokens, n, k))
}

const fn odd(name: &'static str, m: usize, n: usize, k: usize) -> Target {
    named(name, "odd", Shape::new(m, n, k))
}

/// An LLM's weights, `n x k`.
const QKV: (usize, usize) = (2112, 7168);
const QUERY: (usize, usize) = (24576, 1536);
const KEY_VALUE: (usize, usize) = (32768, 512);
const OUTPUT: (usize, usize) = (7168, 16384);
const UP: (usize, usize) = (4096, 7168);

/// The preset's shapes, in the order of its tables.
pub const SHAPES: &[Target] = &[
    deep("speech-out-1760", (5124, 9124, 1760)),
    deep("speech-out-2048", (5124, 9124, 2048)),
    deep("speech-out-2560", (5124, 9124, 2560)),
    deep("speech-out-4096", (5124, 9124, 4096)),
    deep("letters-1760", (35, 8457, 1760)),
    deep("letters-2560", (35, 8457, 2560)),
    deep("letters-4096", (35, 8457, 4096)),
    deep("rnn-1760-16", (1760, 16, 1760)),
    deep("rnn-1760-32", (1760, 32, 1760)),
    deep("rnn-1760-64", (1760, 64, 1760)),
    deep("rnn-1760-128", (1760, 128, 1760)),
    deep("rnn-1760-7000", (1760, 7000, 1760)),
    deep("rnn-2048-16", (2048, 16, 2048)),
    deep("rnn-2048-32", (2048, 32, 2048)),
    deep("rnn-2048-7000", (2048, 7000, 2048)),
    deep("rnn-2560-64", (2560, 64, 2560)),
    deep("rnn-2560-7000", (2560, 7000, 2560)),
    deep("rnn-4096-16", (4096, 16, 4096)),
    deep("rnn-4096-128", (4096, 128, 4096)),
    deep("rnn-4096-7000", (4096, 7000, 4096)),
    deep("speaker-512-1", (512, 1, 500_000)),
    deep("speaker-512-8", (512, 8, 500_000)),
    deep("speaker-1024-8", (1024, 8, 500_000)),
    deep("speaker-512-16", (512, 16, 500_000)),
    deep("speaker-1024-16", (1024, 16, 500_000)),
    llm("qkv-1", 1, QKV),
    llm("qkv-128", 128, QKV),
    llm("qkv-4096", 4096, QKV),
    llm("query-1", 1, QUERY),
    llm("query-128", 128, QUERY),
    llm("query-4096", 4096, QUERY),
    llm("key-value-1", 1, KEY_VALUE),
    llm("key-value-128", 128, KEY_VALUE),
    llm("key-value-4096", 4096, KEY_VALUE),
    llm("output-1", 1, OUTPUT),
    llm("output-128", 128, OUTPUT),
    llm("output-4096", 4096, OUTPUT),
    llm("up-1", 1, UP),
    llm("up-128", 128, UP),
    llm("up-4096", 4096, UP),
    odd("odd-small", 127, 129, 131),
    odd("odd-1023", 1023, 1023, 1023),
    odd("odd-2049", 2049, 2049, 2049),
    odd("odd-4097", 4097, 4097, 4097),
    odd("odd-deep", 129, 255, 32_769),
    odd("odd-thin", 8191, 63, 2047),
    odd("odd-flat", 5000, 5000, 33),
];

/// The largest number of additions and multiplications that the simulator runs at a shape.
const MOST_SIMULATED: f64 = 4e7;

/// The shapes that the simulator runs in seconds, not days.
pub fn simulated() -> impl Iterator<Item = Target> {
    let small = |target: &Target| target.shape.flops() <= MOST_SIMULATED;
    SHAPES.iter().copied().filter(small)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_shape_is_there_once_and_has_its_own_name() {
        let names: BTreeSet<_> = SHAPES.iter().map(|target| target.name).collect();
        let sizes: BTreeSet<String> = SHAPES.iter().map(|one| one.shape.to_string()).collect();
        assert_eq!((names.len(), sizes.len()), (SHAPES.len(), SHAPES.len()));
    }

    #[test]
    fn a_column_major_shape_is_turned() {
        // DeepBench's 16 columns of 1760 activations are 16 rows here.
        let target = SHAPES.iter().find(|one| one.name == Some("rnn-1760-16"));
        assert_eq!(target.unwrap().shape.to_string(), "16 x 1760 x 1760");
    }
}
