//! The library call: `C = alpha * op(A) * op(B) + beta * C`, for every data type, transposed or not,
//! by the plan that it chooses and by every other, whatever the shape and the layout, on the
//! simulator, on the GPU and by OpenCL. What is compared with are sums in f64: they are exact where
//! the elements are integers.

use gpu_gemm::choose::candidates;
use gpu_gemm::device::compiled::{self, Module};
use gpu_gemm::device::driver;
use gpu_gemm::{
    Batch, Bf16, Bindings, Call, Context, CudaDevice, DataType, Device, DeviceFacts, Element,
    ElementType, F16, GemmError, Input, MultipliesInto, Operand, Output, Plan, Scalar, Shape,
    Simulator, Transpose, WORKSPACE, gemm, gemm_strided_batched,
};
use host::data::{Arithmetic, Number};
use host::run::guard::{self, GUARD};
use libtest_mimic::{Failed, Trial};
use tests::built::{LADDER, built};
use tests::devices::Backend;
use tests::{Tier, bits, on_gpu};

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
    for tier in [Tier::Quick, Tier::Exhaustive] {
        let name = "library::every_plan_is_right";
        let test = move || every_plan(tier);
        trials.extend(tests::trial(tier, Backend::Simulator, name, test));
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
        repeats_bit_for_bit,
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

/// The library call on a device, with a workspace of so many bytes.
struct Library<'a> {
    device: &'a Device,
    workspace: usize,
    tier: Tier,
}

impl Library<'_> {
    fn context(&self) -> Result<Context<'_>, Failed> {
        Ok(Context::new(self.device, self.workspace)?)
    }

    /// Whether it refuses a type that only tensor cores from compute capability 8.0 on multiply.
    fn lacks_tensor_cores<T: Number>(&self) -> bool {
        T::TYPE.bytes() == 2 && self.device.facts().capability < 80
    }

    /// Every case is right.
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

/// What is multiplied, and how it lies in memory.
#[derive(Clone, Copy, Debug)]
struct Case {
    shape: Shape,
    transposes: (Transpose, Transpose),
    elements: Elements,
    /// Elements between rows, and before the first matrix.
    padding: usize,
    offset: usize,
    batch: usize,
    strides: Strides,
    alpha: i32,
    beta: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Elements {
    /// Results are rounded once, where C has fewer bits than its sums.
    Integers,
    Fractions,
}

/// Where the next matrices of a batch begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strides {
    /// So many elements after the end of those before.
    Gap(usize),
    /// All products have one A.
    OneA,
    /// All products have one B, and each row of C is followed by that of the next product.
    OneB,
}

impl Case {
    fn of((m, n, k): (usize, usize, usize), transposes: (Transpose, Transpose)) -> Case {
        Case {
            shape: Shape::new(m, n, k),
            transposes,
            elements: Elements::Integers,
            padding: 0,
            offset: 0,
            batch: 1,
            strides: Strides::Gap(0),
            alpha: 1,
            beta: 0,
        }
    }
}

/// Matrices of a batch in one memory. Whatever is no element of theirs is poison.
struct Matrices<T> {
    elements: Vec<T>,
    leading: usize,
    stride: usize,
    offset: usize,
}

impl<T: Number> Matrices<T> {
    /// With these values, of which the first is number 1; or poison, where nothing is read.
    fn new(
        case: &Case,
        (rows, columns): (usize, usize),
        [leading, stride]: [usize; 2],
        value: Option<impl Fn(usize) -> T>,
    ) -> Matrices<T> {
        let end = case.offset + case.batch.saturating_sub(1) * stride + rows * leading;
        let mut matrices = Matrices {
            // Poison behind them, too.
            elements: vec![T::POISON; end + 3],
            leading,
            stride,
            offset: case.offset,
        };
        let Some(value) = value else {
            return matrices;
        };
        let mut number = 0;
        for product in 0..case.batch {
            for (row, column) in pairs(rows, columns) {
                let place = matrices.place(product, row, column);
                number += 1;
                matrices.elements[place] = value(number);
            }
        }
        matrices
    }

    fn place(&self, product: usize, row: usize, column: usize) -> usize {
        self.offset + product * self.stride + row * self.leading + column
    }

    /// An element of the matrix as it is multiplied.
    fn element(&self, product: usize, transpose: Transpose, place: (usize, usize)) -> f64 {
        let (row, column) = transpose.of(place);
        self.elements[self.place(product, row, column)].to_f64()
    }
}

fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

/// Small integers, most of them positive, so that long sums have more bits than elements of 16
/// bits. Those of A have more bits than f32 has where the type is wider than that, and as integers
/// their sums wrap.
fn a_value<T: Number>(elements: Elements, number: usize) -> T {
    let small = scrambled(number) % 7 - 1;
    match (elements, T::TYPE) {
        (Elements::Fractions, _) => fraction(number),
        (_, ElementType::F64 | ElementType::I32) => T::from_integer(small * ((1 << 27) + 1)),
        _ => T::from_integer(small),
    }
}

/// The same of B and of C.
fn b_value<T: Number>(elements: Elements, number: usize) -> T {
    let number = number + 1_000_000;
    match elements {
        Elements::Fractions => fraction(number),
        Elements::Integers => T::from_integer(scrambled(number) % 6 - 1),
    }
}

/// Between -1 and 1.
fn fraction<T: Number>(number: usize) -> T {
    T::nearest(f64::from(scrambled(number)) / 32767.5 - 1.0)
}

/// 16 bits that look random.
fn scrambled(number: usize) -> i32 {
    let word = (number as u32).wrapping_mul(0x9e37_79b9);
    ((word ^ word >> 15).wrapping_mul(0x85eb_ca6b) >> 16) as i32
}

/// An integer as alpha or beta of matrices of `T`.
fn scalar<T: Number>(value: i32) -> Result<T::Scalar, Failed> {
    let scalar = T::from_integer(value).scalar();
    Ok(T::Scalar::of(scalar).ok_or("alpha is no scalar of the type")?)
}

/// The relative error of one operation, rounded or cut off.
fn unit(arithmetic: Arithmetic) -> f64 {
    match arithmetic {
        Arithmetic::Float { unit_roundoff, .. } => 2.0 * unit_roundoff,
        Arithmetic::WrappingInteger { .. } => 0.0,
    }
}

struct Problem<T, C> {
    case: Case,
    a: Matrices<T>,
    b: Matrices<T>,
    c: Matrices<C>,
}

impl<T: Number + MultipliesInto<C>, C: Number> Problem<T, C> {
    fn new(case: Case) -> Problem<T, C> {
        let Case {
            shape: Shape { m, n, k },
            transposes,
            elements,
            batch,
            strides,
            ..
        } = case;
        let (of_a, of_b) = (transposes.0.of((m, k)), transposes.1.of((k, n)));
        let apart = |(rows, columns)| {
            // A leading dimension is at least 1, as in BLAS.
            let leading = usize::max(columns + case.padding, 1);
            let gap = if let Strides::Gap(gap) = strides {
                gap
            } else {
                0
            };
            [leading, rows * leading + gap]
        };
        let one = |shape| [apart(shape)[0], 0];
        let side_by_side = [batch.max(1) * (n + 1), n + 1];
        let (in_a, in_b, in_c) = match strides {
            Strides::Gap(_) => (apart(of_a), apart(of_b), apart((m, n))),
            Strides::OneA => (one(of_a), apart(of_b), apart((m, n))),
            Strides::OneB => (apart(of_a), one(of_b), side_by_side),
        };
        let reads = case.alpha != 0;
        let a = reads.then_some(|number| a_value::<T>(elements, number));
        let b = reads.then_some(|number| b_value::<T>(elements, number));
        let c = (case.beta != 0).then_some(|number| b_value::<C>(elements, number));
        Problem {
            a: Matrices::new(&case, of_a, in_a, a),
            b: Matrices::new(&case, of_b, in_b, b),
            c: Matrices::new(&case, (m, n), in_c, c),
            case,
        }
    }

    fn name(&self) -> String {
        format!("{} {:?}", T::DATA_TYPE, self.case)
    }

    /// What a plan needs to know about it, with memory at these addresses.
    fn call(&self, [a, b]: [usize; 2]) -> Call {
        let operand = |address, matrices: &Matrices<T>, transpose| {
            let address = address + matrices.offset * size_of::<T>();
            Operand::at(address, matrices.leading, T::TYPE, transpose)
        };
        let batch = Batch {
            count: self.case.batch,
            strides: [self.a.stride, self.b.stride, self.c.stride],
        };
        Call {
            shape: self.case.shape,
            a: operand(a, &self.a, self.case.transposes.0),
            b: operand(b, &self.b, self.case.transposes.1),
            ldc: self.c.leading,
            batch: Batch::ONE,
        }
        .batched(batch, T::TYPE)
    }

    /// The memory of C after the call, and what the call said.
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

    /// C is right, and everything around it is as it was. A device without the tensor cores for the
    /// type refuses the product.
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

    /// This memory holds the products, and everything around them is as it was.
    fn is_right(&self, got: &[C]) -> Result<(), Failed> {
        let mut expected = self.c.elements.clone();
        for product in 0..self.case.batch {
            for place in pairs(self.case.shape.m, self.case.shape.n) {
                let in_memory = self.c.place(product, place.0, place.1);
                let found = got[in_memory];
                let (want, bound) = self.want(product, place);
                // Nor is a NaN within the bound.
                let is_near = (found.to_f64() - want.to_f64()).abs() <= bound;
                if found != want && !is_near {
                    let name = self.name();
                    let message =
                        format!("{name}: {found} in place of {want} at {place:?} of {product}");
                    return Err(message.into());
                }
                expected[in_memory] = found;
            }
        }
        let (got, expected) = (bits(got), bits(&expected));
        let wrong = got
            .iter()
            .zip(&expected)
            .position(|(got, want)| got != want);
        assert_eq!(wrong, None, "{}: an element beside C", self.name());
        Ok(())
    }

    /// An element of the result, rounded once, and how far off it may be.
    fn want(&self, product: usize, (row, column): (usize, usize)) -> (C, f64) {
        let Case {
            shape: Shape { k, .. },
            transposes,
            elements,
            alpha,
            beta,
            ..
        } = self.case;
        let (alpha, beta) = (f64::from(alpha), f64::from(beta));
        let (mut sum, mut magnitude) = (0.0, 0.0);
        if beta != 0.0 {
            sum = beta * self.c.element(product, Transpose::No, (row, column));
            magnitude = sum.abs();
        }
        for l in 0..if alpha == 0.0 { 0 } else { k } {
            let a = self.a.element(product, transposes.0, (row, l));
            let term = alpha * a * self.b.element(product, transposes.1, (l, column));
            sum += term;
            magnitude += term.abs();
        }
        if T::TYPE == ElementType::I32 {
            return (C::from_integer(sum as i64 as i32), 0.0);
        }
        let bound = match elements {
            Elements::Integers => 0.0,
            Elements::Fractions => {
                (k + 4) as f64 * unit(T::SUMS) * magnitude + unit(C::ARITHMETIC) * sum.abs()
            }
        };
        (C::nearest(sum), bound)
    }
}

fn each_transposition() -> impl Iterator<Item = (Transpose, Transpose)> + Clone {
    let b = Transpose::ALL.into_iter();
    let a = Transpose::ALL.into_iter();
    a.flat_map(move |a| b.clone().map(move |b| (a, b)))
}

/// Each of these shapes with each transposition.
fn grid(shapes: &[(usize, usize, usize)]) -> impl Iterator<Item = Case> {
    let shapes = shapes.iter();
    shapes.flat_map(|shape| each_transposition().map(|transposes| Case::of(*shape, transposes)))
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

fn multiplies_transposed_or_not_at_any_edge<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    // Every shape, and every transposition.
    let step = library.tier.step(3);
    library.check_all::<T, C>(grid(&SHAPES).step_by(step))
}

/// Rows of A, B and C at multiples of 16 bytes, of the type's own size, and in between.
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

/// What alpha and beta say is not read is poison.
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

fn repeats_bit_for_bit<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    if library.lacks_tensor_cores::<T>() {
        return Ok(());
    }
    let context = library.context()?;
    let cases = grid(&[(140, 100, 503)]);
    for case in cases.step_by(library.tier.step(3)) {
        let problem = Problem::<T, C>::new(Case {
            elements: Elements::Fractions,
            beta: 1,
            ..case
        });
        let run = || -> Result<Vec<u64>, Failed> {
            let (c, said) = problem.got(&context)?;
            said?;
            Ok(bits(&c))
        };
        let first = run()?;
        for _ in 0..2 {
            assert!(run()? == first, "{}: two runs differ", problem.name());
        }
    }
    Ok(())
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
                // Each shape comes with four transpositions.
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

/// Both transposed, and in 16 bits with rows at odd places: no kernel reads that without copies,
/// which are larger than the smallest workspace. C has many rows, many columns, or long sums; a C
/// of 16 bits is rounded only once all the same, and one of f32 gets them in parts. Of f32 only one
/// of the two is copied.
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

/// Every candidate, not only the chosen one, with guard bands around C and the workspace.
fn every_plan(tier: Tier) -> Result<(), Failed> {
    let facts = DeviceFacts::simulator();
    // In the last, tiles of 192 leave an N remainder.
    let cases = grid(&[(257, 140, 45), (128, 128, 40), (130, 300, 20)]);
    // Every shape, every transposition, and either place.
    for (index, case) in cases.enumerate().step_by(tier.step(3)) {
        let (padding, offset) = [(0, 1), (3, 4)][index % 2];
        let problem = Problem::<f32, f32>::new(Case {
            padding,
            offset,
            alpha: 2,
            beta: 1,
            ..case
        });
        let addresses =
            [&problem.a, &problem.b].map(|matrices| matrices.elements.as_ptr() as usize);
        let plans = candidates(problem.call(addresses), &facts);
        assert!(!plans.is_empty());
        for plan in plans {
            let name = format!("{} {:?}", plan.variant().name, plan.decomposition());
            let named = |failed| format!("{name}: {failed:?}");
            let c = simulated(&problem, &plan).map_err(named)?;
            problem.is_right(&c).map_err(named)?;
        }
    }
    Ok(())
}

/// The memory of C, by this plan on the simulator.
fn simulated(problem: &Problem<f32, f32>, plan: &Plan) -> Result<Vec<f32>, Failed> {
    let Problem { case, a, b, c } = problem;
    let mut c_there = guard::surround(&c.elements);
    let floats = plan.workspace_bytes().div_ceil(size_of::<f32>());
    // Its start is a multiple of 16 bytes, as kernels require of copies.
    let mut workspace = guard::surround(&vec![f32::POISON; floats + 4]);
    let skew = workspace[GUARD..].as_ptr().align_offset(16);
    let first = |of: &Matrices<f32>| of.elements[of.offset..].as_ptr().cast_mut().cast::<u8>();
    let bindings = Bindings {
        alpha: Scalar::F32(case.alpha as f32),
        beta: Scalar::F32(case.beta as f32),
        a: first(a),
        b: first(b),
        c: c_there[GUARD + c.offset..].as_mut_ptr().cast(),
        workspace: workspace[GUARD + skew..].as_mut_ptr().cast(),
    };
    // SAFETY: the matrices are those of the plan's call, the workspace is as large as the plan
    // requires, and all of them outlive the launches.
    unsafe { gpu_gemm::run(&Simulator::default().observed(&|| ()), plan, &bindings)? };
    let bands = |name, buffer: &[f32], length| {
        guard::check_bands(name, &buffer[..GUARD], &buffer[GUARD + length..])
            .map_err(|trespass| trespass.to_string())
    };
    bands('C', &c_there, c.elements.len())?;
    bands('W', &workspace, floats + 4)?;
    Ok(c_there[GUARD..GUARD + c.elements.len()].to_vec())
}

/// The first GPU, with kernels that its driver compiles, whether the build has assembled them or
/// not.
fn compiled_by_the_driver() -> Result<Device, Failed> {
    let gpu = driver::probe()?.swap_remove(0);
    let ours = compiled::module_for(gpu.architecture())?;
    let mut ladder = built().filter(|built| built.kernels == LADDER);
    let built = ladder.find(|built| built.arch.sm() == ours.target());
    let module = Module::of_text(built.ok_or("the tests do not compile for it")?.ptx());
    // SAFETY: these are the kernels of the library.
    let device = unsafe { CudaDevice::open_with(gpu, module)? };
    Ok(Device::Cuda(Box::new(device)))
}

/// Products too large for sums of each element: rows of C are multiplied by a vector instead, as
/// are those of B, and A by what these give (Freivalds). One wrong element changes its row's sum.
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
    let there = match device {
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
