//! The library as programs have it: preloaded, before a cuBLAS. Each test starts itself again in a
//! process that has both, on the simulator, whose memory is the host's.

#[allow(dead_code)]
#[path = "../../../../host/tests/devices/built.rs"]
mod built;
mod on_gpu;

use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::ptr::{null, null_mut};
use std::sync::LazyLock;
use std::{env, fs};

use gpu_gemm::device::compiled;
use gpu_gemm::{Bf16, F16};
use libtest_mimic::{Arguments, Trial};

macro_rules! trials {
    ($($test:path),* $(,)?) => {
        vec![$(Trial::test(stringify!($test), || {
            $test();
            Ok(())
        })),*]
    };
}

fn main() -> ExitCode {
    let others = trials![
        all_layouts_of_f32_are_multiplied_as_cublas_does,
        all_types_and_batches_are_multiplied,
        what_cublaslt_describes_is_multiplied_and_a_bias_added,
        epilogues_of_cublaslt_are_computed_in_each_type,
        what_is_not_multiplied_is_passed_on_as_it_came,
        without_sums_c_is_scaled_and_nothing_read,
        cublas_that_calls_itself_is_not_taken,
        a_cublas_that_was_opened_by_name_is_found,
        without_cublas_a_call_fails,
        no_other_symbol_is_exported,
        the_log_says_what_was_called,
        settings_that_are_wrong_are_said_and_ignored,
        checks_pass_what_is_right,
    ];
    // The first compiles kernels for all of them, mostly on one core; meanwhile the others run.
    let is_ignored = compiled::why_absent().is_some();
    let gpu = trials![
        on_gpu::calls_run_on_the_handles_stream,
        on_gpu::each_thread_has_its_stream,
        on_gpu::captures_take_what_has_run_before,
        on_gpu::an_epilogue_is_one_launch_and_captured,
    ];
    let gpu = gpu.into_iter();
    let mut gpu = gpu.map(|trial| trial.with_ignored_flag(is_ignored));
    let first = gpu.next().into_iter();
    let trials = first.chain(others).chain(gpu).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The names under which the fake cuBLAS is preloaded and opened.
static FAKE: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/preload/cublas.rs");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fake_cublas");
    fs::create_dir_all(&folder).unwrap();
    let library = folder.join("libcublas.so.12");
    let changed = |path: &str| fs::metadata(path).and_then(|file| file.modified());
    if changed(library.to_str().unwrap()).ok() < changed(source).ok() {
        let building = tempfile::tempdir_in(&folder).unwrap();
        let compiled = building.path().join("libcublas.so.12");
        let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args([source, "--crate-name=fake_cublas", "--crate-type=cdylib"]);
        rustc.args([
            "--edition=2024",
            "-Dwarnings",
            "-Clink-arg=-Wl,-soname,libcublas.so.12",
        ]);
        assert!(rustc.arg("-o").arg(&compiled).status().unwrap().success());
        fs::rename(&compiled, &library).unwrap();
    }
    library
});

/// Cargo builds it beside this program.
fn library() -> PathBuf {
    env::current_exe()
        .unwrap()
        .with_file_name("libgemm_blas.so")
}

const CHILD: &str = "PRELOADED";

/// Whether this process is the one with the libraries.
fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs a test in a process with the library and the fake, and returns what it said.
fn again(test: &str, settings: &[(&str, &str)]) -> String {
    let preload = format!("{}:{}", library().display(), FAKE.display());
    again_with(test, &preload, settings)
}

fn again_with(test: &str, preload: &str, settings: &[(&str, &str)]) -> String {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]);
    program.env(CHILD, "1").env("LD_PRELOAD", preload);
    program
        .env("GEMM_BLAS_DEVICE", "simulator")
        .env("GEMM_BLAS_TAKE", "all");
    program.envs(settings.iter().copied());
    let output = program.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{err}"
    );
    err
}

/// A function by its name, as the program's loader finds it.
fn symbol(name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    // SAFETY: the name ends with a 0.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// Calls a function with these arguments.
macro_rules! call {
    ($name:expr; $($argument:expr => $type:ty),* $(,)?) => {{
        let address = $crate::symbol($name);
        assert!(!address.is_null(), "{} is missing", $name);
        // SAFETY: the type is that of `cublas_api.h`.
        unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(address)(
                $($argument),*
            )
        }
    }};
}
use call;

/// The calls that the fake got.
fn calls_of_cublas() -> String {
    let mut text = vec![0_u8; 1 << 16];
    call!("fake_calls"; text.as_mut_ptr() => *mut u8, text.len() => usize);
    let end = text.iter().position(|byte| *byte == 0).unwrap();
    text.truncate(end);
    String::from_utf8(text).unwrap()
}

/// The numbers of calls that were multiplied and passed on.
fn counts() -> [u64; 2] {
    let mut counts = [0; 2];
    let [multiplied, passed_on] = &mut counts;
    call!("gemm_blas_calls"; multiplied => *mut u64, passed_on => *mut u64);
    counts
}

#[repr(C)]
struct Handle {
    stream: usize,
    pointer_mode: c_int,
    math_mode: c_int,
}

const HANDLE: Handle = Handle {
    stream: 0,
    pointer_mode: 0,
    math_mode: 0,
};

/// Numbers that a matrix may have, of which sums are exact in each type.
trait Number: Copy + PartialEq + std::fmt::Debug {
    const TYPE: c_int;
    /// The largest relative error of a number that is rounded once, and of a function in f32.
    const ROUNDING: f64;
    fn of(value: f64) -> Self;
    fn value(self) -> f64;
}

impl Number for f32 {
    const TYPE: c_int = 0;
    const ROUNDING: f64 = 2e-6;
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn value(self) -> f64 {
        self.into()
    }
}

impl Number for f64 {
    const TYPE: c_int = 1;
    const ROUNDING: f64 = 1e-15;
    fn of(value: f64) -> f64 {
        value
    }
    fn value(self) -> f64 {
        self
    }
}

impl Number for F16 {
    const TYPE: c_int = 2;
    const ROUNDING: f64 = 4.9e-4;
    fn of(value: f64) -> F16 {
        F16::from_f64(value)
    }
    fn value(self) -> f64 {
        self.to_f64()
    }
}

impl Number for Bf16 {
    const TYPE: c_int = 14;
    const ROUNDING: f64 = 3.92e-3;
    fn of(value: f64) -> Bf16 {
        Bf16::from_f64(value)
    }
    fn value(self) -> f64 {
        self.to_f64()
    }
}

/// A column-major matrix, in f64.
#[derive(Clone)]
struct Matrix {
    numbers: Vec<f64>,
    leading: usize,
    stride: usize,
}

impl Matrix {
    /// Of -1, 0 and 1, with 3 elements between columns, and 5 between matrices.
    fn new(rows: usize, columns: usize, batch: usize, seed: usize) -> Matrix {
        let leading = rows + 3;
        let stride = leading * columns + 5;
        let number = |index: usize| ((index * 7 + index / 5 + seed) % 3) as f64 - 1.0;
        Matrix {
            numbers: (0..stride * batch).map(number).collect(),
            leading,
            stride,
        }
    }

    fn index(&self, product: usize, row: usize, column: usize, transpose: c_int) -> usize {
        let (row, column) = if transpose == 0 {
            (row, column)
        } else {
            (column, row)
        };
        product * self.stride + column * self.leading + row
    }

    fn of<T: Number>(&self) -> Vec<T> {
        self.numbers.iter().map(|number| T::of(*number)).collect()
    }
}

/// A product as cuBLAS has it, and its result.
struct Case {
    transposes: [c_int; 2],
    shape: [usize; 3],
    alpha: f64,
    beta: f64,
    matrices: [Matrix; 3],
    batch: usize,
}

impl Case {
    fn new(transposes: [c_int; 2], shape: [usize; 3], scalars: [f64; 2], batch: usize) -> Case {
        let [m, n, k] = shape;
        let stored = |transpose, rows, columns, seed| match transpose {
            0 => Matrix::new(rows, columns, batch, seed),
            _ => Matrix::new(columns, rows, batch, seed),
        };
        Case {
            transposes,
            shape,
            alpha: scalars[0],
            beta: scalars[1],
            matrices: [
                stored(transposes[0], m, k, 0),
                stored(transposes[1], k, n, 1),
                stored(0, m, n, 2),
            ],
            batch,
        }
    }

    /// C afterwards, with what is between its columns unchanged.
    fn expected(&self) -> Matrix {
        let [m, n, k] = self.shape;
        let [a, b, c] = &self.matrices;
        let [ta, tb] = self.transposes;
        let mut result = c.clone();
        for product in 0..self.batch {
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let term = |depth| {
                    let of_a = a.numbers[a.index(product, row, depth, ta)];
                    of_a * b.numbers[b.index(product, depth, column, tb)]
                };
                let sum: f64 = (0..k).map(term).sum();
                let number = &mut result.numbers[c.index(product, row, column, 0)];
                *number = self.alpha * sum + self.beta * *number;
            }
        }
        result
    }

    /// Runs it by a call of a function of cuBLAS, and compares.
    fn is_right<T: Number, C: Number, S: Number>(&self, name: &str) {
        let [a, b] = [&self.matrices[0], &self.matrices[1]];
        let (of_a, of_b, mut c) = (a.of::<T>(), b.of::<T>(), self.matrices[2].of::<C>());
        let ([m, n, k], [ta, tb]) = (self.shape.map(|size| size as i64), self.transposes);
        let (alpha, beta) = (S::of(self.alpha), S::of(self.beta));
        let [lda, ldb, ldc] = [0, 1, 2].map(|index| self.matrices[index].leading as i64);
        let [sa, sb, sc] = [0, 1, 2].map(|index| self.matrices[index].stride as i64);
        let compute = if S::TYPE == 1 { 70 } else { 68 };
        let start = c.as_mut_ptr();
        macro_rules! with_sizes {
            ($int:ty) => {{
                let is_batched = name.contains("Batched");
                let [m, n, k] = [m, n, k].map(|size| size as $int);
                let [lda, ldb, ldc] = [lda, ldb, ldc].map(|size| size as $int);
                match (name.contains("Ex"), is_batched) {
                    (false, false) => call!(name; &HANDLE => *const Handle, ta => c_int, tb => c_int,
                        m => $int, n => $int, k => $int, &alpha => *const S, of_a.as_ptr() => *const T, lda => $int,
                        of_b.as_ptr() => *const T, ldb => $int, &beta => *const S, start => *mut C, ldc => $int),
                    (false, true) => call!(name; &HANDLE => *const Handle, ta => c_int, tb => c_int,
                        m => $int, n => $int, k => $int, &alpha => *const S, of_a.as_ptr() => *const T, lda => $int,
                        sa => i64, of_b.as_ptr() => *const T, ldb => $int, sb => i64, &beta => *const S,
                        start => *mut C, ldc => $int, sc => i64, self.batch as $int => $int),
                    (true, false) => call!(name; &HANDLE => *const Handle, ta => c_int, tb => c_int,
                        m => $int, n => $int, k => $int, &alpha => *const S, of_a.as_ptr() => *const T, T::TYPE => c_int,
                        lda => $int, of_b.as_ptr() => *const T, T::TYPE => c_int, ldb => $int, &beta => *const S,
                        start => *mut C, C::TYPE => c_int, ldc => $int, compute => c_int, -1 => c_int),
                    (true, true) => call!(name; &HANDLE => *const Handle, ta => c_int, tb => c_int,
                        m => $int, n => $int, k => $int, &alpha => *const S, of_a.as_ptr() => *const T, T::TYPE => c_int,
                        lda => $int, sa => i64, of_b.as_ptr() => *const T, T::TYPE => c_int, ldb => $int, sb => i64,
                        &beta => *const S, start => *mut C, C::TYPE => c_int, ldc => $int, sc => i64,
                        self.batch as $int => $int, compute => c_int, -1 => c_int),
                }
            }};
        }
        let before = counts();
        let status = match name.ends_with("_64") {
            true => with_sizes!(i64),
            false => with_sizes!(c_int),
        };
        assert_eq!(
            (status, counts()),
            (0, [before[0] + 1, before[1]]),
            "{name}"
        );
        assert!(
            c == self.expected().of::<C>(),
            "{name} {:?} {:?}",
            self.transposes,
            self.shape
        );
    }
}

fn all_layouts_of_f32_are_multiplied_as_cublas_does() {
    if !is_child() {
        again("all_layouts_of_f32_are_multiplied_as_cublas_does", &[]);
        return;
    }
    for (index, transposes) in [[0, 0], [0, 1], [1, 0], [2, 1]].into_iter().enumerate() {
        for (scalars, shape) in [([2.0, 3.0], [21, 34, 13]), ([1.0, 0.0], [40, 17, 30])] {
            let case = Case::new(transposes, shape, scalars, 1);
            case.is_right::<f32, f32, f32>(["cublasSgemm_v2", "cublasSgemm_v2_64"][index % 2]);
        }
    }
    assert_eq!(calls_of_cublas(), "");
}

fn all_types_and_batches_are_multiplied() {
    if !is_child() {
        again("all_types_and_batches_are_multiplied", &[]);
        again(
            "all_types_and_batches_are_multiplied",
            &[("GEMM_BLAS_MATH", "split")],
        );
        return;
    }
    let one = |transposes| Case::new(transposes, [21, 34, 13], [2.0, 3.0], 1);
    one([1, 0]).is_right::<f64, f64, f64>("cublasDgemm_v2");
    one([0, 1]).is_right::<f64, f64, f64>("cublasDgemm_v2_64");
    one([1, 0]).is_right::<Bf16, Bf16, f32>("cublasGemmEx");
    one([0, 1]).is_right::<Bf16, f32, f32>("cublasGemmEx_64");
    one([0, 0]).is_right::<F16, F16, f32>("cublasGemmEx");
    one([1, 1]).is_right::<F16, f32, f32>("cublasGemmEx");
    one([1, 1]).is_right::<f32, f32, f32>("cublasGemmEx");
    let batch = |transposes| Case::new(transposes, [9, 20, 13], [2.0, 3.0], 3);
    batch([1, 0]).is_right::<f32, f32, f32>("cublasSgemmStridedBatched");
    batch([0, 1]).is_right::<f32, f32, f32>("cublasSgemmStridedBatched_64");
    batch([0, 1]).is_right::<f64, f64, f64>("cublasDgemmStridedBatched");
    batch([1, 0]).is_right::<f64, f64, f64>("cublasDgemmStridedBatched_64");
    batch([0, 1]).is_right::<Bf16, Bf16, f32>("cublasGemmStridedBatchedEx");
    batch([1, 0]).is_right::<F16, F16, f32>("cublasGemmStridedBatchedEx_64");
}

/// A description of cublasLt, as the fake has it.
#[repr(C)]
#[derive(Clone)]
struct Description {
    values: [i64; 32],
    bytes: [usize; 32],
}

impl Description {
    fn new() -> Description {
        Description {
            values: [0; 32],
            bytes: [0; 32],
        }
    }

    fn with(mut self, attribute: usize, value: i64, bytes: usize) -> Description {
        (self.values[attribute], self.bytes[attribute]) = (value, bytes);
        self
    }

    fn layout<T: Number>(rows: usize, columns: usize, matrix: &Matrix) -> Description {
        let described = Description::new().with(0, T::TYPE.into(), 4);
        let described = described.with(1, 0, 4).with(5, 1, 4);
        let sizes = [
            (2, rows),
            (3, columns),
            (4, matrix.leading),
            (6, matrix.stride),
        ];
        sizes.iter().fold(described, |all, (attribute, size)| {
            all.with(*attribute, *size as i64, 8)
        })
    }

    fn operation([ta, tb]: [c_int; 2]) -> Description {
        let described = Description::new()
            .with(0, 68, 4)
            .with(1, 0, 4)
            .with(2, 0, 4)
            .with(7, 1, 4);
        described.with(3, ta.into(), 4).with(4, tb.into(), 4)
    }
}

/// Calls cublasLt with a product of matrices of one type.
fn matmul<T: Number>(
    case: &Case,
    operation: &Description,
    change: impl Fn(&mut [Description; 4]),
) -> Vec<T> {
    let [m, n, k] = case.shape;
    let [a, b, c] = &case.matrices;
    let stored = |transpose, rows, columns| {
        if transpose == 0 {
            (rows, columns)
        } else {
            (columns, rows)
        }
    };
    let [(ar, ac), (br, bc)] = [
        stored(case.transposes[0], m, k),
        stored(case.transposes[1], k, n),
    ];
    let mut layouts = [
        Description::layout::<T>(ar, ac, a),
        Description::layout::<T>(br, bc, b),
        Description::layout::<T>(m, n, c),
        Description::layout::<T>(m, n, c),
    ];
    change(&mut layouts);
    let [al, bl, cl, dl] = &layouts;
    let (a, b, mut c) = (a.of::<T>(), b.of::<T>(), c.of::<T>());
    let (alpha, beta) = (case.alpha as f32, case.beta as f32);
    type D = *const Description;
    let status = call!("cublasLtMatmul"; null() => *const Handle, operation => D, &alpha => *const f32,
        a.as_ptr() => *const T, al => D, b.as_ptr() => *const T, bl => D, &beta => *const f32,
        c.as_ptr() => *const T, cl => D, c.as_mut_ptr() => *mut T, dl => D,
        null() => *const u8, null() => *const u8, 0 => usize, 0 => usize);
    assert_eq!(status, 0);
    c
}

fn what_cublaslt_describes_is_multiplied_and_a_bias_added() {
    if !is_child() {
        again(
            "what_cublaslt_describes_is_multiplied_and_a_bias_added",
            &[],
        );
        return;
    }
    for transposes in [[0, 0], [1, 0], [0, 1]] {
        let case = Case::new(transposes, [21, 34, 13], [2.0, 3.0], 1);
        let c: Vec<f32> = matmul(&case, &Description::operation(transposes), |_| ());
        assert_eq!(c, case.expected().of::<f32>());
    }
    let case = Case::new([1, 0], [21, 34, 13], [2.0, 0.0], 1);
    let bias: Vec<f32> = (0..21).map(|row| row as f32 / 3.0).collect();
    let operation = Description::operation([1, 0]).with(7, 4, 4);
    let operation = operation.with(8, bias.as_ptr().addr() as i64, 8);
    let c: Vec<f32> = matmul(&case, &operation, |_| ());
    let mut expected = case.expected();
    for (row, column) in (0..21).flat_map(|row| (0..34).map(move |column| (row, column))) {
        let index = expected.index(0, row, column, 0);
        expected.numbers[index] += f64::from(bias[row]);
    }
    assert_eq!(c, expected.of::<f32>());
    assert_eq!(counts(), [4, 0]);
    assert_eq!(calls_of_cublas(), "");
    // What is passed on, the fake leaves as it was.
    let case = Case::new([0, 0], [21, 34, 13], [1.0, 1.0], 1);
    let plain = Description::operation([0, 0]);
    let pass = |operation: &Description, change: &dyn Fn(&mut [Description; 4])| {
        let c: Vec<f32> = matmul(&case, operation, change);
        assert_eq!(c, case.matrices[2].of::<f32>());
        assert!(calls_of_cublas().starts_with("cublasLtMatmul "));
    };
    let of_operation = [
        (0, 64),
        (1, 1),
        (2, 1),
        (5, 1),
        // With a second output, backward, and sums of a gradient.
        (7, 130),
        (7, 164),
        (7, 192),
        (7, 512),
        (15, 64),
    ];
    for (attribute, value) in of_operation {
        pass(&plain.clone().with(attribute, value, 4), &|_| ());
    }
    pass(&plain.clone().with(17, 64, 8), &|_| ());
    // A bias beside a C.
    let with_bias = plain.clone().with(7, 4, 4).with(8, 64, 8);
    pass(&with_bias, &|_| ());
    // Row-major, another type, another depth, a batch of B alone, pointers, another D.
    for (index, attribute, value, bytes) in [
        (0, 1, 1, 4),
        (1, 0, 2, 4),
        (1, 2, 12, 8),
        (1, 5, 2, 4),
        (2, 8, 1, 4),
        (3, 4, 30, 8),
    ] {
        pass(&plain, &|layouts| {
            layouts[index] = layouts[index].clone().with(attribute, value, bytes)
        });
    }
}

/// Each element of a product with an epilogue: of cublasLt's number, with a bias of a type.
fn epilogue_is_right<T: Number, B: Number>(
    transposes: [c_int; 2],
    beta: f64,
    epilogue: i64,
    activation: impl Fn(f64) -> f64,
) {
    let case = Case::new(transposes, [21, 34, 13], [0.25, beta], 1);
    let bias: Vec<B> = (0..21)
        .map(|row| B::of(f64::from(row) / 7.0 - 1.5))
        .collect();
    let has_bias = epilogue & 4 != 0;
    let mut operation = Description::operation(transposes).with(7, epilogue, 4);
    if has_bias {
        operation = operation.with(8, bias.as_ptr().addr() as i64, 8);
        // cublasLt takes D's type if it is not said.
        if B::TYPE != T::TYPE {
            operation = operation.with(26, B::TYPE.into(), 4);
        }
    }
    let before = counts();
    let c: Vec<T> = matmul(&case, &operation, |_| ());
    assert_eq!(counts(), [before[0] + 1, before[1]]);
    let mut expected = case.expected().numbers;
    let place = |row, column| case.matrices[2].index(0, row, column, 0);
    for (row, column) in (0..21).flat_map(|row| (0..34).map(move |column| (row, column))) {
        let of_row = if has_bias { bias[row].value() } else { 0.0 };
        let number = &mut expected[place(row, column)];
        *number = activation(*number + of_row);
    }
    for (index, (got, expected)) in c.iter().zip(expected).enumerate() {
        let error = (got.value() - expected).abs();
        assert!(
            error <= T::ROUNDING * expected.abs() + 1e-6,
            "epilogue {epilogue}, types {} and {}: {index} is {got:?}, not {expected}",
            T::TYPE,
            B::TYPE
        );
    }
}

fn epilogues_of_cublaslt_are_computed_in_each_type() {
    let name = "epilogues_of_cublaslt_are_computed_in_each_type";
    if !is_child() {
        again(name, &[]);
        again(name, &[("GEMM_BLAS_CHECK", "1")]);
        again(name, &[("GEMM_BLAS_MATH", "split")]);
        return;
    }
    let relu = |x: f64| x.max(0.0);
    let inner = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
    let gelu = |x: f64| x / 2.0 * (1.0 + inner(x).tanh());
    let all: [(i64, &dyn Fn(f64) -> f64); 5] = [
        (4, &|x| x),
        (2, &relu),
        (6, &relu),
        (32, &gelu),
        (36, &gelu),
    ];
    for (epilogue, activation) in all {
        for transposes in [[1, 0], [0, 0]] {
            epilogue_is_right::<f32, f32>(transposes, 0.0, epilogue, activation);
            epilogue_is_right::<Bf16, Bf16>(transposes, 0.0, epilogue, activation);
            epilogue_is_right::<F16, F16>(transposes, 0.0, epilogue, activation);
        }
        epilogue_is_right::<Bf16, f32>([1, 0], 0.5, epilogue, activation);
        epilogue_is_right::<F16, f32>([0, 1], 0.5, epilogue, activation);
        epilogue_is_right::<Bf16, Bf16>([1, 0], -0.5, epilogue, activation);
    }
    assert_eq!(calls_of_cublas(), "");
    // A bias of another type, no bias where there should be one, a batch, and a C of f32 of bf16.
    let case = Case::new([0, 0], [21, 34, 13], [1.0, 0.0], 1);
    let bias = Description::operation([0, 0]).with(7, 4, 4).with(8, 64, 8);
    let pass = |operation: &Description, change: &dyn Fn(&mut [Description; 4])| {
        let c: Vec<Bf16> = matmul(&case, operation, change);
        assert_eq!(c, case.matrices[2].of::<Bf16>());
        assert!(calls_of_cublas().starts_with("cublasLtMatmul "));
    };
    pass(&bias.clone().with(26, 2, 4), &|_| ());
    pass(&bias.clone().with(8, 0, 8), &|_| ());
    let each = |layouts: &mut [Description], attribute, value| {
        for layout in layouts {
            *layout = layout.clone().with(attribute, value, 4);
        }
    };
    pass(&bias, &|layouts| each(layouts, 5, 2));
    pass(&bias, &|layouts| each(&mut layouts[2..], 0, 0));
}

/// Calls `cublasSgemm_v2` and expects that it is passed on as it came.
fn passes_on(handle: &Handle, sizes: [c_int; 8], pointers: [*const f32; 5]) {
    let [ta, tb, m, n, k, lda, ldb, ldc] = sizes;
    let [alpha, a, b, beta, c] = pointers;
    let [multiplied, passed_on] = counts();
    let status = call!("cublasSgemm_v2"; handle => *const Handle, ta => c_int, tb => c_int,
        m => c_int, n => c_int, k => c_int, alpha => *const f32, a => *const f32, lda => c_int,
        b => *const f32, ldb => c_int, beta => *const f32, c => *const f32, ldc => c_int);
    let expected = format!(
        "cublasSgemm_v2 {handle:p} {ta} {tb} {m} {n} {k} {alpha:?} {a:?} {lda} {b:?} {ldb} {beta:?} {c:?} {ldc}\n"
    );
    assert_eq!((status, calls_of_cublas()), (0, expected));
    assert_eq!(counts(), [multiplied, passed_on + 1]);
}

fn what_is_not_multiplied_is_passed_on_as_it_came() {
    let name = "what_is_not_multiplied_is_passed_on_as_it_came";
    if !is_child() {
        again(name, &[]);
        again(
            name,
            &[("GEMM_BLAS_TAKE", "none"), ("GEMM_BLAS_MATH", "split")],
        );
        return;
    }
    let right = [0, 0, 4, 4, 4, 4, 4, 4];
    let numbers = [1.0_f32; 16];
    let all = [numbers.as_ptr(); 5];
    // Alpha and beta in the GPU's memory are not read.
    let mut unreadable = all;
    unreadable[0] = std::ptr::without_provenance(64);
    passes_on(
        &Handle {
            pointer_mode: 1,
            ..HANDLE
        },
        right,
        unreadable,
    );
    for (index, wrong) in [
        (0, 9),
        (1, -1),
        (2, -4),
        (3, -4),
        (4, -4),
        (5, 3),
        (6, 3),
        (7, 3),
        (2, 0),
    ] {
        let mut sizes = right;
        sizes[index] = wrong;
        passes_on(&HANDLE, sizes, all);
    }
    for index in 0..5 {
        let mut pointers = all;
        pointers[index] = null();
        passes_on(&HANDLE, right, pointers);
    }
    if env::var("GEMM_BLAS_TAKE").as_deref() == Ok("none") {
        passes_on(&HANDLE, right, all);
        // Pedantic.
        passes_on(
            &Handle {
                math_mode: 2,
                ..HANDLE
            },
            right,
            all,
        );
    }
    // Types and sums that no kernel multiplies, in each function with types.
    let (h, one): (*const Handle, _) = (&HANDLE, numbers.as_ptr());
    for (a_type, c_type, compute) in [(3, 10, 72), (2, 2, 64), (0, 0, 70), (28, 14, 68), (0, 0, 0)]
    {
        let status = call!("cublasGemmStridedBatchedEx"; h => *const Handle, 1 => c_int, 0 => c_int,
            4 => c_int, 3 => c_int, 2 => c_int, one => *const f32, one => *const f32, a_type => c_int,
            4 => c_int, 5 => i64, one => *const f32, a_type => c_int, 6 => c_int, 7 => i64,
            one => *const f32, one => *const f32, c_type => c_int, 8 => c_int, 9 => i64,
            2 => c_int, compute => c_int, 99 => c_int);
        let expected = format!(
            "cublasGemmStridedBatchedEx {h:?} 1 0 4 3 2 {one:?} {one:?} {a_type} 4 5 {one:?} {a_type} 6 7 {one:?} {one:?} \
             {c_type} 8 9 2 {compute} 99\n"
        );
        assert_eq!((status, calls_of_cublas()), (0, expected));
    }
    let huge = 1_i64 << 40;
    call!("cublasDgemm_v2_64"; h => *const Handle, 0 => c_int, 0 => c_int, huge => i64, huge => i64, 1 => i64,
        one => *const f32, one => *const f32, huge => i64, one => *const f32, 1 => i64, one => *const f32,
        one => *const f32, huge => i64);
    assert_eq!(
        calls_of_cublas(),
        format!(
            "cublasDgemm_v2_64 {h:?} 0 0 {huge} {huge} 1 {one:?} {one:?} {huge} {one:?} 1 {one:?} {one:?} {huge}\n"
        )
    );
}

fn without_sums_c_is_scaled_and_nothing_read() {
    if !is_child() {
        again("without_sums_c_is_scaled_and_nothing_read", &[]);
        return;
    }
    for beta in [0.0, 0.5, 1.0] {
        Case::new([0, 0], [21, 34, 0], [2.0, beta], 1).is_right::<f32, f32, f32>("cublasSgemm_v2");
        Case::new([1, 0], [21, 34, 8], [0.0, beta], 2)
            .is_right::<f64, f64, f64>("cublasDgemmStridedBatched");
    }
    // A and B may be null where they have no elements; NaNs in C are overwritten.
    let (one, zero, mut c) = (1.0_f32, 0.0_f32, [f32::NAN; 16]);
    let status = call!("cublasSgemm_v2"; &HANDLE => *const Handle, 0 => c_int, 0 => c_int,
        4 => c_int, 4 => c_int, 0 => c_int, &one => *const f32, null() => *const f32, 4 => c_int,
        null() => *const f32, 1 => c_int, &zero => *const f32, c.as_mut_ptr() => *mut f32, 4 => c_int);
    assert_eq!((status, c), (0, [0.0; 16]));
    assert_eq!(calls_of_cublas(), "");
}

fn cublas_that_calls_itself_is_not_taken() {
    if !is_child() {
        again("cublas_that_calls_itself_is_not_taken", &[]);
        return;
    }
    let number = &1.0_f64;
    call!("cublasGemmEx"; &HANDLE => *const Handle, 0 => c_int, 0 => c_int, 1 => c_int, 1 => c_int, 1 => c_int,
        number => *const f64, number => *const f64, 99 => c_int, 1 => c_int, number => *const f64, 99 => c_int,
        1 => c_int, number => *const f64, number => *const f64, 99 => c_int, 1 => c_int, 68 => c_int, -1 => c_int);
    let calls = calls_of_cublas();
    assert!(
        calls.starts_with("cublasGemmEx ") && calls.contains("\ncublasLtMatmul "),
        "{calls}"
    );
    assert_eq!(counts(), [0, 1]);
}

fn a_cublas_that_was_opened_by_name_is_found() {
    if !is_child() {
        let preload = library().display().to_string();
        let fake = FAKE.display().to_string();
        again_with(
            "a_cublas_that_was_opened_by_name_is_found",
            &preload,
            &[("FAKE", &fake)],
        );
        return;
    }
    let path = CString::new(env::var("FAKE").unwrap()).unwrap();
    // SAFETY: the path ends with a 0, and the library may be opened anywhere.
    let fake = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!fake.is_null());
    let case = Case::new([0, 0], [21, 34, 13], [2.0, 3.0], 1);
    case.is_right::<f32, f32, f32>("cublasSgemm_v2");
    // So is this library, where a program looks for a function of the other.
    // SAFETY: the names end with a 0.
    let in_fake = |name: &std::ffi::CStr| unsafe { libc::dlsym(fake, name.as_ptr()) };
    assert_eq!(in_fake(c"cublasSgemm_v2"), symbol("cublasSgemm_v2"));
    assert_ne!(in_fake(c"cublasGetStream_v2"), null_mut());
    assert_ne!(in_fake(c"fake_calls"), null_mut());
    // The fake has no such function, and the loader finds none after this program.
    assert_eq!(in_fake(c"cublasSgemm_v2_64"), null_mut());
    let next = c"cublasSgemm_v2".as_ptr();
    // SAFETY: as above.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, next) };
    assert_eq!(next, symbol("cublasSgemm_v2"));
    // It is passed on.
    let status = call!("cublasSgemm_v2"; &HANDLE => *const Handle, 0 => c_int, 0 => c_int,
        0 => c_int, 0 => c_int, 0 => c_int, null() => *const f32, null() => *const f32, 1 => c_int,
        null() => *const f32, 1 => c_int, null() => *const f32, null() => *const f32, 1 => c_int);
    assert_eq!((status, counts()), (0, [1, 1]));
}

fn without_cublas_a_call_fails() {
    if !is_child() {
        let preload = library().display().to_string();
        again_with("without_cublas_a_call_fails", &preload, &[]);
        return;
    }
    let number = &1.0_f32;
    let status = call!("cublasSgemm_v2"; &HANDLE => *const Handle, 0 => c_int, 0 => c_int,
        1 => c_int, 1 => c_int, 1 => c_int, number => *const f32, number => *const f32, 1 => c_int,
        number => *const f32, 1 => c_int, number => *const f32, number => *const f32, 1 => c_int);
    assert_eq!((status, counts()), (1, [0, 1]));
}

/// Else it would replace functions of the driver in the whole process.
fn no_other_symbol_is_exported() {
    if !is_child() {
        again("no_other_symbol_is_exported", &[]);
        return;
    }
    for name in [
        "cuInit",
        "cuLaunchKernel",
        "cuCtxGetCurrent",
        "rust_eh_personality",
        "gemm_blas",
    ] {
        assert!(symbol(name).is_null(), "{name}");
    }
}

fn the_log_says_what_was_called() {
    if !is_child() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let path = log.path().display().to_string();
        again("the_log_says_what_was_called", &[("GEMM_BLAS_LOG", &path)]);
        let said = fs::read_to_string(log.path()).unwrap();
        let lines: Vec<&str> = said.lines().collect();
        let call = "gemm_blas: cublasSgemm_v2 F32 m=21 n=34 k=13 TN lda=16 ldb=16 ldc=24 batch=1: multiplied by ";
        assert!(
            lines[0].starts_with(call) && lines[0].ends_with(" us)"),
            "{said}"
        );
        assert!(
            lines[1].starts_with(
                "gemm_blas: cublasSgemm_v2 : passed on: its arguments are not valid ("
            ),
            "{said}"
        );
        assert_eq!(lines[2], "gemm_blas: total: 1 multiplied, 1 passed on");
        assert!(
            lines[3].starts_with("gemm_blas:        1 cublasSgemm_v2 multiplied by "),
            "{said}"
        );
        assert_eq!(lines.len(), 5, "{said}");
        return;
    }
    Case::new([1, 0], [21, 34, 13], [2.0, 3.0], 1).is_right::<f32, f32, f32>("cublasSgemm_v2");
    passes_on(
        &HANDLE,
        [0, 0, 4, 4, 4, 4, 4, 3],
        [[1.0_f32; 16].as_ptr(); 5],
    );
}

fn settings_that_are_wrong_are_said_and_ignored() {
    let name = "settings_that_are_wrong_are_said_and_ignored";
    if !is_child() {
        let settings = [
            ("GEMM_BLAS_MATH", "fp64"),
            ("GEMM_BLAS_CHECK", "x"),
            ("GEMM_BLAS_LOG", "/"),
        ];
        let said = again(name, &settings);
        for line in [
            "gemm_blas: GEMM_BLAS_MATH=fp64 is ignored: it is not one of ieee, tf32, split",
            "gemm_blas: GEMM_BLAS_CHECK=x is ignored: it is not a number",
            "gemm_blas: GEMM_BLAS_LOG=/ is ignored: it is not a file that can be written",
        ] {
            assert!(said.contains(line), "{said}");
        }
        return;
    }
    Case::new([1, 0], [21, 34, 13], [2.0, 3.0], 1).is_right::<f32, f32, f32>("cublasSgemm_v2");
}

fn checks_pass_what_is_right() {
    if !is_child() {
        again("checks_pass_what_is_right", &[("GEMM_BLAS_CHECK", "1")]);
        return;
    }
    let one = |transposes| Case::new(transposes, [21, 34, 13], [2.0, 3.0], 1);
    one([1, 0]).is_right::<f32, f32, f32>("cublasSgemm_v2");
    one([0, 1]).is_right::<f64, f64, f64>("cublasDgemm_v2");
    one([1, 0]).is_right::<Bf16, Bf16, f32>("cublasGemmEx");
    Case::new([0, 1], [9, 20, 13], [2.0, 0.0], 3)
        .is_right::<F16, f32, f32>("cublasGemmStridedBatchedEx");
}
