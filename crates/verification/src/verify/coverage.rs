//! How much of a result is checked.

use gpu_gemm::Shape;

use super::computed::ComputedReference;

/// How much of a result is compared, and with what.
#[derive(Clone, Copy)]
pub enum Coverage<'a> {
    /// Every element, with a reference computed on the host.
    Full,
    /// Every element, with this reference.
    By(&'a ComputedReference),
    /// Every row by Freivalds' check or its sum, and sampled elements. The seed chooses vectors,
    /// signs and samples.
    Sampled { seed: u64 },
}

impl Coverage<'static> {
    /// Full coverage as long as the reference takes seconds and its matrices, in `f64`, a few
    /// hundred megabytes.
    pub fn of(shape: Shape, seed: u64) -> Self {
        Coverage::of_each(1, shape, seed)
    }

    /// The same for each of `count` products.
    pub fn of_each(count: usize, shape: Shape, seed: u64) -> Self {
        Coverage::up_to((1 << 33) / count, shape, seed)
    }

    /// The same where a GPU can compute a reference: the host makes full comparisons only if they
    /// take a fraction of a second.
    pub fn beside_gpu(count: usize, shape: Shape, seed: u64) -> Self {
        Coverage::up_to((1 << 31) / count, shape, seed)
    }

    fn up_to(most: usize, shape: Shape, seed: u64) -> Self {
        let Shape { m, n, k } = shape;
        let elements = [(m, n), (m, k), (k, n)].map(|(rows, columns)| rows.saturating_mul(columns));
        let products = elements[0].saturating_mul(k);
        if products <= most && elements.iter().all(|&count| count <= 1 << 25) {
            Coverage::Full
        } else {
            Coverage::Sampled { seed }
        }
    }
}

impl Coverage<'_> {
    /// Whether some elements are not compared one by one.
    pub fn is_sampled(self) -> bool {
        matches!(self, Coverage::Sampled { .. })
    }
}
