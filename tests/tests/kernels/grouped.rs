//! Grouped products: rows of each group are multiplied by the group's own B, wherever tiles begin
//! and end, and all other rows stay as they are.

use gpu_gemm::{
    Bf16, Context, DataType, Device, Element, F16, GemmError, Input, MultipliesInto, Scalar,
    Transpose, gemm_grouped,
};
use libtest_mimic::{Failed, Trial};
use tests::Tier;
use tests::devices::Backend;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for backend in [Backend::Simulator, Backend::Gpu] {
        let mut add = |tier, name: String, transpose, test: fn(&Device, Transpose) -> Tested| {
            let name = format!("grouped::{name}");
            let test = move || backend.run(|device| test(device, transpose));
            trials.extend(tests::trial(tier, backend, name, test));
        };
        for transpose in Transpose::ALL {
            // The two types differ in one instruction.
            let (bf16, f16) = match transpose {
                Transpose::No => (Tier::Quick, Tier::Exhaustive),
                Transpose::Yes => (Tier::Exhaustive, Tier::Quick),
            };
            let name = |data_type: DataType| format!("{data_type}::multiplies_b_{transpose:?}");
            add(
                bf16,
                name(DataType::BF16),
                transpose,
                all_right::<Bf16, Bf16>,
            );
            add(f16, name(DataType::F16), transpose, all_right::<F16, F16>);
        }
        let name = "refuses_what_no_kernel_multiplies".to_string();
        add(Tier::Quick, name, Transpose::No, refuses);
    }
    trials
}

type Tested = Result<(), Failed>;

/// A product, and where its groups end.
#[derive(Clone, Copy, Debug)]
struct Case {
    ends: &'static [i32],
    shape: (usize, usize, usize),
    beta: f32,
    /// Elements between rows of A and B, in eights, and of C.
    padding: (usize, usize),
}

/// The first three take tiles of 128 x 256, the others of 64 x 128.
const CASES: [Case; 9] = {
    const fn case(ends: &'static [i32], shape: (usize, usize, usize)) -> Case {
        Case {
            ends,
            shape,
            beta: 0.0,
            padding: (0, 0),
        }
    }
    [
        // Consumers with few rows, also after all 64, and without any; an empty group, and rows of
        // no group. The ring goes round after a tile in which a consumer has no rows.
        case(&[70, 70, 90, 221], (300, 520, 200)),
        Case {
            beta: -1.0,
            padding: (1, 8),
            ..case(&[200, 201, 300], (300, 520, 40))
        },
        // All of the rows, exact tiles.
        case(&[256, 384], (384, 512, 64)),
        case(&[0, 5, 69, 69, 100, 100], (110, 136, 200)),
        case(&[0, 130, 130], (130, 128, 72)),
        case(&[0, 0, 0], (40, 128, 64)),
        // Rows of C are not aligned, or only do not end so.
        case(&[3, 67, 90], (90, 131, 24)),
        Case {
            padding: (0, 4),
            ..case(&[33, 65], (70, 132, 24))
        },
        // Nothing is multiplied.
        Case {
            beta: 2.0,
            ..case(&[40, 50], (60, 72, 0))
        },
    ]
};

fn all_right<T, C>(device: &Device, transpose: Transpose) -> Tested
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    CASES.into_iter().try_for_each(|case| {
        let wrong = is_right::<T, C>(device, transpose, case);
        wrong.map_err(|error| format!("{case:?}: {}", error.message().unwrap_or_default()).into())
    })
}

/// Small integers: each sum is exact, and C is rounded once.
fn integers<T: Element>(count: usize, factor: usize) -> Vec<T> {
    let integer = |i: usize| ((i + i / 7) * factor % 5) as f32 - 2.0;
    (0..count).map(|i| of(integer(i))).collect()
}

fn of<T: Element>(number: f32) -> T {
    T::of(Scalar::F32(number)).expect("a type with sums in f32")
}

fn number<T: Element<Scalar = f32>>(of: &T) -> f64 {
    f64::from(f32::of(of.scalar()).expect("an f32"))
}

fn is_right<T: MultipliesInto<C, Scalar = f32>, C: Element<Scalar = f32>>(
    device: &Device,
    transpose: Transpose,
    case: Case,
) -> Tested {
    let (m, n, k) = case.shape;
    let (rows_of_b, columns_of_b) = transpose.of((k, n));
    let lda = k.next_multiple_of(8).max(8) + 8 * case.padding.0;
    let ldb = columns_of_b.next_multiple_of(8).max(8) + 8 * case.padding.0;
    let (stride_b, ldc) = (rows_of_b * ldb + 16, n + case.padding.1);
    let a: Vec<T> = integers(m * lda, 3);
    let b: Vec<T> = integers(case.ends.len() * stride_b, 7);
    let mut c: Vec<C> = integers(m * ldc, 11);
    let group_of = |row: usize| case.ends.iter().position(|end| row < *end as usize);
    if case.beta == 0.0 {
        for place in (0..m * ldc).filter(|place| group_of(place / ldc).is_some()) {
            // Not read. Between rows, it is not written either.
            if place % ldc < n {
                c[place] = of(f32::NAN);
            }
        }
    }
    let context = Context::new(device, 0)?;
    let (on_a, on_b, mut on_c) = (
        context.upload(&a)?,
        context.upload(&b)?,
        context.upload(&c)?,
    );
    let ends = context.upload(case.ends)?;
    let b_as_stored = Input::from(&on_b).with(transpose);
    // SAFETY: `download` waits for the product, and the ends are in order.
    unsafe {
        gemm_grouped(
            &context,
            0.5,
            &on_a,
            lda,
            b_as_stored,
            ldb,
            stride_b,
            case.beta,
            &mut on_c,
            ldc,
            &ends,
            m,
            n,
            k,
            case.ends.len(),
        )?;
    }
    let got = context.download(&on_c)?;
    for place in 0..m * ldc {
        let (row, col) = (place / ldc, place % ldc);
        let expected = match group_of(row) {
            Some(group) if col < n => {
                let term = |i: usize| {
                    let (row_of_b, column) = transpose.of((i, col));
                    let in_b = group * stride_b + row_of_b * ldb + column;
                    number(&a[row * lda + i]) * number(&b[in_b])
                };
                let product = 0.5 * (0..k).map(term).sum::<f64>();
                let old = match case.beta {
                    0.0 => 0.0,
                    beta => f64::from(beta) * number(&c[place]),
                };
                of((product + old) as f32)
            }
            _ => c[place],
        };
        if got[place] != expected {
            let (got, expected) = (number(&got[place]), number(&expected));
            return Err(format!("C[{row}][{col}] is {got}, not {expected}").into());
        }
    }
    Ok(())
}

fn refuses(device: &Device, _: Transpose) -> Tested {
    let context = Context::new(device, 0)?;
    let (halves, floats) = (vec![Bf16::default(); 64], vec![0.0f32; 64]);
    let (a, mut c) = (context.upload(&halves)?, context.upload(&halves)?);
    let (float_a, mut float_c) = (context.upload(&floats)?, context.upload(&floats)?);
    let ends = context.upload(&[1, 2])?;
    let mut refused = |input: Input<'_, Bf16>, lda, groups| {
        // SAFETY: the groups have two rows.
        let tried = unsafe {
            gemm_grouped(
                &context, 1.0, input, lda, &a, 8, 0, 0.0, &mut c, 8, &ends, 2, 8, 8, groups,
            )
        };
        tried.map_err(|error| error.to_string())
    };
    assert_eq!(refused(Input::from(&a), 8, 2), Ok(()));
    let layouts = [(Input::from(&a).transposed(), 8), (Input::from(&a), 9)];
    for (input, lda) in layouts {
        let message = refused(input, lda, 2).unwrap_err();
        assert!(message.contains("A not transposed, the rows"), "{message}");
    }
    let short = refused(Input::from(&a), 8, 3).unwrap_err();
    assert!(short.starts_with("E, stored as 1 x 3"), "{short}");
    // SAFETY: as above.
    let of_f32 = unsafe {
        gemm_grouped(
            &context,
            1.0,
            &float_a,
            8,
            &float_a,
            8,
            0,
            0.0,
            &mut float_c,
            8,
            &ends,
            2,
            8,
            8,
            2,
        )
    };
    assert!(matches!(
        of_f32,
        Err(GemmError::NoGroupedKernel {
            data_type: DataType::F32
        })
    ));
    Ok(())
}
