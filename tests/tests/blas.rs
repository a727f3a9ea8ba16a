//! The library call: `C = alpha * op(A) * op(B) + beta * C`, transposed or not, by the plan that it chooses and by every other, whatever
//! the shape and the layout; on the simulator, and through [`blas::gemm`] on the GPU.

use std::process::ExitCode;

use gpu_kernels::spec::Tile;
use host::blas::{self, Call, Context, Operand, Plan, Processor, Target, Transpose};
use host::choose::{self, Rates};
use host::device::simulator::Product;
use host::device::{CudaDevice, DeviceError, Simulator};
use host::element::Element;
use host::problem::{Data, Layout, Matrix, Placement, Problem, Shape};
use host::verify::{self, Coverage};
use libtest_mimic::Failed;
use tests::{on_gpu, on_simulator};

/// A claim about the call on one device.
type Case = fn(&dyn Multiplies) -> Result<(), Failed>;

fn main() -> ExitCode {
    let cases: [(&str, Case); 6] = [
        ("multiplies_transposed_or_not_at_any_edge", edges),
        ("takes_any_leading_dimension_and_offset", layouts),
        (
            "follows_alpha_and_beta_and_never_reads_what_they_forbid",
            scalars,
        ),
        (
            "takes_sums_without_products_and_matrices_without_elements",
            empty,
        ),
        ("is_proven_on_random_numbers", random),
        ("repeats_bit_for_bit", repeats),
    ];
    let mut trials = Vec::new();
    for (name, case) in cases {
        trials.push(on_simulator(name, move || case(&Simulated)));
        trials.push(on_gpu(name, move || case(&OnGpu::open(blas::WORKSPACE)?)));
        let name = format!("{name}_with_little_workspace");
        trials.push(on_gpu(name, move || case(&OnGpu::open(0)?)));
    }
    trials.push(on_simulator("every_plan_is_right", every_plan));
    trials.push(on_gpu("is_right_at_large_sizes", large));
    trials.push(on_gpu(
        "does_in_parts_what_the_workspace_is_too_small_for",
        || large_transposed(&OnGpu::open(0)?),
    ));
    trials.push(on_gpu("names_the_argument_that_is_wrong", wrong_arguments));
    trials.push(on_gpu("runs_on_a_stream_of_the_callers", other_stream));
    tests::run(trials)
}

/// Somewhere to multiply.
trait Multiplies {
    /// C, after its product.
    fn multiply(&self, product: &Product<'_, f32>) -> Result<Matrix<f32>, Failed>;
}

/// The simulator, by the plan that is chosen for it.
struct Simulated;

impl Multiplies for Simulated {
    fn multiply(&self, product: &Product<'_, f32>) -> Result<Matrix<f32>, Failed> {
        simulate(product, |call| {
            choose::choose(
                call,
                &Processor::simulator(),
                &Rates::H200,
                None,
                usize::MAX,
            )
            .ok()
        })
    }
}

fn simulate(
    product: &Product<'_, f32>,
    plan: impl FnOnce(Call) -> Option<Plan<'static>>,
) -> Result<Matrix<f32>, Failed> {
    let simulator = Simulator::default();
    // Any error will do: there is a plan for every call here.
    let plan = |call| plan(call).ok_or(DeviceError::NoDevice);
    Ok(simulator.gemm(product, plan, &|| ())?.c)
}

/// The GPU, with a workspace of so many bytes.
struct OnGpu {
    device: CudaDevice,
    workspace: usize,
}

impl OnGpu {
    fn open(workspace: usize) -> Result<OnGpu, Failed> {
        Ok(OnGpu {
            device: CudaDevice::open(0)?,
            workspace,
        })
    }
}

impl Multiplies for OnGpu {
    fn multiply(&self, product: &Product<'_, f32>) -> Result<Matrix<f32>, Failed> {
        let context = Context::new(&self.device, self.workspace)?;
        let Shape { m, n, k } = product.shape();
        let (a, b, c) = (
            context.upload(product.a.0.buffer())?,
            context.upload(product.b.0.buffer())?,
            context.upload(product.c.buffer())?,
        );
        let operand = |buffer: &cust::memory::DeviceBuffer<f32>,
                       (matrix, transpose): (&Matrix<f32>, Transpose)| {
            let start = buffer
                .as_device_ptr()
                .wrapping_add(matrix.placement().offset);
            Operand::at(start, matrix.extent()).with(transpose)
        };
        let c_start = c.as_device_ptr().wrapping_add(product.c.placement().offset);
        // SAFETY: the buffers hold the matrices until `download` has waited for the product.
        unsafe {
            blas::gemm(
                &context,
                product.alpha,
                operand(&a, product.a),
                product.a.0.leading(),
                operand(&b, product.b),
                product.b.0.leading(),
                product.beta,
                Target::at(c_start, product.c.extent()),
                product.c.leading(),
                m,
                n,
                k,
            )?;
        }
        let after = context.download(&c)?;
        for (name, before, buffer) in [('A', product.a.0, &a), ('B', product.b.0, &b)] {
            let now = context.download(buffer)?;
            let same = before.buffer().iter().map(|one| one.bits());
            if !same.eq(now.iter().map(|one| one.bits())) {
                return Err(format!("{name} was written").into());
            }
        }
        if let Some(index) = product.c.first_padding_difference(&after) {
            return Err(format!("element {index} of C's buffer was written").into());
        }
        Ok(product.c.with_buffer(after))
    }
}

/// A problem whose matrices are stored transposed or not, with the padding and the offset that they have in it.
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

    fn product(&self) -> Product<'_, f32> {
        Product {
            alpha: self.problem.alpha,
            a: (&self.a.0, self.a.1),
            b: (&self.b.0, self.b.1),
            beta: self.problem.beta,
            c: &self.problem.c,
        }
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
    fn exact(&self, device: &dyn Multiplies) -> Result<(), Failed> {
        let c = device
            .multiply(&self.product())
            .map_err(|failed| format!("{}: {failed:?}", self.name()))?;
        self.is_exact(&c)
    }

    fn is_exact(&self, c: &Matrix<f32>) -> Result<(), Failed> {
        let coverage = Coverage::of(self.problem.shape());
        verify::exact(&self.problem, c, TILE, coverage)
            .map_err(|failure| format!("{}: {failure}", self.name()))?;
        Ok(())
    }
}

/// Where mistakes would be: any tile will do, since all elements are compared.
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

fn edges(device: &dyn Multiplies) -> Result<(), Failed> {
    for (m, n, k) in SHAPES {
        for transposes in each_transposition() {
            let problem = integers(Shape { m, n, k }, 1.0, 0.0)?;
            Stored::new(problem, transposes, 0, 0)?.exact(device)?;
        }
    }
    Ok(())
}

fn layouts(device: &dyn Multiplies) -> Result<(), Failed> {
    for (m, n, k) in [(128, 128, 32), (130, 61, 37)] {
        for transposes in each_transposition() {
            for (padding, offset) in [(0, 1), (0, 2), (0, 4), (1, 0), (3, 3), (4, 0), (6, 8)] {
                let problem = integers(Shape { m, n, k }, 2.0, -1.0)?;
                Stored::new(problem, transposes, padding, offset)?
                    .exact(device)
                    .map_err(|failed| format!("padding {padding}, offset {offset}: {failed:?}"))?;
            }
        }
    }
    Ok(())
}

/// `Problem::random` leaves NaNs where alpha and beta say that nothing is read.
fn scalars(device: &dyn Multiplies) -> Result<(), Failed> {
    for (m, n, k) in [(128, 256, 16), (130, 70, 300)] {
        for transposes in each_transposition() {
            for alpha in [-2.0, 0.0, 1.0] {
                for beta in [-1.0, 0.0, 1.0, 2.0] {
                    let problem = integers(Shape { m, n, k }, alpha, beta)?;
                    Stored::new(problem, transposes, 0, 0)?
                        .exact(device)
                        .map_err(|failed| format!("alpha {alpha}, beta {beta}: {failed:?}"))?;
                }
            }
        }
    }
    Ok(())
}

fn empty(device: &dyn Multiplies) -> Result<(), Failed> {
    for (m, n, k) in [(33, 20, 0), (300, 200, 0), (0, 5, 7), (5, 0, 7), (0, 0, 0)] {
        for transposes in each_transposition() {
            for beta in [0.0, 1.0, -2.0] {
                let problem = integers(Shape { m, n, k }, 1.0, beta)?;
                // A leading dimension is at least 1, as in BLAS.
                Stored::new(problem, transposes, 1, 0)?.exact(device)?;
            }
        }
    }
    Ok(())
}

fn random(device: &dyn Multiplies) -> Result<(), Failed> {
    for (m, n, k) in [(131, 137, 139), (40, 50, 3001), (256, 128, 500)] {
        let shape = Shape { m, n, k };
        for transposes in each_transposition() {
            for data in [Data::Uniform, Data::Normal] {
                let layout = Layout::compact(shape);
                let problem = Problem::random(shape, layout, data, 7, 1.5, -0.5)?;
                let stored = Stored::new(problem, transposes, 0, 0)?;
                let c = device.multiply(&stored.product())?;
                let coverage = Coverage::of(shape);
                verify::proven(&stored.problem, &c, TILE, data, coverage)
                    .map_err(|failure| format!("{}: {failure}", stored.name()))?;
            }
        }
    }
    Ok(())
}

fn repeats(device: &dyn Multiplies) -> Result<(), Failed> {
    let shape = Shape {
        m: 300,
        n: 200,
        k: 1003,
    };
    let bits = |c: Matrix<f32>| -> Vec<u64> { c.buffer().iter().map(|one| one.bits()).collect() };
    for transposes in each_transposition() {
        let layout = Layout::compact(shape);
        let problem = Problem::random(shape, layout, Data::Normal, 23, 1.0, 1.0)?;
        let stored = Stored::new(problem, transposes, 0, 0)?;
        let first = bits(device.multiply(&stored.product())?);
        for _ in 0..2 {
            if bits(device.multiply(&stored.product())?) != first {
                return Err(format!("{}: two runs differ", stored.name()).into());
            }
        }
    }
    Ok(())
}

/// Every candidate, not only the chosen one.
fn every_plan() -> Result<(), Failed> {
    let processor = Processor::simulator();
    // In the last, columns are left over by tiles of 192.
    for (m, n, k) in [(257, 140, 45), (128, 128, 40), (130, 300, 20)] {
        for transposes in each_transposition() {
            let problem = integers(Shape { m, n, k }, 2.0, 1.0)?;
            let stored = Stored::new(problem, transposes, 0, 1)?;
            let mut count = 0;
            loop {
                let mut name = None;
                let nth = |call| {
                    let plan = *choose::candidates(call, &processor).get(count)?;
                    name = Some(format!("{} {:?}", plan.variant().name, plan.sharing()));
                    Some(plan)
                };
                let c = simulate(&stored.product(), nth);
                let Some(name) = name else {
                    break;
                };
                let named = |failed| format!("{name}: {failed:?}");
                stored.is_exact(&c.map_err(named)?).map_err(named)?;
                count += 1;
            }
            if count == 0 {
                return Err("there is no plan at all".into());
            }
        }
    }
    Ok(())
}

fn large() -> Result<(), Failed> {
    large_transposed(&OnGpu::open(blas::WORKSPACE)?)
}

fn large_transposed(device: &dyn Multiplies) -> Result<(), Failed> {
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
            Stored::new(problem, transposes, 0, 0)?.exact(device)?;
        }
    }
    Ok(())
}

fn wrong_arguments() -> Result<(), Failed> {
    let device = CudaDevice::open(0)?;
    let context = Context::new(&device, 0)?;
    let (a, b) = (context.upload(&[1.0; 12])?, context.upload(&[1.0; 12])?);
    let mut c = context.upload(&[1.0; 12])?;
    let mut message = |lda, ldb, ldc, n| {
        // SAFETY: nothing is launched, or what is launched is waited for when the context goes.
        let result =
            unsafe { blas::gemm(&context, 1.0, &a, lda, &b, ldb, 0.0, &mut c, ldc, 3, n, 4) };
        result.err().map(|error| error.to_string())
    };
    for (said, begins) in [
        (message(3, 3, 3, 3), "lda is 3"),
        (message(4, 2, 3, 3), "ldb is 2"),
        (message(4, 3, 2, 3), "ldc is 2"),
        (
            message(5, 3, 3, 3),
            "A, stored as 3 x 4 with lda = 5, takes 14",
        ),
        (
            message(4, 4, 4, 4),
            "B, stored as 4 x 4 with ldb = 4, takes 16",
        ),
        (
            message(4, 3, 6, 3),
            "C, stored as 3 x 3 with ldc = 6, takes 15",
        ),
    ] {
        let said = said.ok_or("nothing was wrong")?;
        if !said.starts_with(begins) {
            return Err(format!("`{said}` does not begin with `{begins}`").into());
        }
    }
    match message(4, 3, 3, 3) {
        None => Ok(()),
        Some(wrong) => Err(wrong.into()),
    }
}

fn other_stream() -> Result<(), Failed> {
    let device = CudaDevice::open(0)?;
    // The context is current since the device was opened.
    let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None)?;
    let mut context = Context::on_stream(&device, &stream, 0)?;
    let shape = Shape::cube(64);
    context.reserve(shape, Transpose::No, Transpose::No)?;
    let ones = vec![1.0f32; 64 * 64];
    let (a, b) = (context.upload(&ones)?, context.upload(&ones)?);
    let mut c = context.upload(&ones)?;
    // SAFETY: the buffers live until `download` has waited for the product.
    unsafe { blas::gemm(&context, 1.0, &a, 64, &b, 64, 1.0, &mut c, 64, 64, 64, 64)? };
    match context.download(&c)?.iter().all(|&sum| sum == 65.0) {
        true => Ok(()),
        false => Err("a sum of 64 ones and one is not 65".into()),
    }
}
