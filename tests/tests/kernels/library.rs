//! The library call: `C = alpha * op(A) * op(B) + beta * C`, for every data type, transposed or
//! not, whatever the shape and the layout, on the simulator, on the GPU and by OpenCL, checked
//! as the program checks results ([`super::problem`]).

use std::marker::PhantomData;

use gpu_gemm::device::compiled::{self, Module};
use gpu_gemm::device::driver;
use gpu_gemm::{
    Bf16, Call, Context, CudaDevice, DataType, Device, E4m3, Element, ElementType, F16, GemmError,
    Input, MultipliesInto, Output, Shape, Transpose, WORKSPACE, gemm, gemm_strided_batched,
};
use libtest_mimic::{Failed, Trial};
use tests::built::{LADDER, built};
use tests::devices::Backend;
use tests::{Tier, bits, on_gpu};
use verification::data::{Data, Matrix, Number, Problem, Storage};
use verification::verify::{Coverage, ErrorModel};

use super::problem::{integers, is_right};

pub fn trials() -> Vec<Trial> {
    let mut trials = trials_of::<f32, f32>();
    trials.extend(trials_of::<f64, f64>());
    trials.extend(trials_of::<i32, i32>());
    trials.extend(trials_of::<i8, i32>());
    trials.extend(trials_of::<E4m3, f32>());
    trials.extend(trials_of::<E4m3, Bf16>());
    trials.extend(trials_of::<Bf16, Bf16>());
    trials.extend(trials_of::<F16, F16>());
    trials.extend(trials_of::<Bf16, f32>());
    trials.extend(trials_of::<F16, f32>());
    for backend in [Backend::Simulator, Backend::OpenCl, Backend::Gpu] {
        let test = move || backend.run(names_the_argument_that_is_wrong);
        let name = "library::names_the_argument_that_is_wrong";
        trials.extend(tests::trial(tier_on(backend), backend, name, test));
    }
    trials.push(on_gpu("library::is_right_at_large_sizes", || {
        Backend::Gpu.run(|device| large(device, WORKSPACE))
    }));
    trials.push(on_gpu("library::is_right_without_machine_code_too", || {
        large(&compiled_by_the_driver()?, WORKSPACE)
    }));
    let in_parts = "library::does_in_parts_what_the_workspace_is_too_small_for";
    trials.push(on_gpu(in_parts, || {
        Backend::Gpu.run(|device| large(device, 0))
    }));
    trials.push(on_gpu(
        "library::runs_on_a_stream_of_the_callers",
        other_stream,
    ));
    trials.push(on_gpu(
        "library::prepares_once_and_then_only_launches",
        prepared,
    ));
    trials
}

/// The first tier that has a claim on a device. Kernels take PoCL seconds to compile: in the quick
/// tier it runs those of `gemm.rs`, and the program's tests with OpenCL call the library.
fn tier_on(backend: Backend) -> Tier {
    match backend {
        Backend::OpenCl => Tier::Exhaustive,
        _ => Tier::Quick,
    }
}

/// The claims about a type.
fn trials_of<T: Number + MultipliesInto<C>, C: Number>() -> Vec<Trial> {
    type Claim<T, C> = fn(&Library<'_, T, C>) -> Result<(), Failed>;
    macro_rules! claims {
        ($($claim:ident),* $(,)?) => {
            vec![$((stringify!($claim), (|library| library.$claim()) as Claim<T, C>)),*]
        };
    }
    let mut claims = claims![
        multiplies_transposed_or_not_at_any_edge,
        takes_any_leading_dimension_and_offset,
        follows_alpha_and_beta_and_never_reads_what_they_forbid,
        takes_sums_without_products_and_matrices_without_elements,
        multiplies_batches_at_any_strides,
        cuts_what_the_workspace_is_too_small_for,
    ];
    if C::TYPE != ElementType::I32 {
        claims.extend(claims![rounds_as_its_type_does]);
    }
    if T::TYPE.bytes() == 2 && C::TYPE.bytes() == 2 {
        claims.extend(claims![
            refuses_long_sums_that_the_workspace_is_too_small_for
        ]);
    }
    let mut trials = Vec::new();
    for (claim, case) in claims {
        for tier in [Tier::Quick, Tier::Exhaustive] {
            let mut add = |backend: Backend, name: String, workspace| {
                let test = move || {
                    backend.run(|device| {
                        case(&Library {
                            device,
                            workspace,
                            tier: match backend {
                                Backend::OpenCl => Tier::Quick,
                                _ => tier,
                            },
                            types: PhantomData,
                        })
                    })
                };
                trials.extend(tests::trial(tier, backend, name, test));
            };
            let name = format!("library::{}::{claim}", T::DATA_TYPE);
            add(Backend::Simulator, name.clone(), WORKSPACE / 16);
            if tier == tier_on(Backend::OpenCl) {
                add(Backend::OpenCl, name.clone(), WORKSPACE / 16);
            }
            add(Backend::Gpu, name.clone(), WORKSPACE);
            if T::DATA_TYPE == DataType::F32 {
                add(Backend::Gpu, format!("{name}_with_little_workspace"), 0);
            }
        }
    }
    trials
}

/// The library call on a device, with a workspace of this size, in bytes.
struct Library<'a, T, C> {
    device: &'a Device,
    workspace: usize,
    tier: Tier,
    types: PhantomData<(T, C)>,
}

impl<T: Number + MultipliesInto<C>, C: Number> Library<'_, T, C> {
    fn context(&self) -> Result<Context, Failed> {
        Ok(Context::new(self.device, self.workspace)?)
    }

    /// Whether it refuses a type that only tensor cores multiply: of 16 bits those from compute
    /// capability 8.0 on, of 8 bits those of 9.0.
    fn lacks_tensor_cores(&self) -> bool {
        let capability = self.device.facts().capability;
        match T::TYPE.bytes() {
            1 => capability != 90,
            2 => capability < 80,
            _ => false,
        }
    }

    /// Every case is right.
    fn check_all(&self, cases: impl IntoIterator<Item = Case>) -> Result<(), Failed> {
        let context = self.context()?;
        for case in cases {
            Product::<T, C>::new(case)?.check(self, &context)?;
        }
        Ok(())
    }
}

/// A product, and how its matrices are stored.
#[derive(Clone, Copy, Debug)]
struct Case {
    shape: Shape,
    transposes: [Transpose; 2],
    /// Fractions, whose sums round, and not integers.
    are_fractions: bool,
    /// Elements between rows, and before the first matrix.
    padding: usize,
    offset: usize,
    batch: usize,
    strides: Strides,
    alpha: i32,
    beta: i32,
}

/// Where the next matrices of a batch begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strides {
    /// The next product begins this number of elements after the end of the last.
    Gap(usize),
    /// All products have one A.
    OneA,
    /// All products have one B, and each row of C is followed by that of the next product.
    OneB,
}

impl Case {
    fn of((m, n, k): (usize, usize, usize), transposes: [Transpose; 2]) -> Case {
        Case {
            shape: Shape::new(m, n, k),
            transposes,
            are_fractions: false,
            padding: 0,
            offset: 0,
            batch: 1,
            strides: Strides::Gap(0),
            alpha: 1,
            beta: 0,
        }
    }
}

/// Elements from a row to the next, and from a product's matrix to the next product's.
type Steps = [usize; 2];

/// The products of a case, as many as it has, but at least one.
struct Product<T, C> {
    case: Case,
    problem: Problem<C>,
    data: Data,
    /// A and B as stored, below those of the product before.
    factors: [Matrix<T>; 2],
    steps: [Steps; 3],
}

/// An integer as alpha or beta of matrices of `T`.
fn scalar<T: Number>(value: i32) -> Result<T::Scalar, Failed> {
    let scalar = T::from_integer(value).scalar();
    Ok(T::Scalar::of(scalar).ok_or("alpha is no scalar of the type")?)
}

/// How the kernels round that the library chooses.
fn model<T: Number>() -> ErrorModel {
    match T::TYPE {
        ElementType::E4m3 => ErrorModel::Promoted { interval: 128 },
        _ if T::rounds_sums() => ErrorModel::Truncated,
        _ => ErrorModel::Elementwise,
    }
}

/// The first of `count` stacked matrices is copied to all the others.
fn repeat<T: Number>(matrix: &mut Matrix<T>, count: usize) -> Result<(), Failed> {
    let rows = matrix.rows() / count;
    let first = matrix.rows_from(0, rows)?;
    (1..count).for_each(|index| matrix.set_rows(index * rows, &first));
    Ok(())
}

impl<T: Number + MultipliesInto<C>, C: Number> Product<T, C> {
    fn new(case: Case) -> Result<Self, Failed> {
        let (batch, Shape { m, n, .. }) = (case.batch.max(1), case.shape);
        let data = match case.are_fractions {
            true => Data::Uniform,
            false => integers::<C>(T::TYPE, case.shape, model::<T>())?,
        };
        let storage = Storage {
            transposes: case.transposes,
            batch,
            ..Storage::COMPACT
        };
        let scalars = [case.alpha, case.beta].map(C::from_integer).into();
        let mut problem = Problem::random_as(T::TYPE, case.shape, storage, data, 7, scalars)?;
        match case.strides {
            Strides::Gap(_) => (),
            Strides::OneA => repeat(&mut problem.a, batch)?,
            Strides::OneB => repeat(&mut problem.b, batch)?,
        }
        let factors = problem.factors_as::<T>()?.map(|matrix| matrix.into_owned());
        let gap = match case.strides {
            Strides::Gap(gap) => gap,
            _ => 0,
        };
        let apart = |rows, columns| {
            let leading = columns + case.padding;
            [leading, rows * leading + gap]
        };
        let of = |matrix: &Matrix<T>| apart(matrix.rows() / batch, matrix.columns());
        let [of_a, of_b] = factors.each_ref().map(of);
        let steps = match case.strides {
            Strides::Gap(_) => [of_a, of_b, apart(m, n)],
            Strides::OneA => [[of_a[0], 0], of_b, apart(m, n)],
            Strides::OneB => [of_a, [of_b[0], 0], [batch * (n + 1), n + 1]],
        };
        Ok(Product {
            case,
            problem,
            data,
            factors,
            steps,
        })
    }

    fn name(&self) -> String {
        format!("{} {:?}", T::DATA_TYPE, self.case)
    }

    /// Where the rows of a matrix begin, in their order.
    fn rows(&self, rows: usize, [leading, stride]: Steps) -> impl Iterator<Item = usize> {
        let (batch, offset) = (self.problem.batch, self.case.offset);
        let of_one = rows / batch;
        (0..batch).flat_map(move |product| {
            (0..of_one).map(move |row| offset + product * stride + row * leading)
        })
    }

    /// A matrix in memory that is otherwise poison, behind it, too.
    fn laid<E: Number>(&self, matrix: &Matrix<E>, steps: Steps) -> Vec<E> {
        let batch = self.problem.batch;
        let of_one = matrix.rows() / batch * steps[0];
        let end = self.case.offset + (batch - 1) * steps[1] + of_one;
        let mut memory = vec![E::POISON; end + 3];
        for (row, start) in self.rows(matrix.rows(), steps).enumerate() {
            memory[start..][..matrix.columns()].copy_from_slice(matrix.row(row));
        }
        memory
    }

    /// The memory of C after the call, and the call's result.
    fn got(&self, context: &Context) -> Result<(Vec<C>, Result<(), GemmError>), Failed> {
        let Product { case, steps, .. } = self;
        let [[lda, stride_a], [ldb, stride_b], [ldc, stride_c]] = *steps;
        let (Shape { m, n, k }, batch) = (case.shape, case.batch);
        let [a, b] = [0, 1].map(|index| self.laid(&self.factors[index], steps[index]));
        let (a_there, b_there) = (context.upload(&a)?, context.upload(&b)?);
        let mut c_there = context.upload(&self.laid(&self.problem.c, steps[2]))?;
        let (alpha, beta) = (scalar::<T>(case.alpha)?, scalar::<T>(case.beta)?);
        let from = |there, index: usize| {
            let input = Input::<T>::from(there).starting_at(case.offset);
            input.with(case.transposes[index])
        };
        let (a_from, b_from) = (from(&a_there, 0), from(&b_there, 1));
        let c_from = Output::from(&mut c_there).starting_at(case.offset);
        // SAFETY: the buffers hold the matrices until `download` has waited for the product.
        let said = unsafe {
            match batch {
                1 => gemm(
                    context, alpha, a_from, lda, b_from, ldb, beta, c_from, ldc, m, n, k,
                ),
                _ => gemm_strided_batched(
                    context, alpha, a_from, lda, stride_a, b_from, ldb, stride_b, beta, c_from,
                    ldc, stride_c, m, n, k, batch,
                ),
            }
        };
        let after = context.download(&c_there)?;
        for (name, before, now) in [('A', a, &a_there), ('B', b, &b_there)] {
            let now = context.download(now)?;
            assert!(bits(&before) == bits(&now), "{name} was written");
        }
        Ok((after, said))
    }

    /// Whether this memory is as it was before the call.
    fn is_unchanged(&self, after: &[C]) -> bool {
        bits(after) == bits(&self.laid(&self.problem.c, self.steps[2]))
    }

    /// C is right, and everything around it is as it was. A device without the tensor cores for the
    /// type refuses the product.
    fn check(&self, library: &Library<'_, T, C>, context: &Context) -> Result<(), Failed> {
        let Case {
            shape,
            batch,
            alpha,
            beta,
            ..
        } = self.case;
        let name = self.name();
        let (got, said) = self.got(context)?;
        let is_empty = shape.is_empty() || batch == 0;
        let does_nothing = is_empty || beta == 1 && (alpha == 0 || shape.k == 0);
        if library.lacks_tensor_cores() && !does_nothing {
            let refused = said.err().ok_or("it was not refused")?.to_string();
            let which = match T::TYPE.bytes() {
                1 => "9.0",
                _ => "8.0 or newer",
            };
            let needs = format!("needs tensor cores of compute capability {which}, which this");
            assert!(refused.contains(&needs), "{name}: {refused}");
            assert!(self.is_unchanged(&got), "{name}: C was written");
            return Ok(());
        }
        said.map_err(|error| format!("{name}: {error}"))?;
        if batch > 0 {
            return self.is_right(&got, Coverage::Full);
        }
        assert!(self.is_unchanged(&got), "{name}: C was written");
        Ok(())
    }

    /// This memory holds the products, and everything around them is as it was.
    fn is_right(&self, after: &[C], coverage: Coverage<'static>) -> Result<(), Failed> {
        let (name, mut c) = (self.name(), self.problem.c.clone());
        for (row, start) in self.rows(c.rows(), self.steps[2]).enumerate() {
            let columns = c.columns();
            c.row_mut(row).copy_from_slice(&after[start..][..columns]);
        }
        is_right(&self.problem, &c, (self.data, model::<T>()), coverage)
            .map_err(|failed| format!("{name}: {failed:?}"))?;
        let is_same = bits(after) == bits(&self.laid(&c, self.steps[2]));
        assert!(is_same, "{name}: an element beside C");
        Ok(())
    }

    /// What a plan needs to know about it, where gaps are those of the padding alone.
    fn call(&self) -> Call {
        let Case {
            padding, offset, ..
        } = self.case;
        let storage = Storage {
            transposes: self.case.transposes,
            ..Storage::padded([padding; 3], [offset; 3])
        };
        storage.call(self.case.shape, T::TYPE)
    }
}

fn each_transposition() -> impl Iterator<Item = [Transpose; 2]> {
    let a = Transpose::ALL.into_iter();
    a.flat_map(|a| Transpose::ALL.map(|b| [a, b]))
}

/// Each shape with each transposition.
fn grid(shapes: &[(usize, usize, usize)]) -> impl Iterator<Item = Case> {
    let shapes = shapes.iter();
    shapes.flat_map(|shape| each_transposition().map(|transposes| Case::of(*shape, transposes)))
}

/// Shapes around the edges of tiles, flat and deep.
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

impl<T: Number + MultipliesInto<C>, C: Number> Library<'_, T, C> {
    fn multiplies_transposed_or_not_at_any_edge(&self) -> Result<(), Failed> {
        // Every shape, and every transposition.
        let step = self.tier.step(3);
        self.check_all(grid(&SHAPES).step_by(step))
    }

    /// Rows of A, B and C at multiples of 16 bytes, of the element's size, and in between.
    fn takes_any_leading_dimension_and_offset(&self) -> Result<(), Failed> {
        const PLACES: [(usize, usize); 9] = [
            (0, 0),
            (0, 1),
            (0, 2),
            (0, 4),
            (1, 0),
            (3, 3),
            (4, 2),
            (6, 8),
            (8, 8),
        ];
        let cases = grid(&[(33, 72, 40), (128, 128, 32), (130, 61, 37)]).flat_map(|case| {
            PLACES.map(|(padding, offset)| Case {
                padding,
                offset,
                alpha: 2,
                beta: -1,
                ..case
            })
        });
        self.check_all(cases.step_by(self.tier.step(5)))
    }

    /// Operands that alpha and beta exclude are poison.
    fn follows_alpha_and_beta_and_never_reads_what_they_forbid(&self) -> Result<(), Failed> {
        let scalars = [-2, 0, 1].map(|alpha| [-1, 0, 1, 2].map(|beta| (alpha, beta)));
        let scalars = scalars.concat();
        let cases = grid(&[(20, 35, 17), (128, 256, 16), (130, 70, 300)]).flat_map(|case| {
            scalars.iter().map(move |&(alpha, beta)| Case {
                alpha,
                beta,
                ..case
            })
        });
        self.check_all(cases.step_by(self.tier.step(7)))
    }

    fn takes_sums_without_products_and_matrices_without_elements(&self) -> Result<(), Failed> {
        let cases = grid(&[(33, 20, 0), (300, 200, 0), (0, 5, 7), (5, 0, 7), (0, 0, 0)]);
        self.check_all(cases.flat_map(|case| {
            [0, 1, -2].map(|beta| Case {
                padding: 1,
                beta,
                ..case
            })
        }))
    }

    fn rounds_as_its_type_does(&self) -> Result<(), Failed> {
        let cases = grid(&[(131, 137, 139), (40, 50, 3001), (256, 128, 500)]);
        let cases = cases.step_by(self.tier.step(3));
        self.check_all(cases.map(|case| Case {
            are_fractions: true,
            alpha: 3,
            beta: -1,
            ..case
        }))
    }

    fn multiplies_batches_at_any_strides(&self) -> Result<(), Failed> {
        const BATCHES: [((usize, usize, usize), usize); 5] = [
            ((33, 70, 19), 7),
            ((64, 64, 64), 3),
            ((130, 36, 40), 2),
            ((5, 6, 7), 0),
            ((16, 300, 0), 2),
        ];
        const STRIDES: [Strides; 4] = [
            Strides::Gap(0),
            Strides::Gap(5),
            Strides::OneA,
            Strides::OneB,
        ];
        let shapes = BATCHES.map(|(shape, _)| shape);
        let cases: Vec<Case> = grid(&shapes)
            .enumerate()
            .flat_map(|(index, case)| {
                STRIDES.map(|strides| Case {
                    // Each shape comes with four transpositions.
                    batch: BATCHES[index / 4].1,
                    strides,
                    alpha: 2,
                    beta: -1,
                    ..case
                })
            })
            .collect();
        self.check_all(cases.into_iter().step_by(self.tier.step(5)))
    }

    /// Both transposed, and in 16 bits with rows at odd places: no kernel reads that without
    /// copies, which are larger than the smallest workspace. C has many rows, many columns, or long
    /// sums; a C of 16 bits is still rounded only once, and one of f32 gets them in parts. In f32
    /// only one of the two is copied.
    fn cuts_what_the_workspace_is_too_small_for(&self) -> Result<(), Failed> {
        let context = Context::new(self.device, 0)?;
        let lengths = match T::DATA_TYPE {
            DataType {
                inputs: ElementType::Bf16 | ElementType::F16,
                c: ElementType::F32,
            } => vec![(40, 40, 7500)],
            DataType::E4M3_BF16 => vec![(1200, 20, 1080), (20, 1200, 1080), (600, 620, 1080)],
            DataType { c, .. } if c.bytes() == 2 => {
                vec![(520, 20, 1007), (20, 520, 1007), (300, 280, 1007)]
            }
            DataType::F32 => vec![(40, 40, 7000)],
            DataType::I8 | DataType::E4M3 => {
                vec![(1200, 20, 1080), (20, 1200, 1080), (40, 40, 27000)]
            }
            _ => vec![(1200, 20, 270), (20, 1200, 270), (40, 40, 7000)],
        };
        for shape in lengths {
            let case = Case {
                padding: 1,
                offset: 1,
                alpha: 2,
                beta: -1,
                ..Case::of(shape, [Transpose::Yes; 2])
            };
            let product = Product::<T, C>::new(case)?;
            let plan = context.plan(T::DATA_TYPE, product.call());
            assert!(matches!(plan, Err(GemmError::Workspace { .. })), "{case:?}");
            product.check(self, &context)?;
        }
        Ok(())
    }

    /// A C of 16 bits: a cut along K would round it once more.
    fn refuses_long_sums_that_the_workspace_is_too_small_for(&self) -> Result<(), Failed> {
        let case = Case {
            padding: 1,
            ..Case::of((40, 36, 8001), [Transpose::No; 2])
        };
        let product = Product::<T, C>::new(case)?;
        let small = Context::new(self.device, 0)?;
        if self.lacks_tensor_cores() {
            return product.check(self, &small);
        }
        let (after, said) = product.got(&small)?;
        // Copies of 40 x 8008 and of 8001 x 40 elements, each a multiple of 256 bytes.
        let copy = |elements: usize| (elements * 2).next_multiple_of(256);
        let needed = copy(40 * 8008) + copy(8001 * 40);
        let name = T::DATA_TYPE.name();
        let expected = format!(
            "This product of {name} takes {needed} bytes of workspace or more, and there are 1048576. \
         Create the context with more."
        );
        assert_eq!(said.err().map(|error| error.to_string()), Some(expected));
        assert!(product.is_unchanged(&after), "C was written");
        let enough = Context::new(self.device, needed)?;
        assert!(enough.plan(T::DATA_TYPE, product.call()).is_ok());
        Ok(())
    }
}

/// The first GPU, with kernels that its driver compiles, even if the build has assembled them.
fn compiled_by_the_driver() -> Result<Device, Failed> {
    let gpu = driver::probe()?.swap_remove(0);
    let ours = compiled::module_for(gpu.architecture())?;
    let mut ladder = built().filter(|built| built.kernels == LADDER);
    let built = ladder.find(|built| built.arch.sm() == ours.target());
    let module = Module::of_text(built.ok_or("the tests do not compile for it")?.ptx());
    // SAFETY: these are the kernels of the library.
    let device = unsafe { CudaDevice::open_with(gpu, module)? };
    Ok(device.into())
}

/// Large products, one after the other.
fn large(device: &Device, workspace: usize) -> Result<(), Failed> {
    let context = Context::new(device, workspace)?;
    for case in grid(&[
        (1000, 1000, 1000),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (4096, 16, 4096),
        (16, 4096, 4096),
        (35, 8457, 1024),
        (700, 5124, 2047),
        (4096, 4096, 256),
        (64, 8, 500_000),
    ]) {
        let product = Product::<f32, f32>::new(Case { beta: 1, ..case })?;
        let (got, said) = product.got(&context)?;
        said?;
        // The host would take a minute for all elements.
        product.is_right(&got, Coverage::Sampled { seed: 1 })?;
    }
    Ok(())
}

fn names_the_argument_that_is_wrong(device: &Device) -> Result<(), Failed> {
    let context = Context::new(device, 0)?;
    let (a, b) = (context.upload(&[1.0; 12])?, context.upload(&[1.0; 12])?);
    let mut c = context.upload(&[1.0; 12])?;
    let mut message = |lda, ldb, ldc, n| {
        // SAFETY: nothing is launched, or dropping the context waits for the launches.
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
    // Two products with overlapping C. SAFETY: nothing is launched.
    let refused = unsafe {
        gemm_strided_batched(
            &context, 1.0, &a, 4, 0, &b, 3, 0, 0.0, &mut c, 3, 2, 3, 3, 4, 2,
        )
    };
    let said = refused.err().ok_or("nothing was wrong")?.to_string();
    assert!(said.contains("stride_c = 2, overlaps"), "{said}");
    // A matrix in the memory of another device.
    let elsewhere = [1.0f32; 12];
    let there = match device.one_gpu() {
        Some(_) => Input::from(&elsewhere[..]),
        None => Input::at(0, 12),
    };
    // SAFETY: nothing is launched.
    let refused = unsafe { gemm(&context, 1.0, there, 4, &b, 3, 0.0, &mut c, 3, 3, 3, 4) };
    let is_wrong_memory = matches!(refused, Err(GemmError::WrongMemory { matrix: 'A', .. }));
    assert!(is_wrong_memory, "{refused:?}");
    Ok(())
}

fn other_stream() -> Result<(), Failed> {
    let device = CudaDevice::open(0)?;
    let entered = device.enter()?;
    let stream = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None)?;
    drop(entered);
    let mut context = Context::on_stream(&device, stream, 0)?;
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

/// Compiles and allocates before the call, but not in it: the free memory does not change.
fn prepared() -> Result<(), Failed> {
    let device = CudaDevice::open(0)?;
    let _entered = device.enter()?; // for the free memory
    let device = Device::from(device);
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
