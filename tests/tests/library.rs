//! The library call: `C = alpha * op(A) * op(B) + beta * C`, transposed or not, by the plan that
//! it chooses and by every other, whatever the shape and the layout, on the simulator, on the
//! GPU and by OpenCL; and by the plan that it chooses for every other element type (`types`).

#[path = "../library/types.rs"]
mod types;

use std::process::ExitCode;

use gpu_gemm::choose::candidates;
use gpu_gemm::device::compiled::{self, Module};
use gpu_gemm::device::driver;
use gpu_gemm::gpu_kernels::spec::Tile;
use gpu_gemm::{
    Batch, Bindings, Call, Context, CudaDevice, Device, DeviceFacts, ElementType, GemmError, Input,
    Operand, Output, Plan, Scalar, Shape, Simulator, Transpose, WORKSPACE, gemm,
    gemm_strided_batched,
};
use host::data::{Data, Layout, Matrix, Number, Placement, Problem};
use host::run::guard::{self, GUARD};
use host::verify::{self, Coverage};
use libtest_mimic::Failed;
use tests::built::built;
use tests::devices::Backend;
use tests::{bits, on_gpu, on_opencl, on_simulator};

/// Claims about the call on one device, each by its name.
macro_rules! claims {
    ($($claim:ident),* $(,)?) => {
        [$((stringify!($claim), $claim as fn(&Library) -> Result<(), Failed>)),*]
    };
}

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (name, case) in claims![
        multiplies_transposed_or_not_at_any_edge,
        takes_any_leading_dimension_and_offset,
        follows_alpha_and_beta_and_never_reads_what_they_forbid,
        takes_sums_without_products_and_matrices_without_elements,
        is_proven_on_random_numbers,
        repeats_bit_for_bit,
        multiplies_batches_at_any_strides,
        names_the_argument_that_is_wrong,
    ] {
        let on = |backend, workspace| move || Library::run(backend, workspace, case);
        trials.push(on_simulator(name, on(Backend::Simulator, WORKSPACE / 16)));
        trials.push(on_opencl(name, on(Backend::OpenCl, WORKSPACE / 16)));
        trials.push(on_gpu(name, on(Backend::Gpu, WORKSPACE)));
        let name = format!("{name}_with_little_workspace");
        trials.push(on_gpu(name, on(Backend::Gpu, 0)));
    }
    for (name, case) in types::claims() {
        let on = |backend, workspace| move || Library::run(backend, workspace, case);
        trials.push(on_simulator(&name, on(Backend::Simulator, WORKSPACE / 16)));
        trials.push(on_opencl(&name, on(Backend::OpenCl, WORKSPACE / 16)));
        trials.push(on_gpu(&name, on(Backend::Gpu, WORKSPACE)));
    }
    trials.push(on_simulator("every_plan_is_right", every_plan));
    trials.push(on_gpu("is_right_at_large_sizes", || {
        Library::run(Backend::Gpu, WORKSPACE, large)
    }));
    trials.push(on_gpu("is_right_without_machine_code_too", || {
        let device = &compiled_by_the_driver()?;
        let workspace = WORKSPACE;
        large(&Library { device, workspace })
    }));
    let in_parts = "does_in_parts_what_the_workspace_is_too_small_for";
    trials.push(on_gpu(in_parts, || Library::run(Backend::Gpu, 0, large)));
    trials.push(on_gpu("runs_on_a_stream_of_the_callers", other_stream));
    trials.push(on_gpu("prepares_once_and_then_only_launches", prepared));
    tests::run(trials)
}

/// The first GPU, with kernels that its driver compiles, whether the build has assembled them or
/// not.
fn compiled_by_the_driver() -> Result<Device, Failed> {
    let gpu = driver::probe()?.swap_remove(0);
    let ours = compiled::module_for(gpu.architecture())?;
    let mut ladder = built().filter(|built| built.kernels == "gpu-kernels");
    let built = ladder.find(|built| built.arch.sm() == ours.target());
    let module = Module::of_text(built.ok_or("the tests do not compile for it")?.ptx());
    // SAFETY: these are the kernels of the library.
    let device = unsafe { CudaDevice::open_with(gpu, module)? };
    Ok(Device::Cuda(Box::new(device)))
}

/// The library call on a device, with a workspace of so many bytes.
struct Library<'a> {
    device: &'a Device,
    workspace: usize,
}

impl Library<'_> {
    /// Whether a claim is true of the call on such a device.
    fn run(
        backend: Backend,
        workspace: usize,
        claim: impl FnOnce(&Library) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        backend.run(|device| claim(&Library { device, workspace }))
    }

    /// C, after the product.
    fn multiply(&self, stored: &Stored) -> Result<Matrix<f32>, Failed> {
        let context = Context::new(self.device, self.workspace)?;
        let problem = &stored.problem;
        let Shape { m, n, k } = problem.shape();
        let ((a, a_transpose), (b, b_transpose)) = (&stored.a, &stored.b);
        let (a_there, b_there) = (context.upload(a.buffer())?, context.upload(b.buffer())?);
        let mut c_there = context.upload(problem.c.buffer())?;
        let input = |buffer, matrix: &Matrix<f32>, transpose: &Transpose| {
            let first = matrix.placement().offset.min(matrix.buffer().len());
            Input::from(buffer).starting_at(first).with(*transpose)
        };
        let c_first = problem.c.placement().offset.min(problem.c.buffer().len());
        // SAFETY: the buffers hold the matrices until `download` has waited for the product.
        unsafe {
            gemm(
                &context,
                problem.alpha,
                input(&a_there, a, a_transpose),
                a.leading(),
                input(&b_there, b, b_transpose),
                b.leading(),
                problem.beta,
                Output::from(&mut c_there).starting_at(c_first),
                problem.c.leading(),
                m,
                n,
                k,
            )?;
        }
        let after = context.download(&c_there)?;
        for (name, before, buffer) in [('A', a, &a_there), ('B', b, &b_there)] {
            let now = context.download(buffer)?;
            assert!(bits(before.buffer()) == bits(&now), "{name} was written");
        }
        let written = problem.c.first_padding_difference(&after);
        assert_eq!(written, None, "an element of C's buffer");
        Ok(problem.c.with_buffer(after))
    }
}

/// A problem whose matrices are stored transposed or not, with the padding and the offset that
/// they have in it.
struct Stored {
    problem: Problem<f32>,
    a: (Matrix<f32>, Transpose),
    b: (Matrix<f32>, Transpose),
}

impl Stored {
    fn new(
        problem: Problem<f32>,
        transposes: (Transpose, Transpose),
        padding: usize,
        offset: usize,
    ) -> Result<Stored, Failed> {
        let stored = |matrix: &Matrix<f32>, transpose| -> Result<Matrix<f32>, Failed> {
            let placement = |columns| Placement {
                offset,
                leading: columns + padding,
            };
            Ok(match transpose {
                Transpose::No => matrix.moved_to(placement(matrix.columns()))?,
                Transpose::Yes => {
                    let (rows, columns) = (matrix.columns(), matrix.rows());
                    Matrix::from_rows(rows, columns, placement(columns), |row, elements| {
                        for (column, element) in elements.iter_mut().enumerate() {
                            *element = matrix.row(column)[row];
                        }
                    })?
                }
            })
        };
        Ok(Stored {
            a: (stored(&problem.a, transposes.0)?, transposes.0),
            b: (stored(&problem.b, transposes.1)?, transposes.1),
            problem,
        })
    }

    fn name(&self) -> String {
        let letter = |transpose| match transpose {
            Transpose::No => 'N',
            Transpose::Yes => 'T',
        };
        let shape = self.problem.shape();
        format!("{}{} {shape}", letter(self.a.1), letter(self.b.1))
    }

    /// Exact, on small integers.
    fn exact(&self, library: &Library) -> Result<(), Failed> {
        let c = library
            .multiply(self)
            .map_err(|failed| format!("{}: {failed:?}", self.name()))?;
        self.is_exact(&c)
    }

    fn is_exact(&self, c: &Matrix<f32>) -> Result<(), Failed> {
        let coverage = Coverage::of(self.problem.shape(), 1);
        verify::exact(&self.problem, c, TILE, coverage)
            .map_err(|failure| format!("{}: {failure}", self.name()))?;
        Ok(())
    }
}

/// Where mistakes are likely: any tile will do, since all elements are compared.
const TILE: Tile = Tile {
    m: 128,
    n: 128,
    k: 8,
};

fn each_transposition() -> impl Iterator<Item = (Transpose, Transpose)> {
    Transpose::ALL
        .into_iter()
        .flat_map(|a| Transpose::ALL.into_iter().map(move |b| (a, b)))
}

fn integers(shape: Shape, alpha: f32, beta: f32) -> Result<Problem<f32>, Failed> {
    let data = Data::SmallIntegers { largest: 4 };
    let layout = Layout::padded(shape, [0, 0, 3], [0, 0, 1]);
    Ok(Problem::random(shape, layout, data, 1, alpha, beta)?)
}

/// Around the edges of tiles, flat and deep.
const SHAPES: [(usize, usize, usize); 14] = [
    (1, 1, 1),
    (2, 3, 5),
    (16, 128, 16),
    (17, 33, 129),
    (1, 257, 63),
    (263, 1, 67),
    (128, 128, 8),
    (127, 129, 9),
    (256, 128, 64),
    (131, 137, 139),
    (35, 300, 40),
    (3, 5, 20_011),
    (64, 32, 1000),
    (257, 384, 24),
];

fn multiplies_transposed_or_not_at_any_edge(library: &Library) -> Result<(), Failed> {
    for (m, n, k) in SHAPES {
        for transposes in each_transposition() {
            let problem = integers(Shape { m, n, k }, 1.0, 0.0)?;
            Stored::new(problem, transposes, 0, 0)?.exact(library)?;
        }
    }
    Ok(())
}

fn takes_any_leading_dimension_and_offset(library: &Library) -> Result<(), Failed> {
    for (m, n, k) in [(128, 128, 32), (130, 61, 37)] {
        for transposes in each_transposition() {
            for (padding, offset) in [(0, 1), (0, 2), (0, 4), (1, 0), (3, 3), (4, 0), (6, 8)] {
                let problem = integers(Shape { m, n, k }, 2.0, -1.0)?;
                Stored::new(problem, transposes, padding, offset)?
                    .exact(library)
                    .map_err(|failed| format!("padding {padding}, offset {offset}: {failed:?}"))?;
            }
        }
    }
    Ok(())
}

/// `Problem::random` leaves NaNs where alpha and beta say that nothing is read.
fn follows_alpha_and_beta_and_never_reads_what_they_forbid(
    library: &Library,
) -> Result<(), Failed> {
    for (m, n, k) in [(128, 256, 16), (130, 70, 300)] {
        for transposes in each_transposition() {
            for alpha in [-2.0, 0.0, 1.0] {
                for beta in [-1.0, 0.0, 1.0, 2.0] {
                    let problem = integers(Shape { m, n, k }, alpha, beta)?;
                    Stored::new(problem, transposes, 0, 0)?
                        .exact(library)
                        .map_err(|failed| format!("alpha {alpha}, beta {beta}: {failed:?}"))?;
                }
            }
        }
    }
    Ok(())
}

fn takes_sums_without_products_and_matrices_without_elements(
    library: &Library,
) -> Result<(), Failed> {
    for (m, n, k) in [(33, 20, 0), (300, 200, 0), (0, 5, 7), (5, 0, 7), (0, 0, 0)] {
        for transposes in each_transposition() {
            for beta in [0.0, 1.0, -2.0] {
                let problem = integers(Shape { m, n, k }, 1.0, beta)?;
                // A leading dimension is at least 1, as in BLAS.
                Stored::new(problem, transposes, 1, 0)?.exact(library)?;
            }
        }
    }
    Ok(())
}

fn is_proven_on_random_numbers(library: &Library) -> Result<(), Failed> {
    for (m, n, k) in [(131, 137, 139), (40, 50, 3001), (256, 128, 500)] {
        let shape = Shape { m, n, k };
        for transposes in each_transposition() {
            for data in [Data::Uniform, Data::Normal] {
                let layout = Layout::compact(shape);
                let problem = Problem::random(shape, layout, data, 7, 1.5, -0.5)?;
                let stored = Stored::new(problem, transposes, 0, 0)?;
                let c = library.multiply(&stored)?;
                let coverage = Coverage::of(shape, 1);
                verify::proven(&stored.problem, &c, TILE, data, coverage)
                    .map_err(|failure| format!("{}: {failure}", stored.name()))?;
            }
        }
    }
    Ok(())
}

fn repeats_bit_for_bit(library: &Library) -> Result<(), Failed> {
    let shape = Shape {
        m: 300,
        n: 200,
        k: 1003,
    };
    for transposes in each_transposition() {
        let layout = Layout::compact(shape);
        let problem = Problem::random(shape, layout, Data::Normal, 23, 1.0, 1.0)?;
        let stored = Stored::new(problem, transposes, 0, 0)?;
        let first = bits(library.multiply(&stored)?.buffer());
        for _ in 0..2 {
            let again = bits(library.multiply(&stored)?.buffer());
            assert!(again == first, "{}: two runs differ", stored.name());
        }
    }
    Ok(())
}

/// Of three matrices in one memory: where each product's begin, and the length of all of them.
#[derive(Clone, Copy, Debug)]
struct Strides {
    a: usize,
    b: usize,
    c: usize,
    ldc: usize,
}

/// One after the other, with gaps, all of one matrix, and C side by side.
fn strides(Shape { m, n, k }: Shape, batch: usize) -> [Strides; 4] {
    let compact = Strides {
        a: m * k,
        b: k * n,
        c: m * n,
        ldc: n,
    };
    [
        compact,
        Strides {
            a: m * k + 5,
            b: k * n + 4,
            c: m * n + 3,
            ..compact
        },
        Strides { a: 0, ..compact },
        Strides {
            b: 0,
            c: n + 1,
            ldc: batch.max(1) * (n + 1),
            ..compact
        },
    ]
}

/// Integers, each product of which is compared, and of C everything that is not in a product.
fn multiplies_batches_at_any_strides(library: &Library) -> Result<(), Failed> {
    let context = Context::new(library.device, library.workspace)?;
    for ((m, n, k), batch) in [
        ((33, 70, 19), 7),
        ((64, 64, 64), 3),
        ((130, 36, 40), 1),
        ((5, 6, 7), 0),
        ((16, 300, 0), 2),
    ] {
        let shape = Shape { m, n, k };
        for (transposes, strides) in
            each_transposition().flat_map(|both| strides(shape, batch).map(|of| (both, of)))
        {
            let of_batch = |one: usize, stride: usize| stride * batch.max(1) + one;
            let number = |index: usize| ((index * 7 + index / 11) % 9) as f32 - 4.0;
            let numbers = |length: usize| (0..length).map(number).collect::<Vec<f32>>();
            let a = numbers(of_batch(m * k, strides.a));
            let b = numbers(of_batch(k * n, strides.b));
            let c = numbers(of_batch(m * strides.ldc, strides.c));
            let (a_there, b_there) = (context.upload(&a)?, context.upload(&b)?);
            let mut c_there = context.upload(&c)?;
            let (_, lda) = transposes.0.of((m, k));
            let (_, ldb) = transposes.1.of((k, n));
            // SAFETY: the buffers hold the matrices until `download` has waited.
            unsafe {
                gemm_strided_batched(
                    &context,
                    2.0,
                    Input::from(&a_there).with(transposes.0),
                    lda.max(1),
                    strides.a,
                    Input::from(&b_there).with(transposes.1),
                    ldb.max(1),
                    strides.b,
                    -1.0,
                    &mut c_there,
                    strides.ldc,
                    strides.c,
                    m,
                    n,
                    k,
                    batch,
                )?;
            }
            let mut want = c.clone();
            for product in 0..batch {
                for (row, col) in (0..m).flat_map(|row| (0..n).map(move |col| (row, col))) {
                    let at = |transpose: Transpose, (row, col), leading| match transpose {
                        Transpose::No => row * leading + col,
                        Transpose::Yes => col * leading + row,
                    };
                    let of_a = |l| a[product * strides.a + at(transposes.0, (row, l), lda)];
                    let of_b = |l| b[product * strides.b + at(transposes.1, (l, col), ldb)];
                    let sum: f32 = (0..k).map(|l| of_a(l) * of_b(l)).sum();
                    let place = product * strides.c + row * strides.ldc + col;
                    want[place] = 2.0 * sum - want[place];
                }
            }
            let got = context.download(&c_there)?;
            let wrong = got.iter().zip(&want).position(|(got, want)| got != want);
            assert_eq!(
                wrong, None,
                "{batch} x {shape}, {transposes:?}, {strides:?}"
            );
        }
    }
    Ok(())
}

/// Every candidate, not only the chosen one, with guard bands around C and the workspace.
fn every_plan() -> Result<(), Failed> {
    let facts = DeviceFacts::simulator();
    // In the last, tiles of 192 leave an N remainder.
    for (m, n, k) in [(257, 140, 45), (128, 128, 40), (130, 300, 20)] {
        for transposes in each_transposition() {
            let problem = integers(Shape { m, n, k }, 2.0, 1.0)?;
            let stored = Stored::new(problem, transposes, 0, 1)?;
            let operand = |(matrix, transpose): &(Matrix<f32>, Transpose)| {
                let address = matrix.elements().as_ptr() as usize;
                Operand::at(address, matrix.leading(), ElementType::F32, *transpose)
            };
            let call = Call {
                shape: stored.problem.shape(),
                a: operand(&stored.a),
                b: operand(&stored.b),
                ldc: stored.problem.c.leading(),
                batch: Batch::ONE,
            };
            let plans = candidates(call, &facts);
            assert!(!plans.is_empty());
            for plan in plans {
                let name = format!("{} {:?}", plan.variant().name, plan.decomposition());
                let named = |failed| format!("{name}: {failed:?}");
                let c = simulated(&stored, &plan).map_err(named)?;
                stored.is_exact(&c).map_err(named)?;
            }
        }
    }
    Ok(())
}

/// C, by this plan on the simulator.
fn simulated(stored: &Stored, plan: &Plan) -> Result<Matrix<f32>, Failed> {
    let problem = &stored.problem;
    let before = problem.c.buffer();
    let mut c = guard::surround(before);
    let floats = plan.workspace_bytes().div_ceil(size_of::<f32>());
    // Its start is a multiple of 16 bytes, as kernels require of copies.
    let mut workspace = guard::surround(&vec![f32::POISON; floats + 4]);
    let skew = workspace[GUARD..].as_ptr().align_offset(16);
    let first = |matrix: &Matrix<f32>| matrix.elements().as_ptr().cast_mut().cast::<u8>();
    let bindings = Bindings {
        alpha: Scalar::F32(problem.alpha),
        beta: Scalar::F32(problem.beta),
        a: first(&stored.a.0),
        b: first(&stored.b.0),
        c: c[GUARD + problem.c.placement().offset..]
            .as_mut_ptr()
            .cast(),
        workspace: workspace[GUARD + skew..].as_mut_ptr().cast(),
    };
    // SAFETY: the matrices are those of the plan's call, the workspace is as large as the plan
    // requires, and all of them outlive the launches.
    unsafe { gpu_gemm::run(&Simulator::default().observed(&|| ()), plan, &bindings)? };
    let bands = |name, buffer: &[f32], length| {
        guard::check_bands(name, &buffer[..GUARD], &buffer[GUARD + length..])
            .map_err(|trespass| trespass.to_string())
    };
    bands('C', &c, before.len())?;
    bands('W', &workspace, floats + 4)?;
    let c = c[GUARD..GUARD + before.len()].to_vec();
    guard::check_padding(&problem.c, &c).map_err(|trespass| trespass.to_string())?;
    Ok(problem.c.with_buffer(c))
}

fn large(library: &Library) -> Result<(), Failed> {
    for (m, n, k) in [
        (1000, 1000, 1000),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (4096, 16, 4096),
        (16, 4096, 4096),
        (35, 8457, 1024),
        (700, 5124, 2047),
        (4096, 4096, 256),
        (64, 8, 500_000),
    ] {
        for transposes in each_transposition() {
            let problem = integers(Shape { m, n, k }, 1.0, 1.0)?;
            Stored::new(problem, transposes, 0, 0)?.exact(library)?;
        }
    }
    Ok(())
}

fn names_the_argument_that_is_wrong(library: &Library) -> Result<(), Failed> {
    let context = Context::new(library.device, 0)?;
    let (a, b) = (context.upload(&[1.0; 12])?, context.upload(&[1.0; 12])?);
    let mut c = context.upload(&[1.0; 12])?;
    let mut message = |lda, ldb, ldc, n| {
        // SAFETY: nothing is launched, or what is launched is waited for when the context goes.
        let result = unsafe { gemm(&context, 1.0, &a, lda, &b, ldb, 0.0, &mut c, ldc, 3, n, 4) };
        result.err().map(|error| error.to_string())
    };
    for (lda, ldb, ldc, n, begins) in [
        (3, 3, 3, 3, "lda is 3"),
        (4, 2, 3, 3, "ldb is 2"),
        (4, 3, 2, 3, "ldc is 2"),
        (5, 3, 3, 3, "A, stored as 3 x 4 with lda = 5, takes 14"),
        (4, 4, 4, 4, "B, stored as 4 x 4 with ldb = 4, takes 16"),
        (4, 3, 6, 3, "C, stored as 3 x 3 with ldc = 6, takes 15"),
    ] {
        let said = message(lda, ldb, ldc, n).ok_or("nothing was wrong")?;
        assert!(said.starts_with(begins), "{said}");
    }
    assert_eq!(message(4, 3, 3, 3), None);
    // Two products, in memory for less.
    for (strides, begins) in [
        (
            [1, 0, 3],
            "A, 2 matrices stored as 3 x 4 with lda = 4 and stride_a = 1, takes 13",
        ),
        (
            [0, 4, 3],
            "B, 2 matrices stored as 4 x 3 with ldb = 3 and stride_b = 4, takes 16",
        ),
        (
            [0, 0, 4],
            "C, 2 matrices stored as 3 x 3 with ldc = 3 and stride_c = 4, takes 13",
        ),
        (
            [0, 0, 2],
            "C, 2 matrices stored as 3 x 3 with ldc = 3 and stride_c = 2, overlaps",
        ),
    ] {
        let [of_a, of_b, of_c] = strides;
        // SAFETY: nothing is launched.
        let refused = unsafe {
            gemm_strided_batched(
                &context, 1.0, &a, 4, of_a, &b, 3, of_b, 0.0, &mut c, 3, of_c, 3, 3, 4, 2,
            )
        };
        let said = refused.err().ok_or("nothing was wrong")?.to_string();
        assert!(said.starts_with(begins), "{said}");
    }
    // A matrix in the memory of another device.
    let elsewhere = [1.0f32; 12];
    let there = match library.device {
        Device::Simulator(_) | Device::OpenCl(_) | Device::Several(_) => {
            Input::at(cust::memory::DevicePointer::null(), 12)
        }
        Device::Cuda(_) => Input::from(&elsewhere[..]),
    };
    // SAFETY: nothing is launched.
    let refused = unsafe { gemm(&context, 1.0, there, 4, &b, 3, 0.0, &mut c, 3, 3, 3, 4) };
    let is_wrong_memory = matches!(refused, Err(GemmError::WrongMemory { matrix: 'A', .. }));
    assert!(is_wrong_memory, "{refused:?}");
    Ok(())
}

fn other_stream() -> Result<(), Failed> {
    let device = CudaDevice::open(0)?;
    // The context is current since the device was opened.
    let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None)?;
    let mut context = Context::on_stream(&device, &stream, 0)?;
    let shape = Shape::cube(64);
    context.prepare(ElementType::F32, shape, Transpose::No, Transpose::No)?;
    let ones = vec![1.0f32; 64 * 64];
    let (a, b) = (context.upload(&ones)?, context.upload(&ones)?);
    let mut c = context.upload(&ones)?;
    // SAFETY: the buffers live until `download` has waited for the product.
    unsafe { gemm(&context, 1.0, &a, 64, &b, 64, 1.0, &mut c, 64, 64, 64, 64)? };
    // A sum of 64 ones, and one.
    assert_eq!(context.download(&c)?, [65.0; 64 * 64]);
    Ok(())
}

/// Compiles and allocates before the call, and then neither: the free memory does not change.
fn prepared() -> Result<(), Failed> {
    let device = Device::Cuda(Box::new(CudaDevice::open(0)?));
    let mut context = Context::new(&device, 0)?;
    let shape = Shape::cube(1000);
    context.prepare(ElementType::F32, shape, Transpose::No, Transpose::No)?;
    let workspace = context.workspace_bytes();
    let ones = vec![1.0f32; 1_000_000];
    let (a, b) = (context.upload(&ones)?, context.upload(&ones)?);
    let mut c = context.upload(&ones)?;
    let (before, _) = cust::memory::mem_get_info()?;
    // SAFETY: the buffers live until `synchronize` has waited for the product.
    unsafe {
        gemm(
            &context, 1.0, &a, 1000, &b, 1000, 0.0, &mut c, 1000, 1000, 1000, 1000,
        )?
    };
    context.synchronize()?;
    let (after, _) = cust::memory::mem_get_info()?;
    assert_eq!((before, workspace), (after, context.workspace_bytes()));
    Ok(())
}
