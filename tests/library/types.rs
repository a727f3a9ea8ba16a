//! The library call for every data type, on integers, against sums in i64: products anywhere in
//! memory, batches, and products that the workspace is too small for.

use gpu_gemm::{
    Batch, Bf16, Call, Context, DataType, Element, ElementType, F16, GemmError, Input,
    MultipliesInto, Operand, Output, Shape, Transpose, gemm, gemm_strided_batched,
};
use host::data::Number;
use libtest_mimic::Failed;
use tests::bits;

use crate::{Library, each_transposition};

/// What is multiplied, and how it lies in memory.
#[derive(Clone, Copy, Debug)]
struct Case {
    shape: Shape,
    transposes: (Transpose, Transpose),
    /// Elements between rows, before the first matrix, and between the matrices of a batch.
    padding: usize,
    offset: usize,
    gap: usize,
    batch: usize,
    alpha: i32,
    beta: i32,
}

impl Case {
    fn of(m: usize, n: usize, k: usize, transposes: (Transpose, Transpose)) -> Case {
        Case {
            shape: Shape::new(m, n, k),
            transposes,
            padding: 0,
            offset: 0,
            gap: 0,
            batch: 1,
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
    fn new(
        case: &Case,
        (rows, columns): (usize, usize),
        value: impl Fn(usize) -> Option<i32>,
    ) -> Matrices<T> {
        let leading = (columns + case.padding).max(1);
        let stride = rows * leading + case.gap;
        let mut matrices = Matrices {
            elements: vec![T::POISON; case.offset + case.batch * stride],
            leading,
            stride,
            offset: case.offset,
        };
        let mut number = 0;
        for product in 0..case.batch {
            for (row, column) in pairs(rows, columns) {
                let place = matrices.place(product, row, column);
                number += 1;
                matrices.elements[place] = value(number).map_or(T::POISON, T::from_integer);
            }
        }
        matrices
    }

    fn place(&self, product: usize, row: usize, column: usize) -> usize {
        self.offset + product * self.stride + row * self.leading + column
    }

    /// An element of the matrix as it is multiplied.
    fn integer(&self, product: usize, transpose: Transpose, place: (usize, usize)) -> i64 {
        let (row, column) = transpose.of(place);
        let element = self.elements[self.place(product, row, column)];
        element.to_integer().expect("an integer was written there")
    }
}

fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

/// Small integers, most of them positive, so that long sums have more bits than elements of 16
/// bits. Those of A have more bits than f32 has where the type is wider than that, and as integers
/// their sums wrap.
fn a_value<T: Number>(number: usize) -> i32 {
    let small = scrambled(number) % 7 - 1;
    match T::TYPE {
        ElementType::F64 | ElementType::I32 => small * ((1 << 27) + 1),
        ElementType::F32 | ElementType::Bf16 | ElementType::F16 => small,
    }
}

fn b_value(number: usize) -> i32 {
    scrambled(number + 1_000_000) % 6 - 1
}

/// 16 bits that look random.
fn scrambled(number: usize) -> i32 {
    let word = (number as u32).wrapping_mul(0x9e37_79b9);
    ((word ^ word >> 15).wrapping_mul(0x85eb_ca6b) >> 16) as i32
}

/// A result, rounded once.
fn rounded<T: Number>(value: i64) -> T {
    match T::TYPE {
        ElementType::I32 => T::from_integer(value as i32),
        _ => T::nearest(value as f64),
    }
}

/// An integer as alpha or beta of matrices of `T`.
fn scalar<T: Number>(value: i32) -> Result<T::Scalar, Failed> {
    let scalar = T::from_integer(value).scalar();
    Ok(T::Scalar::of(scalar).ok_or("alpha is no scalar of the type")?)
}

struct Problem<T, C> {
    case: Case,
    a: Matrices<T>,
    b: Matrices<T>,
    c: Matrices<C>,
}

impl<T: Number + MultipliesInto<C>, C: Number> Problem<T, C> {
    fn new(case: Case) -> Problem<T, C> {
        let Shape { m, n, k } = case.shape;
        let reads = case.alpha != 0;
        let reads_c = case.beta != 0;
        let a = |number| reads.then(|| a_value::<T>(number));
        let b = |number| reads.then(|| b_value(number));
        Problem {
            a: Matrices::new(&case, case.transposes.0.of((m, k)), a),
            b: Matrices::new(&case, case.transposes.1.of((k, n)), b),
            c: Matrices::new(&case, (m, n), |number| reads_c.then(|| b_value(number))),
            case,
        }
    }

    /// The memory of C after the product.
    fn want(&self) -> Vec<C> {
        let Case {
            shape,
            transposes,
            batch,
            alpha,
            beta,
            ..
        } = self.case;
        let mut want = self.c.elements.clone();
        let depth = if alpha == 0 { 0 } else { shape.k };
        for product in 0..batch {
            for (row, column) in pairs(shape.m, shape.n) {
                let of_a = |l| self.a.integer(product, transposes.0, (row, l));
                let of_b = |l| self.b.integer(product, transposes.1, (l, column));
                let sum: i64 = (0..depth).map(|l| of_a(l) * of_b(l)).sum();
                let before = match beta {
                    0 => 0,
                    _ => self.c.integer(product, Transpose::No, (row, column)),
                };
                let place = self.c.place(product, row, column);
                want[place] = rounded(i64::from(alpha) * sum + i64::from(beta) * before);
            }
        }
        want
    }

    /// What a plan needs to know about it.
    fn call(&self) -> Call {
        let operand = |matrices: &Matrices<T>, transpose| {
            let address = matrices.offset * size_of::<T>();
            Operand::at(address, matrices.leading, T::TYPE, transpose)
        };
        let batch = Batch {
            count: self.case.batch,
            strides: [self.a.stride, self.b.stride, self.c.stride],
        };
        Call {
            shape: self.case.shape,
            a: operand(&self.a, self.case.transposes.0),
            b: operand(&self.b, self.case.transposes.1),
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
        let name = format!("{} {:?}", T::DATA_TYPE, self.case);
        let (got, said) = self.got(context)?;
        let is_empty = shape.is_empty() || batch == 0;
        let does_nothing = is_empty || beta == 1 && (alpha == 0 || shape.k == 0);
        if lacks_tensor_cores::<T>(library) && !does_nothing {
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
        let same = |(got, want): (&C, &C)| got == want || got.bits() == want.bits();
        let wrong = got.iter().zip(&self.want()).position(|pair| !same(pair));
        assert_eq!(wrong, None, "{name}");
        Ok(())
    }
}

/// Whether this is a type that only tensor cores from 8.0 on multiply, and the device has none.
fn lacks_tensor_cores<T: Number>(library: &Library) -> bool {
    T::TYPE.bytes() == 2 && library.device.facts().capability < 80
}

fn multiplies_wherever_matrices_lie<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    let context = Context::new(library.device, library.workspace)?;
    for transposes in each_transposition() {
        // Rows of A, B and C at multiples of 16 bytes, of the type's own size, and in between.
        for (padding, offset) in [(0, 0), (3, 1), (4, 2), (8, 8)] {
            let case = Case {
                padding,
                offset,
                ..Case::of(33, 72, 40, transposes)
            };
            Problem::<T, C>::new(case).check(library, &context)?;
        }
    }
    Ok(())
}

fn follows_alpha_and_beta<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    let context = Context::new(library.device, library.workspace)?;
    for alpha in [-2, 0, 1] {
        for (beta, k) in [(-1, 17), (0, 17), (1, 17), (2, 0), (0, 0), (1, 0)] {
            let transposes = (Transpose::No, Transpose::No);
            let case = Case {
                alpha,
                beta,
                ..Case::of(20, 35, k, transposes)
            };
            Problem::<T, C>::new(case).check(library, &context)?;
        }
    }
    Ok(())
}

fn multiplies_batches<T: Number + MultipliesInto<C>, C: Number>(
    library: &Library,
) -> Result<(), Failed> {
    let context = Context::new(library.device, library.workspace)?;
    for transposes in each_transposition() {
        for (batch, gap) in [(3, 0), (2, 5), (0, 0)] {
            let case = Case {
                batch,
                gap,
                alpha: 2,
                beta: -1,
                ..Case::of(19, 40, 24, transposes)
            };
            Problem::<T, C>::new(case).check(library, &context)?;
        }
    }
    Ok(())
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
    for (m, n, k) in lengths {
        let case = Case {
            padding: 1,
            offset: 1,
            alpha: 2,
            beta: -1,
            ..Case::of(m, n, k, (Transpose::Yes, Transpose::Yes))
        };
        let problem = Problem::<T, C>::new(case);
        let plan = context.plan(T::DATA_TYPE, problem.call());
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
        ..Case::of(40, 30, 8001, (Transpose::No, Transpose::No))
    };
    let problem = Problem::<T, C>::new(case);
    let small = Context::new(library.device, 0)?;
    if lacks_tensor_cores::<T>(library) {
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
    assert!(enough.plan(T::DATA_TYPE, problem.call()).is_ok());
    Ok(())
}

type Claim = fn(&Library) -> Result<(), Failed>;

/// The claims about a type, each by its name.
fn claims_of<T: Number + MultipliesInto<C>, C: Number>() -> Vec<(&'static str, Claim)> {
    let mut claims: Vec<(&str, Claim)> = vec![
        (
            "multiplies_wherever_matrices_lie",
            multiplies_wherever_matrices_lie::<T, C>,
        ),
        ("follows_alpha_and_beta", follows_alpha_and_beta::<T, C>),
        ("multiplies_batches", multiplies_batches::<T, C>),
        (
            "cuts_what_the_workspace_is_too_small_for",
            cuts_what_the_workspace_is_too_small_for::<T, C>,
        ),
    ];
    if C::TYPE.bytes() == 2 {
        claims.push((
            "refuses_long_sums_that_the_workspace_is_too_small_for",
            refuses_long_sums_that_the_workspace_is_too_small_for::<T, C>,
        ));
    }
    claims
}

/// All claims about all types, each by its name.
pub fn claims() -> Vec<(String, Claim)> {
    fn named<T: Number + MultipliesInto<C>, C: Number>() -> impl Iterator<Item = (String, Claim)> {
        let claims = claims_of::<T, C>().into_iter();
        claims.map(|(name, claim)| (format!("{}::{name}", T::DATA_TYPE), claim))
    }
    named::<f32, f32>()
        .chain(named::<f64, f64>())
        .chain(named::<i32, i32>())
        .chain(named::<Bf16, Bf16>())
        .chain(named::<F16, F16>())
        .chain(named::<Bf16, f32>())
        .chain(named::<F16, f32>())
        .collect()
}
