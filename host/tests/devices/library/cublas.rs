//! cuBLAS's functions, as `cublas_api.h` documents them. Matrices are column-major.

use std::collections::BTreeMap;

use crate::gemm::{self, Element, Gemm, Matrix};
use crate::gpu::{Gpu, LAUNCH_FAILED, Outcome, call, put};

const INVALID_VALUE: u32 = 7;
const EXECUTION_FAILED: u32 = 13;
const NOT_SUPPORTED: u32 = 15;

/// `CUBLAS_COMPUTE_32F`, `CUBLAS_COMPUTE_64F` and `CUBLAS_COMPUTE_32F_FAST_TF32`.
const COMPUTE_F32: i32 = 68;
const COMPUTE_F64: i32 = 70;
const COMPUTE_TF32: i32 = 77;

/// The state of a handle.
#[derive(Default)]
pub struct Handle {
    stream: usize,
    has_run: bool,
}

/// [`call`] with a status of cuBLAS.
fn cublas(body: impl FnOnce(&mut Gpu) -> Outcome) -> u32 {
    match call(body) {
        LAUNCH_FAILED => EXECUTION_FAILED,
        status => status,
    }
}

fn with_handle(handle: usize, change: impl FnOnce(&mut Handle)) -> u32 {
    cublas(|gpu| {
        change(gpu.cublas_handles.get_mut(&handle).expect("a handle"));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasCreate_v2(handle: *mut usize) -> u32 {
    cublas(|gpu| {
        let new = gpu.new_handle();
        gpu.cublas_handles.insert(new, Handle::default());
        put(handle, new)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasDestroy_v2(handle: usize) -> u32 {
    cublas(|gpu| {
        assert!(gpu.cublas_handles.remove(&handle).is_some());
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cublasGetVersion_v2(_handle: usize, version: *mut i32) -> u32 {
    cublas(|_| put(version, 120_901))
}

#[unsafe(no_mangle)]
extern "C" fn cublasSetStream_v2(handle: usize, stream: usize) -> u32 {
    with_handle(handle, |handle| handle.stream = stream)
}

/// The numbers as sizes; `None` if one is negative.
fn sizes<N: TryInto<usize>>(numbers: [N; 3]) -> Option<[usize; 3]> {
    let [one, two, three] = numbers.map(|number| number.try_into().ok());
    Some([one?, two?, three?])
}

/// `CUDA_R_32F`, `CUDA_R_64F`, `CUDA_R_16F` and `CUDA_R_16BF`.
const F32: i32 = 0;
const F64: i32 = 1;
const F16: i32 = 2;
const BF16: i32 = 14;

/// The arguments of a product, for any types.
#[derive(Clone, Copy)]
struct Product {
    name: &'static str,
    handle: usize,
    transposes: [i32; 2],
    shape: [i32; 3],
    /// Addresses of alpha and beta.
    scalars: [usize; 2],
    starts: [u64; 3],
    leading: [i32; 3],
    types: [i32; 3],
    strides: [i64; 3],
    products: i32,
    compute: i32,
    /// Nanoseconds: a setting, and its factor.
    time: (&'static str, u64),
}

impl Product {
    fn run(self) -> u32 {
        let mut time = 0;
        cublas(|gpu| {
            let (setting, times) = self.time;
            let setting = match self.compute {
                COMPUTE_TF32 => "tf32_ns",
                _ => setting,
            };
            time = gpu.setting(setting) * times;
            Ok(())
        });
        match (self.types, self.compute) {
            ([F32, F32, F32], COMPUTE_F32) => self.multiply::<f32>(time, |element| element),
            ([F32, F32, F32], COMPUTE_TF32) => self.multiply::<f32>(time, to_tf32),
            ([F64, F64, F64], COMPUTE_F64) => self.multiply::<f64>(time, |element| element),
            ([F16, F16, F32], COMPUTE_F32) => self.multiply::<gemm::Of<gemm::F16>>(time, |element| element),
            ([BF16, BF16, F32], COMPUTE_F32) => self.multiply::<gemm::Of<gemm::Bf16>>(time, |element| element),
            _ => INVALID_VALUE,
        }
    }

    fn multiply<T: Element>(self, time: u64, round: impl Fn(T::Input) -> T::Input + Copy) -> u32 {
        let (Some([m, n, k]), Some(leading)) = (sizes(self.shape), sizes(self.leading)) else {
            return INVALID_VALUE;
        };
        let [transpose_a, transpose_b] = self.transposes;
        let rows = |transpose, rows, columns| match transpose {
            0 => rows,
            1 => columns,
            other => panic!("operation {other} is not known"),
        };
        let stored: [usize; 3] = [rows(transpose_a, m, k), rows(transpose_b, k, n), m];
        if leading.iter().zip(stored).any(|(leading, rows)| *leading < rows.max(1)) {
            return INVALID_VALUE;
        }
        let matrix = |index: usize, transpose| match transpose {
            0 => Matrix::column_major(self.starts[index], leading[index]),
            _ => Matrix::row_major(self.starts[index], leading[index]),
        };
        // SAFETY: cuBLAS requires scalars that can be read.
        let [alpha, beta] = self.scalars.map(|address| unsafe {
            std::ptr::with_exposed_provenance::<T::Scalar>(address).read()
        });
        let [a, b, c] = self.starts;
        let [lda, ldb, ldc] = leading;
        let Product { name, handle, products, compute, .. } = self;
        cublas(|gpu| {
            gpu.status("cublas")?;
            gpu.cublas_launches += 1;
            let first = Gemm::<T> {
                m,
                n,
                k,
                alpha,
                a: matrix(0, transpose_a),
                b: matrix(1, transpose_b),
                beta,
                c: matrix(2, 0),
                is_wrong: gpu.is_wrong("wrong_cublas_from", gpu.cublas_launches),
                writes_a: false,
            };
            let known = gpu.cublas_handles.get_mut(&handle).expect("a handle");
            let stream = known.stream;
            let is_first = !std::mem::replace(&mut known.has_run, true);
            gpu.log(format_args!(
                "cublas name={name} m={m} n={n} k={k} a={a} lda={lda} b={b} ldb={ldb} c={c} ldc={ldc} \
                 products={products} mode={compute} stream={stream}"
            ));
            gpu.run_pending();
            let strides = self.strides.map(|stride| stride as usize);
            first.batch(products as usize, strides).for_each(|gemm| gemm.compute(gpu, round));
            gpu.work(stream, time, is_first);
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
extern "C" fn cublasGemmEx(
    handle: usize, transpose_a: i32, transpose_b: i32, m: i32, n: i32, k: i32,
    alpha: usize, a: u64, a_type: i32, lda: i32, b: u64, b_type: i32, ldb: i32,
    beta: usize, c: u64, c_type: i32, ldc: i32, compute: i32, algorithm: i32,
) -> u32 {
    cublasGemmStridedBatchedEx(
        handle, transpose_a, transpose_b, m, n, k, alpha, a, a_type, lda, 0,
        b, b_type, ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cublasGemmStridedBatchedEx(
    handle: usize, transpose_a: i32, transpose_b: i32, m: i32, n: i32, k: i32,
    alpha: usize, a: u64, a_type: i32, lda: i32, stride_a: i64,
    b: u64, b_type: i32, ldb: i32, stride_b: i64,
    beta: usize, c: u64, c_type: i32, ldc: i32, stride_c: i64,
    products: i32, compute: i32, algorithm: i32,
) -> u32 {
    assert_eq!(algorithm, -1);
    let supported = cublas(|gpu| gpu.status("gemm_ex"));
    if supported != 0 {
        return supported;
    }
    Product {
        name: if products == 1 { "gemm_ex" } else { "gemm_ex_batched" },
        handle,
        transposes: [transpose_a, transpose_b],
        shape: [m, n, k],
        scalars: [alpha, beta],
        starts: [a, b, c],
        leading: [lda, ldb, ldc],
        types: [a_type, b_type, c_type],
        strides: [stride_a, stride_b, stride_c],
        products,
        compute,
        time: ("cublas_ns", 1),
    }
    .run()
}

/// The nearest number with 10 bits of mantissa.
fn to_tf32(element: f32) -> f32 {
    f32::from_bits((element.to_bits() + (1 << 12)) & !((1 << 13) - 1))
}

/// A cublasLt description of any kind: its attributes by number, and how it was created.
#[derive(Clone, Default)]
struct Described {
    made: [i64; 4],
    attributes: BTreeMap<i32, i64>,
}

/// The description behind the caller's pointer.
fn described(raw: usize) -> &'static mut Described {
    // SAFETY: all these pointers come from `describe`, and one thread uses each.
    unsafe { &mut *std::ptr::with_exposed_provenance_mut::<Described>(raw) }
}

fn describe(made: *mut usize, arguments: [i64; 4]) -> u32 {
    let description = Box::new(Described { made: arguments, attributes: BTreeMap::new() });
    let raw = Box::into_raw(description).expose_provenance();
    cublas(|_| put(made, raw))
}

fn set(raw: usize, attribute: i32, value: *const u8, bytes: usize) -> u32 {
    // SAFETY: cublasLt requires a value of `bytes` bytes.
    let value = unsafe { std::slice::from_raw_parts(value, bytes) };
    let mut wide = [0; 8];
    wide[..bytes].copy_from_slice(value);
    described(raw).attributes.insert(attribute, i64::from_le_bytes(wide));
    0
}

fn forget(raw: usize) -> u32 {
    // SAFETY: it came from `describe`, and is not used again.
    drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Described>(raw)) });
    0
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulDescCreate(made: *mut usize, compute: i32, scale: i32) -> u32 {
    describe(made, [compute.into(), scale.into(), 0, 0])
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatrixLayoutCreate(made: *mut usize, element: i32, rows: u64, columns: u64, leading: i64) -> u32 {
    describe(made, [element.into(), rows as i64, columns as i64, leading])
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulPreferenceCreate(made: *mut usize) -> u32 {
    describe(made, [0; 4])
}

/// Exports the functions that change and destroy one kind of description.
macro_rules! description {
    ($set:ident $destroy:ident) => {
        #[unsafe(no_mangle)]
        extern "C" fn $set(raw: usize, attribute: i32, value: *const u8, bytes: usize) -> u32 {
            set(raw, attribute, value, bytes)
        }

        #[unsafe(no_mangle)]
        extern "C" fn $destroy(raw: usize) -> u32 {
            forget(raw)
        }
    };
}

description!(cublasLtMatmulDescSetAttribute cublasLtMatmulDescDestroy);
description!(cublasLtMatrixLayoutSetAttribute cublasLtMatrixLayoutDestroy);
description!(cublasLtMatmulPreferenceSetAttribute cublasLtMatmulPreferenceDestroy);

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
pub struct Heuristic {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    state: i32,
    waves: f32,
    reserved: [i32; 4],
}

/// The time of each algorithm over that of the fastest; the last refuses to run.
const ALGORITHMS: [u64; 3] = [2, 1, 0];

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _handle: usize, _description: usize, _a: usize, _b: usize, _c: usize, _d: usize,
    preference: usize, requested: i32, found: *mut Heuristic, count: *mut i32,
) -> u32 {
    // 64 MiB of workspace, and alignments of A, B, C and D.
    let attributes = &described(preference).attributes;
    assert_eq!((requested, attributes[&1]), (8, 64 << 20));
    assert!((5..=8).all(|index| attributes[&index].is_positive()));
    let none = cublas(|gpu| if gpu.setting("algorithms") == 0 { Err(NOT_SUPPORTED) } else { Ok(()) });
    if none != 0 {
        return none;
    }
    for (index, _) in ALGORITHMS.iter().enumerate() {
        let mut algorithm = [0; 8];
        algorithm[0] = index as u64;
        let heuristic = Heuristic {
            algorithm,
            workspace_bytes: 0,
            state: 0,
            waves: 1.0,
            reserved: [0; 4],
        };
        // SAFETY: there is room for eight.
        unsafe { found.add(index).write(heuristic) };
    }
    cublas(|_| put(count, ALGORITHMS.len() as i32))
}

#[unsafe(no_mangle)]
extern "C" fn cublasLtMatmul(
    handle: usize, description: usize, alpha: usize, a: u64, a_layout: usize, b: u64, b_layout: usize,
    beta: usize, c: u64, c_layout: usize, d: u64, d_layout: usize,
    algorithm: *const [u64; 8], _workspace: u64, workspace_bytes: usize, stream: usize,
) -> u32 {
    assert_eq!((c, c_layout, workspace_bytes), (d, d_layout, 64 << 20));
    // SAFETY: cublasLt requires an algorithm.
    let [index, ..] = unsafe { *algorithm };
    let times = ALGORITHMS[index as usize];
    if times == 0 {
        return NOT_SUPPORTED;
    }
    let operation = described(description);
    let layouts = [a_layout, b_layout, c_layout].map(|layout| &*described(layout));
    let transposes = [3, 4].map(|index| operation.attributes.get(&index).copied().unwrap_or(0) as i32);
    let [m, n] = [layouts[2].made[1], layouts[2].made[2]];
    let k = match transposes[0] {
        0 => layouts[0].made[2],
        _ => layouts[0].made[1],
    };
    with_handle(handle, |handle| assert_eq!(handle.stream, stream));
    let attribute = |index: i32| layouts.map(|layout| layout.attributes[&index]);
    let products = attribute(5)[0];
    let status = Product {
        name: "matmul",
        handle,
        transposes,
        shape: [m, n, k].map(|side| side as i32),
        scalars: [alpha, beta],
        starts: [a, b, c],
        leading: layouts.map(|layout| layout.made[3] as i32),
        types: layouts.map(|layout| layout.made[0] as i32),
        strides: attribute(6),
        products: products as i32,
        compute: operation.made[0] as i32,
        time: ("cublaslt_ns", times),
    }
    .run();
    match operation.attributes.get(&7) {
        Some(&epilogue) if status == 0 => {
            assert_eq!(epilogue, 6, "the fake knows only a bias and relu");
            let (bias, leading, stride) = (operation.attributes[&8] as u64, layouts[2].made[3], attribute(6)[2]);
            cublas(|gpu| {
                let element = |start: u64, index: i64| gpu.memory(start + 4 * index as u64, 4).cast::<f32>();
                let columns = (0..products).flat_map(|product| (0..n).map(move |column| product * stride + column * leading));
                for (first, row) in columns.flat_map(|first| (0..m).map(move |row| (first, row))) {
                    // SAFETY: the bias has an element for each row, and the product wrote these.
                    unsafe {
                        let of_c = element(c, first + row);
                        *of_c = (*of_c + *element(bias, row)).max(0.0);
                    }
                }
                Ok(())
            })
        }
        _ => status,
    }
}
