//! The pictures of the book that show tiles and patches, drawn from the table of kernels and from what each thread
//! writes: one for each kernel, `docs/src/pictures/NAME.svg`. And one of how blocks share steps.
//!
//! `BLESS=1 cargo test -p tests --test book` writes them.

mod drawing;
mod elements;
mod rows;
mod split;
mod streams;
mod tiles;

use gpu_kernels::spec::{Function, Grid, Kernel, Storage, Variant};

use crate::book::results::of_floats;

/// The picture of a kernel, as SVG.
///
/// # Errors
///
/// The kernel has no variant for `f32`, or fails.
pub fn of(kernel: &Kernel) -> Result<String, String> {
    let variants: Vec<_> = of_floats(kernel).collect();
    let Some(&first) = variants.first() else {
        return Err(format!("{} does not multiply f32", kernel.name));
    };
    let title = format!("{}: {}", kernel.name, kernel.idea);
    let drawing = match first.grid {
        Grid::Streams if first.split_k > 1 => split::draw(&title, first),
        Grid::Tiles | Grid::Streams => tiles::draw(&title, first)?,
        Grid::Rows => rows::draw(&title, first),
        Grid::Linear => elements::draw(&title, &variants)?,
    };
    Ok(drawing.finish())
}

/// The picture of how blocks share steps, as SVG.
pub fn of_streams() -> String {
    streams::draw().finish()
}

/// For each element of a C of `rows x columns`, the thread of block (0, 0) that writes it, by its number in the block;
/// found by running the kernel in the simulator, where every thread gets a C of its own.
fn writers(variant: &Variant, rows: usize, columns: usize) -> Result<Vec<Option<usize>>, String> {
    if !matches!(variant.function, Function::F32(_) | Function::Streamed(_)) {
        return Err(format!("{} does not multiply f32", variant.name));
    }
    let threads = variant.block.threads() as usize;
    let mut results = vec![f32::NAN; threads * rows * columns];
    run(variant, rows, columns, &mut results)?;
    let mut writers = vec![None; rows * columns];
    for (thread, result) in results.chunks(rows * columns).enumerate() {
        for (writer, element) in writers.iter_mut().zip(result) {
            if !element.is_nan() && writer.replace(thread).is_some() {
                return Err(format!("{}: two threads write one element", variant.name));
            }
        }
    }
    Ok(writers)
}

/// Multiplies matrices of ones, K = 1 or as deep as one step, with one block. Thread t writes to the t-th part of `results`.
fn run(variant: &Variant, rows: usize, columns: usize, results: &mut [f32]) -> Result<(), String> {
    /// Shared by the simulated threads.
    struct Results(*mut f32);
    // SAFETY: each thread writes to a part of its own.
    unsafe impl Sync for Results {}
    impl Results {
        fn of(&self, thread: usize, length: usize) -> *mut f32 {
            // SAFETY: there is a part of this length for each thread.
            unsafe { self.0.add(thread * length) }
        }
    }

    let k = match variant.grid {
        Grid::Streams => variant.tile.k as usize,
        _ => 1,
    };
    let (a, b) = (vec![1.0; rows * k], vec![1.0; k * columns]);
    // Where rows are stored, they are as long as this.
    let leading = |storage: Storage, along_tile| match storage {
        Storage::AlongTile => along_tile,
        Storage::RowMajor | Storage::AlongSums => k,
    };
    let (lda, ldb) = (leading(variant.a, rows), leading(variant.b, columns));
    let results = Results(results.as_mut_ptr());
    let block = variant.block;
    cuda_std::simulator::Launch::new(1, (block.x, block.y))
        .dynamic_shared_bytes(4 * variant.dynamic_shared_elements(k) as usize)
        .run(|| {
            use cuda_std::thread::{thread_idx_x, thread_idx_y};
            let thread = (thread_idx_y() * block.x + thread_idx_x()) as usize;
            let c = results.of(thread, rows * columns);
            // SAFETY: compact matrices of this shape, in a launch of the block that the variant asks for.
            unsafe {
                match variant.function {
                    Function::F32(function) => {
                        function(rows, columns, k, 1.0, &a, k, &b, columns, 0.0, c, columns)
                    }
                    // One block shares a tile with nobody, and leaves no partial sums.
                    Function::Streamed(function) => function(
                        rows,
                        columns,
                        k,
                        1.0,
                        &a,
                        lda,
                        &b,
                        ldb,
                        0.0,
                        c,
                        columns,
                        std::ptr::null_mut(),
                    ),
                    Function::F64(_) | Function::I32(_) => (),
                }
            }
        })
        .map(|_| ())
        .map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::kernel;

    fn first(name: &str) -> &'static Variant {
        of_floats(kernel(name).unwrap()).next().unwrap()
    }

    #[test]
    fn a_tile_is_written_whole_and_by_each_thread_as_much_as_the_table_says() {
        let kernels = gpu_kernels::KERNELS.iter().copied();
        for variant in kernels
            .flat_map(of_floats)
            .filter(|one| one.grid == Grid::Tiles)
        {
            let tile = variant.tile;
            let writers = writers(variant, tile.m as usize, tile.n as usize).unwrap();
            let (rows, columns) = variant.patch();
            for thread in 0..variant.block.threads() as usize {
                let written = writers.iter().filter(|writer| **writer == Some(thread));
                assert_eq!(written.count() as u32, rows * columns, "{}", variant.name);
            }
            assert!(writers.iter().all(Option::is_some), "{}", variant.name);
        }
    }

    #[test]
    fn the_writer_of_an_element_is_the_one_that_the_source_says() {
        // The thread at (3, 2) of the block takes the element in column 3 of row 2.
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
