//! Which thread of a CTA writes which element of C.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use gpu_kernels::gemm::Gemm;
use gpu_kernels::spec::{DataType, ElementType, Grid, Major, OperandLayout, Variant};

/// For each element of a C of `rows x columns`, the thread of CTA (0, 0) that writes it, by its
/// number in the CTA. Found by running the kernel in the simulator, where every thread gets its
/// own C.
///
/// # Errors
///
/// The kernel does not multiply floats, it fails, or two threads write the same element.
pub fn writers(
    variant: &Variant,
    rows: usize,
    columns: usize,
) -> Result<Vec<Option<usize>>, String> {
    let elements = variant.block.threads() as usize * rows * columns;
    let takes_slices = !variant.grid.is_persistent();
    let written: Vec<bool> = match variant.types.data_type() {
        DataType::F32 if takes_slices => {
            let mut results = vec![f32::NAN; elements];
            run(variant, rows, columns, Results::F32(&mut results))?;
            results.iter().map(|element| !element.is_nan()).collect()
        }
        DataType::F64 if takes_slices => {
            let mut results = vec![f64::NAN; elements];
            run(variant, rows, columns, Results::F64(&mut results))?;
            results.iter().map(|element| !element.is_nan()).collect()
        }
        _ => return Err(format!("{} does not multiply floats", variant.name)),
    };
    let mut writers = vec![None; rows * columns];
    for (thread, result) in written.chunks(rows * columns).enumerate() {
        for (writer, &is_written) in writers.iter_mut().zip(result) {
            if is_written && writer.replace(thread).is_some() {
                return Err(format!("{}: two threads write one element", variant.name));
            }
        }
    }
    Ok(writers)
}

/// A C for each thread.
enum Results<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
}

/// A product with a compact C. A single CTA splits no tile, and needs no workspace.
fn product<'a, T: From<u8>>(
    (m, n, k): (usize, usize, usize),
    (a, lda): (&'a [T], usize),
    (b, ldb): (&'a [T], usize),
    c: *mut T,
) -> Gemm<'a, T> {
    Gemm {
        m,
        n,
        k,
        alpha: T::from(1),
        a,
        lda,
        b,
        ldb,
        beta: T::from(0),
        c,
        ldc: n,
        batch_strides: [0; 3],
        partials: null_mut(),
    }
}

/// Multiplies matrices of ones with one CTA; K is 1, or BK for a kernel whose operands are aligned.
fn run(
    variant: &Variant,
    rows: usize,
    columns: usize,
    mut results: Results<'_>,
) -> Result<(), String> {
    let is_aligned = variant.a.alignment > 1 || variant.b.alignment > 1;
    let k = match is_aligned || variant.grid == Grid::StreamK {
        true => variant.tile.k as usize,
        false => 1,
    };
    let (a, b) = (vec![1.0f32; rows * k], vec![1.0f32; k * columns]);
    let (a_f64, b_f64) = (vec![1.0f64; rows * k], vec![1.0f64; k * columns]);
    // The leading dimension of a compact matrix.
    let leading = |layout: OperandLayout, mn| match layout.major {
        Major::Mn => mn,
        Major::K => k,
    };
    let (lda, ldb) = (leading(variant.a, rows), leading(variant.b, columns));
    // Shared by the simulated threads, of which each writes to its own C.
    let results = AtomicPtr::new(match &mut results {
        Results::F32(results) => results.as_mut_ptr().cast::<u8>(),
        Results::F64(results) => results.as_mut_ptr().cast(),
    });
    let element_bytes = variant.types.c.bytes();
    let block = variant.block;
    cuda_std::simulator::Launch::new(1, (block.x, block.y))
        .dynamic_shared_bytes(variant.dynamic_shared_bytes(k) as usize)
        .run(|| {
            use cuda_std::thread::{thread_idx_x, thread_idx_y};
            let thread = (thread_idx_y() * block.x + thread_idx_x()) as usize;
            // SAFETY: compact matrices of this shape, a C of this size for each thread, and a
            // launch with the CTA size that the variant requires.
            unsafe {
                let own = thread * rows * columns * element_bytes;
                let c = results.load(Relaxed).add(own);
                match variant.types.c {
                    ElementType::F64 => {
                        let gemm =
                            product((rows, columns, k), (&a_f64, lda), (&b_f64, ldb), c.cast());
                        (variant.entry.function)((&raw const gemm).cast())
                    }
                    _ => {
                        let gemm = product((rows, columns, k), (&a, lda), (&b, ldb), c.cast());
                        (variant.entry.function)((&raw const gemm).cast())
                    }
                }
            }
        })
        .map(|_| ())
        .map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::{kernel, of_floats};

    fn first(name: &str) -> &'static Variant {
        of_floats(kernel(name).unwrap()).next().unwrap()
    }

    #[test]
    fn every_element_of_a_tile_is_written_and_each_thread_writes_its_thread_tile() {
        let variants = gpu_kernels::KERNELS.iter().copied().flat_map(of_floats);
        for variant in variants.filter(|one| one.grid == Grid::Tiles) {
            let tile = variant.tile;
            let writers = writers(variant, tile.m as usize, tile.n as usize).unwrap();
            let (rows, columns) = variant.thread_tile;
            for thread in 0..variant.block.threads() as usize {
                let written = writers.iter().filter(|writer| **writer == Some(thread));
                assert_eq!(written.count() as u32, rows * columns, "{}", variant.name);
            }
            assert!(writers.iter().all(Option::is_some), "{}", variant.name);
        }
    }

    #[test]
    fn the_writer_of_an_element_is_the_one_that_the_source_says() {
        // The thread at (3, 2) of the CTA computes the element in row 2 and column 3.
        let naive = first("naive");
        let [rows, columns] = [naive.tile.m as usize, naive.tile.n as usize];
        let thread = 2 * naive.block.x as usize + 3;
        let writers_of_naive = writers(naive, rows, columns).unwrap();
        assert_eq!(writers_of_naive[2 * columns + 3], Some(thread));
        // Down the columns of C, and along its rows.
        let variants: Vec<_> = of_floats(kernel("naive-1d").unwrap()).collect();
        assert_eq!(writers(variants[0], 5, 7).unwrap()[7], Some(1));
        assert_eq!(writers(variants[1], 5, 7).unwrap()[7], Some(7));
    }
}
