//! The kernels.

use crate::cuda::{TensorMap, copy};
use crate::gemm::{Bf16, Element, F16, Gemm, Matrix, Of};
use crate::gpu::{Gpu, Outcome};

pub struct Launch {
    pub function: usize,
    pub grid: (u32, u32, u32),
    pub block: (u32, u32),
    pub stream: usize,
    pub parameters: *const *const u8,
}

impl Launch {
    /// The value at a word of the argument block, which is the only parameter of every kernel. It
    /// must be a `T`.
    fn word<T>(&self, index: usize) -> T {
        // SAFETY: a launch passes an argument block of the kernel.
        unsafe { (*self.parameters).cast::<u64>().add(index).cast::<T>().read() }
    }
}

pub fn launch(gpu: &mut Gpu, launch: Launch) -> Outcome {
    gpu.status("launch")?;
    gpu.kernel_launches += 1;
    let function = &mut gpu.functions[launch.function - 1];
    let is_first = !std::mem::replace(&mut function.has_run, true);
    let name = function.name.clone();
    match name.as_str() {
        "naive" | "pitched" | "tiled_16" | "tiled_32" => multiply::<f32>(gpu, &name, &launch),
        "tiled_32_f64" => multiply::<f64>(gpu, &name, &launch),
        "tiled_32_i32" | "double_buffer_k8_block8_i32" => {
            multiply::<i32>(gpu, &name, &launch)
        }
        // Its tiles are not split, so its last parameter, for partial sums, is ignored.
        "few_rows_1" => multiply::<f32>(gpu, &name, &launch),
        "warp_specialized_bf16_f32" => multiply_mapped::<Of<Bf16>>(gpu, &name, &launch),
        "warp_specialized_f16_f32" => multiply_mapped::<Of<F16>>(gpu, &name, &launch),
        "grouped_64x128_bf16" => multiply_groups(gpu, &name, &launch),
        "pad" | "transpose" => copy_operand(gpu, &name, &launch, 4),
        "pad_16" => copy_operand(gpu, &name, &launch, 2),
        _ if gpu.setting("any_kernel") == 1 => {
            gpu.log(format_args!("launch name={name} stream={}", launch.stream));
        }
        _ => panic!("the fake GPU does not know the kernel `{name}`"),
    }
    gpu.work(launch.stream, gpu.setting("kernel_ns"), is_first);
    // The calls after the launch report the crash.
    if gpu.kernel_launches == gpu.setting("crash_at") {
        gpu.is_lost = true;
    }
    Ok(())
}

/// Copies a matrix, or its transpose, to rows of another length; elements of `target` outside of
/// `source` keep their values.
fn copy_operand(gpu: &mut Gpu, name: &str, launch: &Launch, element_bytes: u64) {
    let [source, _, rows, columns, leading, target, _, target_leading] = launch.word::<[u64; 8]>(0);
    let is_transposed = name == "transpose";
    gpu.enqueue(launch.stream, move |gpu| {
        let columns_of = |row| (0..columns).map(move |column| (row, column));
        for (row, column) in (0..rows).flat_map(columns_of) {
            let (to_row, to_column) = match is_transposed {
                false => (row, column),
                true => (column, row),
            };
            let bytes = element_bytes as usize;
            let from = gpu.memory(source + element_bytes * (row * leading + column), bytes);
            let to_index = to_row * target_leading + to_column;
            let to = gpu.memory(target + element_bytes * to_index, bytes);
            copy(from, to, bytes).expect("a copy does not fail");
        }
    });
    gpu.log(format_args!(
        "launch name={name} stream={} source={source} target={target}",
        launch.stream
    ));
}

/// A kernel with tensor maps of A and B as they are stored: it takes a `MappedBlock`, three maps
/// followed by a `Gemm`.
fn multiply_mapped<T: Element + Send + 'static>(gpu: &mut Gpu, name: &str, launch: &Launch) {
    let stream = launch.stream;
    let count = |index| launch.word::<u64>(index) as usize;
    let scalar = |index| launch.word::<T::Scalar>(index);
    let (m, n, k) = (count(48), count(49), count(50));
    let (c, ldc) = (count(59) as u64, count(60));
    let (stride_of_c, products) = (count(63), count(67));
    // The matrix of one product in a map of several.
    let of_map = |map: TensorMap, product: u64| {
        let leading = map[1] as usize / size_of::<T::Input>();
        let first = if map[5] > 1 { product * map[2] } else { 0 };
        Matrix::row_major(map[0] + first, leading)
    };
    // Made by `cuTensorMapEncodeTiled`, or zeros.
    let (a, b) = (launch.word::<TensorMap>(0), launch.word::<TensorMap>(16));
    if scalar(51) != T::Scalar::default() && m * n * k > 0 {
        let sizes = [a, b].map(|map| [map[3], map[4]].map(|size| size as usize));
        assert_eq!(sizes, [[k, m], [n, k]], "maps describe other matrices");
    }
    gpu.log(format_args!(
        "launch name={name} stream={stream} m={m} n={n} k={k} c={c} ldc={ldc}"
    ));
    for product in 0..products as u64 {
        let first_of_c = product * (stride_of_c * size_of::<T>()) as u64;
        let gemm = Gemm::<T> {
            m,
            n,
            k,
            alpha: scalar(51),
            a: of_map(a, product),
            b: of_map(b, product),
            beta: scalar(58),
            c: Matrix::row_major(c + first_of_c, ldc),
            is_wrong: gpu.is_wrong("wrong_kernel_from", gpu.kernel_launches),
            writes_a: false,
        };
        gpu.enqueue(stream, move |gpu| gemm.compute(gpu, |element| element));
    }
}

/// Groups of rows, each times a B: a kernel that takes a `MappedBlock`, with the ends of the groups
/// for a workspace.
fn multiply_groups(gpu: &mut Gpu, name: &str, launch: &Launch) {
    let count = |index| launch.word::<u64>(index) as usize;
    let scalar = |index| launch.word::<f32>(index);
    let (n, k, groups) = (count(49), count(50), count(67));
    let (alpha, beta) = (scalar(51), scalar(58));
    let (a, b) = (launch.word::<TensorMap>(0), launch.word::<TensorMap>(16));
    let (c, ldc, ends) = (count(59), count(60), count(64) as u64);
    let is_wrong = gpu.is_wrong("wrong_kernel_from", gpu.kernel_launches);
    gpu.log(format_args!("launch name={name} stream={} ends={ends}", launch.stream));
    gpu.enqueue(launch.stream, move |gpu| {
        let ends = gpu.memory(ends, groups * size_of::<i32>()).cast::<i32>();
        let mut first = 0;
        for group in 0..groups {
            // SAFETY: the memory has an end for each group.
            let end = unsafe { ends.add(group).read() } as usize;
            let rows_from = |start: u64, bytes: u64, row: usize| Matrix::row_major(start + bytes * row as u64, bytes as usize / 2);
            let gemm = Gemm::<Bf16> {
                m: end - first,
                n,
                k,
                alpha,
                a: rows_from(a[0], a[1], first),
                b: Matrix::row_major(b[0] + b[2] * group as u64, b[1] as usize / 2),
                beta,
                c: rows_from(c as u64, 2 * ldc as u64, first),
                is_wrong: is_wrong && group == groups - 1,
                writes_a: false,
            };
            gemm.compute(gpu, |element| element);
            first = end;
        }
    });
}

/// A kernel that takes a `Gemm`.
fn multiply<T: Element + Send + 'static>(gpu: &mut Gpu, name: &str, launch: &Launch) {
    let &Launch { grid, block, stream, .. } = launch;
    let count = |index| launch.word::<u64>(index) as usize;
    let scalar = |index| launch.word::<T::Scalar>(index);
    let (m, n, k) = (count(0), count(1), count(2));
    let [(a, lda), (b, ldb), (c, ldc)] = [(4, 6), (7, 9), (11, 12)].map(|(start, leading)| (count(start) as u64, count(leading)));
    let strides = [13, 14, 15].map(count);
    gpu.log(format_args!(
        "launch name={name} grid={}x{}x{} block={}x{} stream={stream} m={m} n={n} k={k} a={a} lda={lda} b={b} ldb={ldb} \
         c={c} ldc={ldc}",
        grid.0,
        grid.1,
        grid.2,
        block.0,
        block.1
    ));
    // A CTA of `pitched` computes a row, one of `few_rows_1` 128 elements of a row; in other
    // kernels each thread computes an element.
    let (rows, columns) = match name {
        "pitched" => (grid.0, u32::MAX),
        "few_rows_1" => (u32::MAX, u32::MAX),
        _ => (grid.1 * block.1, grid.0 * block.0),
    };
    let first = Gemm::<T> {
        m: m.min(rows as usize),
        n: n.min(columns as usize),
        k,
        alpha: scalar(3),
        a: Matrix::row_major(a, lda),
        b: Matrix::row_major(b, ldb),
        beta: scalar(10),
        c: Matrix::row_major(c, ldc),
        is_wrong: gpu.is_wrong("wrong_kernel_from", gpu.kernel_launches),
        writes_a: gpu.is_wrong("wrong_a_from", gpu.kernel_launches),
    };
    let products = grid.2 as usize;
    if first.alpha != T::Scalar::default() {
        let last = |extent, stride| match extent {
            0 => 0,
            _ => (products - 1) * stride + extent,
        };
        let of_a = last(first.a.extent((m, k)), strides[0]);
        let of_b = last(first.b.extent((k, n)), strides[1]);
        assert!(of_a <= count(5) && of_b <= count(8), "a slice is too short");
    }
    for gemm in first.batch(products, strides) {
        gpu.enqueue(stream, move |gpu| gemm.compute(gpu, |element| element));
    }
}
