//! The number of copies of the matrices, which launches use in turn.

use gpu_gemm::Capacity;

/// Enough copies for twice the bytes of the cache, if they fit in a quarter of the free memory. A
/// launch reads `read` bytes of a copy, which occupies `allocated`.
pub(super) fn copies(Capacity { cache, free }: Capacity, read: usize, allocated: usize) -> usize {
    let enough = (2 * cache).div_ceil(read.max(1)) + 1;
    enough.min(free / 4 / allocated.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_exceed_the_cache_and_fit_into_memory() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let copies =
            |cache, free, read, allocated| super::copies(Capacity { cache, free }, read, allocated);
        assert_eq!(copies(50 * mib, 1 << 36, 48 * mib, 48 * mib), 4);
        assert_eq!(copies(50 * mib, 1 << 36, 1 << 34, 1 << 34), 1);
        // Columns of half a MiB that occupy 64 MiB each: memory is the limit.
        assert_eq!(copies(50 * mib, 1 << 30, 512 * kib, 64 * mib), 4);
        // Copies of one byte: the limit is the cache, then the memory.
        assert_eq!(copies(100, 1 << 30, 1, 1), 201);
        assert_eq!(copies(100, 400, 1, 1), 100);
    }
}
