//! The library call: `C = alpha * op(A) * op(B) + beta * C`, for every data type, transposed or
//! not, for any shape and layout, on the simulator, on the GPU and with OpenCL, compared with sums
//! in f64 ([`super::problem`]).

use gpu_gemm::device::compiled::{self, Module};
use gpu_gemm::device::driver;
use gpu_gemm::{
    Bf16, Context, CudaDevice, DataType, Device, Element, ElementType, F16, GemmError, Input,
    MultipliesInto, Output, Shape, Transpose, WORKSPACE, gemm, gemm_strided_batched,
};
use host::data::Number;
use libtest_mimic::{Failed, Trial};
use tests::built::{LADDER, built};
use tests::devices::Backend;
use tests::{Tier, bits, on_gpu};

use super::problem::{Case, Elements, Problem, Strides, scrambled};

pub fn trials() -> Vec<Trial> {
    let mut trials = trials_of::<f32, f32>();
    trials.extend(trials_of::<f64, f64>());
    trials.extend(trials_of::<i32, i32>());
    trials.extend(trials_of::<Bf16, Bf16>());
    trials.extend(trials_of::<F16, F16>());
    trials.extend(trials_of::<Bf16, f32>());
    trials.extend(trials_of::<F16, f32>());
    for backend in [Backend::Simulator, Backend::OpenCl, Backend::Gpu] {
        let test = move || backend.run(names_the_argument_that_is_wrong);
        let name = "library::names_the_argument_that_is_wrong";
        trials.extend(tests::trial(Tier::Quick, backend, name, test));
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

/// The claims about a type.
fn trials_of<T: Number + MultipliesInto<C>, C: Number>() -> Vec<Trial> {
    type Claim = fn(&Library) -> Result<(), Failed>;
    macro_rules! claims {
        ($($claim:ident),* $(,)?) => {
            vec![$((stringify!($claim), $claim::<T, C> as Claim)),*]
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
    if T::TYPE != ElementType::I32 {
        claims.extend(claims![rounds_as_its_type_does]);
    }
    if C::TYPE.bytes() == 2 {
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
                            tier,
                        })
                    })
                };
                trials.extend(tests::trial(tier, backend, name, test));
            };
            let name = format!("library::{}::{claim}", T::DATA_TYPE);
            add(Backend::Simulator, name.clone(), WORKSPACE / 16);
            add(Backend::OpenCl, name.clone(), WORKSPACE / 16);
            add(Backend::Gpu, name.clone(), WORKSPACE);
            if T::DATA_TYPE == DataType::F32 {
                add(Backend::Gpu, format!("{name}_with_little_workspace"), 0);
            }
        }
    }
    trials
}

/// The library call on a device, with a workspace of this size, in bytes.
struct Library<'a> {
    device: &'a Device,
    workspace: usize,
    tier: Tier,
}

impl Library<'_> {
    fn context(&self) -> Result<Context<'_>, Failed> {
        Ok(Context::new(self.device, self.workspace)?)
    }

    /// Whether it refuses a type that only tensor cores since compute capability 8.0 multiply.
    fn lacks_tensor_cores<T: Number>(&self) -> bool {
        T::TYPE.bytes() == 2 && self.device.facts().capability < 80
    }

    /// Checks that every case is right.
    fn check_all<T: Number + MultipliesInto<C>, C: Number>(
        &self,
        cases: impl IntoIterator<Item = Case>,
    ) -> Result<(), Failed> {
        let context = self.context()?;
        for case in cases {
            Problem::<T, C>::new(case).check(self, &context)?;
        }
        Ok(())
    }
}

/// An integer as alpha or beta of matrices of `T`.
fn scalar<T: Number>(value: i32) -> Result<T::Scalar, Failed> {
    let scalar = T::from_integer(value).scalar();
    Ok(T::Scalar::of(scalar).ok_or("alpha is no scalar of the type")?)
}

impl<T: Number + MultipliesInto<C>, C: Number> Problem<T, C> {
    /// The memory of C after the call, and the call's result.
    fn got(&self, context: &Context) -> Result<(Vec<C>, Result<(), GemmError>), Failed> {
        let Problem { case, a, b, c } = self;
        let Shape { m, n, k } = case.shape;
        let (a_there, b_there) = (context.upload(&a.elements)?, context.upload(&b.elements)?);
        let mut c_there = context.upload(&c.elements)?;
        let (alpha, beta) = (scalar::<T>(case.alpha)?, scalar::<T>(case.beta)?);
        let a_from = Input::from(&a_there).starting_at(a.offset);
        let b_from = Input::from(&b_there).starting_at(b.offset);
        let (a_from, b_from) = (
            a_from.with(case.transposes.0),
            b_from.with(case.transposes.1),
        );
        let c_from = Output::from(&mut c_there).starting_at(c.offset);
        // SAFETY: the buffers hold the matrices until `download` has waited for the product.
        let said = unsafe {
            match case.batch {
                1 => gemm(
                    context, alpha, a_from, a.leading, b_from, b.leading, beta, c_from, c.leading,
                    m, n, k,
                ),
                batch => gemm_strided_batched(
                    context, alpha, a_from, a.leading, a.stride, b_from, b.leading, b.stride, beta,
                    c_from, c.leading, c.stride, m, n, k, batch,
                ),
            }
        };
        let after = context.download(&c_there)?;
        for (name, before, now) in [('A', a, &a_there), ('B', b, &b_there)] {
            let now = context.download(now)?;
            assert!(bits(&before.elements) == bits(&now), "{name} was written");
        }
        Ok((after, said))
    }

    /// Checks that C is right, and everything around it unchanged. A device without the tensor
    /// cores for the type refuses the product.
    fn check(&self, library: &Library, context: &Context) -> Result<(), Failed> {
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
        if library.lacks_tensor_cores::<T>() && !does_nothing {
            let refused = said.err().ok_or("it was not refused")?.to_string();
            let needs =
                "needs tensor cores of compute capability 8.0 or newer, which this device does not";
            assert!(refused.contains(needs), "{name}: {refused}");
            assert!(
                bits(&got) == bits(&self.c.elements),
                "{name}: C was written"
            );
            return Ok(());
        }
        said.map_err(|error| format!("{name}: {error}"))?;
        self.is_right(&got)
    }
}

fn each_transposition() -> impl Iterator<Item = (Transpose, Transpose)> + Clone {
    let b = Transpose::ALL.into_iter();
    let a = Transpose::ALL.into_iter();
    a.flat_map(move |a| b.clone().map(move |b| (a, b)))
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

fn multiplies_transposed_or_not_at_any_edge<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    // Every shape, and every transposition.
    let step = library.tier.step(3);
    library.check_all::<T, C>(grid(&SHAPES).step_by(step))
}

/// Rows of A, B and C at multiples of 16 bytes, of the element's size, and of sizes between.
fn takes_any_leading_dimension_and_offset<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
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
    library.check_all::<T, C>(cases.step_by(library.tier.step(5)))
}

/// Operands that alpha and beta exclude are poison.
fn follows_alpha_and_beta_and_never_reads_what_they_forbid<
    T: Number + MultipliesInto<C>,
    C: Number,
>(
    library: &Library,
) -> Result<(), Failed> {
    let scalars = [-2, 0, 1].map(|alpha| [-1, 0, 1, 2].map(|beta| (alpha, beta)));
    let scalars = scalars.concat();
    let cases = grid(&[(20, 35, 17), (128, 256, 16), (130, 70, 300)]).flat_map(|case| {
        scalars.iter().map(move |&(alpha, beta)| Case {
            alpha,
            beta,
            ..case
        })
    });
    library.check_all::<T, C>(cases.step_by(library.tier.step(7)))
}

fn takes_sums_without_products_and_matrices_without_elements<
    T: Number + MultipliesInto<C>,
    C: Number,
>(
    library: &Library,
) -> Result<(), Failed> {
    let cases = grid(&[(33, 20, 0), (300, 200, 0), (0, 5, 7), (5, 0, 7), (0, 0, 0)]);
    library.check_all::<T, C>(cases.flat_map(|case| {
        [0, 1, -2].map(|beta| Case {
            padding: 1,
            beta,
            ..case
        })
    }))
}

fn rounds_as_its_type_does<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    let cases = grid(&[(131, 137, 139), (40, 50, 3001), (256, 128, 500)]);
    let cases = cases.step_by(library.tier.step(3));
    library.check_all::<T, C>(cases.map(|case| Case {
        elements: Elements::Fractions,
        alpha: 3,
        beta: -1,
        ..case
    }))
}

fn multiplies_batches_at_any_strides<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
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
                // Each shape occurs with four transpositions.
                batch: BATCHES[index / 4].1,
                strides,
                alpha: 2,
                beta: -1,
                ..case
            })
        })
        .collect();
    library.check_all::<T, C>(cases.into_iter().step_by(library.tier.step(5)))
}

/// A and B are both transposed, and in 16 bits with unaligned rows: no kernel reads these without
/// copies, which are larger than the smallest workspace. C has many rows, many columns, or long
/// sums; a C of 16 bits is still rounded only once, and one of f32 is computed in parts. In f32
/// only one of the two is copied.
fn cuts_what_the_workspace_is_too_small_for<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    let context = Context::new(library.device, 0)?;
    let lengths = match T::DATA_TYPE {
        DataType {
            inputs: ElementType::Bf16 | ElementType::F16,
            c: ElementType::F32,
        } => vec![(40, 40, 7500)],
        DataType { c, .. } if c.bytes() == 2 => {
            vec![(520, 20, 1007), (20, 520, 1007), (300, 280, 1007)]
        }
        DataType::F32 => vec![(40, 40, 7000)],
        _ => vec![(1200, 20, 270), (20, 1200, 270), (40, 40, 7000)],
    };
    for shape in lengths {
        let case = Case {
            padding: 1,
            offset: 1,
            alpha: 2,
            beta: -1,
            ..Case::of(shape, (Transpose::Yes, Transpose::Yes))
        };
        let problem = Problem::<T, C>::new(case);
        let plan = context.plan(T::DATA_TYPE, problem.call([0; 2]));
        assert!(matches!(plan, Err(GemmError::Workspace { .. })), "{case:?}");
        problem.check(library, &context)?;
    }
    Ok(())
}

/// A C of 16 bits: a cut along K would round it once more.
fn refuses_long_sums_that_the_workspace_is_too_small_for<
    T: Number + MultipliesInto<C>,
    C: Number,
>(
    library: &Library,
) -> Result<(), Failed> {
    let case = Case {
        padding: 1,
        ..Case::of((40, 30, 8001), (Transpose::No, Transpose::No))
    };
    let problem = Problem::<T, C>::new(case);
    let small = Context::new(library.device, 0)?;
    if library.lacks_tensor_cores::<T>() {
        return problem.check(library, &small);
    }
    let (after, said) = problem.got(&small)?;
    // Copies of 40 x 8008 and of 8001 x 32, at multiples of 256 bytes.
    let needed =
        (40usize * 8008 * 2).next_multiple_of(256) + (8001usize * 32 * 2).next_multiple_of(256);
    let name = T::DATA_TYPE.name();
    let expected = format!(
        "This product of {name} takes {needed} bytes of workspace or more, and there are 1048576. \
         Create the context with more."
    );
    assert_eq!(said.err().map(|error| error.to_string()), Some(expected));
    assert!(bits(&after) == bits(&problem.c.elements), "C was written");
    let enough = Context::new(library.device, needed)?;
    assert!(enough.plan(T::DATA_TYPE, problem.call([0; 2])).is_ok());
    Ok(())
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

/// Products too large for sums of each element: instead, C times a vector is compared with A times
/// (B times the vector) (Freivalds). One wrong element changes its row's sum.
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
        let problem = Problem::<f32, f32>::new(Case { beta: 1, ..case });
        let (got, said) = problem.got(&context)?;
        said?;
        let Shape { m, n, k } = case.shape;
        let factor = |column: usize| f64::from(scrambled(column) % 1000 + 1);
        let of_row = |length, element: &dyn Fn(usize) -> f64| -> f64 {
            (0..length)
                .map(|column| element(column) * factor(column))
                .sum()
        };
        let (to_a, to_b) = case.transposes;
        let of_b: Vec<f64> = (0..k)
            .map(|l| of_row(n, &|column| problem.b.element(0, to_b, (l, column))))
            .collect();
        for row in 0..m {
            let product = (0..k).map(|l| problem.a.element(0, to_a, (row, l)) * of_b[l]);
            let before = of_row(n, &|column| {
                problem.c.element(0, Transpose::No, (row, column))
            });
            let after = of_row(n, &|column| f64::from(got[problem.c.place(0, row, column)]));
            assert_eq!(
                after,
                product.sum::<f64>() + before,
                "row {row} of {case:?}"
            );
        }
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
        None => Input::at(cust::memory::DevicePointer::null(), 12),
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

/// Compiles and allocates before the call, but not in it: the free memory does not change.
fn prepared() -> Result<(), Failed> {
    let device = Device::from(CudaDevice::open(0)?);
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
