//! Grouped products: rows of each group are multiplied by the group's own B, wherever tiles begin
//! and end, and all other rows stay as they are. Along K, each group's C is the sum over its own
//! rows.

use gpu_gemm::simulator::ThreadOrder;
use gpu_gemm::{
    Bf16, Context, DataType, Device, Element, F16, GemmError, Input, MultipliesInto, Simulator,
    Transpose, gemm_grouped, gemm_grouped_along_k,
};
use libtest_mimic::{Failed, Trial};
use tests::Tier;
use tests::devices::Backend;

use super::sums::{Tested, each, number, of, same};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for backend in [Backend::Simulator, Backend::Gpu] {
        let mut add = |tier, name: String, transpose, test: Test| {
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
        for (tier, of, test) in [
            (Tier::Quick, "bf16_f32", along_k::<Bf16, f32> as Test),
            (Tier::Quick, "f16", along_k::<F16, F16>),
            (Tier::Exhaustive, "bf16", along_k::<Bf16, Bf16>),
            (Tier::Exhaustive, "f16_f32", along_k::<F16, f32>),
        ] {
            let name = format!("along_k::{of}::sums_the_rows_of_each_group_alone");
            add(tier, name, Transpose::No, test);
        }
        let name = "refuses_what_no_kernel_multiplies".to_string();
        add(Tier::Quick, name, Transpose::No, refuses);
    }
    trials.extend(tests::simulated!("grouped", along_k_in_each_order));
    trials
}

type Test = fn(&Device, Transpose) -> Tested;

/// A product, and where its groups end.
#[derive(Clone, Copy, Debug)]
struct Case {
    ends: &'static [i32],
    shape: (usize, usize, usize),
    beta: f32,
    /// Elements between rows of A and B, in eights, and of C.
    padding: (usize, usize),
}

const fn case(ends: &'static [i32], shape: (usize, usize, usize)) -> Case {
    Case {
        ends,
        shape,
        beta: 0.0,
        padding: (0, 0),
    }
}

/// The first three take tiles of 128 x 256, the others of 64 x 128.
const CASES: [Case; 9] = [
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
];

fn all_right<T, C>(device: &Device, transpose: Transpose) -> Tested
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    each(CASES, |case| is_right::<T, C>(device, transpose, case))
}

/// Small integers: each sum is exact, and C is rounded once.
fn integers<T: Element>(count: usize, factor: usize) -> Vec<T> {
    let integer = |i: usize| ((i + i / 7) * factor % 5) as f32 - 2.0;
    (0..count).map(|i| of(integer(i))).collect()
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
    let b_stored = Input::from(&on_b).with(transpose);
    let (beta, groups) = (case.beta, case.ends.len());
    // SAFETY: `download` waits for the product, and the ends are in order.
    unsafe {
        gemm_grouped(
            &context, 0.5, &on_a, lda, b_stored, ldb, stride_b, beta, &mut on_c, ldc, &ends, m, n,
            k, groups,
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
        same(&got[place], &expected, format_args!("[{row}][{col}]"))?;
    }
    Ok(())
}

/// Groups along K: their last k-iteration has between 1 and all 64 rows, or there is none. The ring
/// goes round within a group and after it.
const ALONG_K: [Case; 6] = [
    case(&[70, 70, 91, 421], (136, 264, 430)),
    case(&[64, 192, 194], (128, 256, 194)),
    Case {
        beta: -1.0,
        padding: (1, 8),
        ..case(&[3, 66, 190], (200, 72, 200))
    },
    // Rows of C are not aligned.
    case(&[0, 63, 63, 128], (65, 131, 128)),
    case(&[0, 0], (40, 128, 8)),
    // Nothing is multiplied.
    Case {
        beta: 2.0,
        ..case(&[0, 0], (24, 72, 0))
    },
];

fn along_k<T, C>(device: &Device, _: Transpose) -> Tested
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    each(ALONG_K, |case| sums_along_k::<T, C>(device, case))
}

/// Consumers overwrite rows of tiles for each other.
fn along_k_in_each_order() {
    for order in ThreadOrder::ALL {
        // SAFETY: launches are otherwise unchanged.
        let simulator = unsafe { Simulator::configured(move |one| one.thread_order(order)) };
        let summed = sums_along_k::<Bf16, f32>(&simulator.into(), ALONG_K[0]);
        assert!(summed.is_ok(), "{order:?}: {summed:?}");
    }
}

fn sums_along_k<T: MultipliesInto<C, Scalar = f32>, C: Element<Scalar = f32>>(
    device: &Device,
    case: Case,
) -> Tested {
    let (m, n, k) = case.shape;
    let [lda, ldb] = [m, n].map(|columns| columns.next_multiple_of(8) + 8 * case.padding.0);
    let (ldc, stride_c) = (n + case.padding.1, m * (n + case.padding.1) + 24);
    let mut a: Vec<T> = integers(k * lda, 3);
    let mut b: Vec<T> = integers(k * ldb, 7);
    let mut fill = |of_a: f32, of_b: f32, row: usize| {
        a[row * lda..][..lda].fill(of(of_a));
        b[row * ldb..][..ldb].fill(of(of_b));
    };
    // An infinite group is not its neighbours' problem, nor is a NaN after the last.
    if case.ends.len() > 2 {
        let first = case.ends[1] as usize;
        fill(f32::INFINITY, 1.0, first);
        fill(1.0, f32::INFINITY, first + 1);
    }
    let end = case.ends.iter().max().map_or(0, |end| *end as usize);
    (end..k).for_each(|row| fill(f32::NAN, f32::NAN, row));
    let mut c: Vec<C> = integers(case.ends.len() * stride_c, 11);
    let in_c = |place: usize| place % stride_c < m * ldc && place % stride_c % ldc < n;
    if case.beta == 0.0 {
        let places = (0..c.len()).filter(|place| in_c(*place));
        places.for_each(|place| c[place] = of(f32::NAN)); // not read
    }
    let context = Context::new(device, 0)?;
    let (on_a, on_b) = (context.upload(&a)?, context.upload(&b)?);
    let (mut on_c, ends) = (context.upload(&c)?, context.upload(case.ends)?);
    let a_stored = Input::from(&on_a).transposed();
    let (beta, groups) = (case.beta, case.ends.len());
    // SAFETY: `download` waits for the product, and the ends are in order.
    unsafe {
        gemm_grouped_along_k(
            &context, 0.5, a_stored, lda, &on_b, ldb, beta, &mut on_c, ldc, stride_c, &ends, m, n,
            k, groups,
        )?;
    }
    let got = context.download(&on_c)?;
    for place in 0..c.len() {
        let (group, row, col) = (
            place / stride_c,
            place % stride_c / ldc,
            place % stride_c % ldc,
        );
        let expected = match in_c(place) {
            true => {
                let first = group.checked_sub(1).map_or(0, |before| case.ends[before]);
                let term = |i: usize| number(&a[i * lda + row]) * number(&b[i * ldb + col]);
                let rows = first as usize..case.ends[group] as usize;
                let old = match case.beta {
                    0.0 => 0.0,
                    beta => f64::from(beta) * number(&c[place]),
                };
                of((0.5 * rows.map(term).sum::<f64>() + old) as f32)
            }
            false => c[place],
        };
        same(
            &got[place],
            &expected,
            format_args!("[{group}][{row}][{col}]"),
        )?;
    }
    Ok(())
}

fn refuses(device: &Device, _: Transpose) -> Tested {
    let context = Context::new(device, 0)?;
    let (halves, floats) = (vec![Bf16::default(); 64], vec![0.0f32; 64]);
    let (a, mut c) = (context.upload(&halves)?, context.upload(&halves)?);
    let (floats_a, mut to) = (context.upload(&floats)?, context.upload(&floats)?);
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
    let refused_along_k = |input, ldb, stride_c, groups| {
        let mut on_c = context.upload(&floats)?;
        // SAFETY: the groups have two rows.
        let tried = unsafe {
            gemm_grouped_along_k(
                &context, 1.0, input, 8, &a, ldb, 0.0, &mut on_c, 8, stride_c, &ends, 4, 4, 2,
                groups,
            )
        };
        Ok::<_, Failed>(tried.map_err(|error| error.to_string()))
    };
    let transposed = || Input::from(&a).transposed();
    assert_eq!(refused_along_k(transposed(), 8, 32, 2)?, Ok(()));
    for (input, ldb) in [(Input::from(&a), 8), (transposed(), 9)] {
        let message = refused_along_k(input, ldb, 32, 2)?.unwrap_err();
        assert!(
            message.contains("along K in bf16-f32: A and B"),
            "{message}"
        );
    }
    let overlap = refused_along_k(transposed(), 8, 3, 2)?.unwrap_err();
    assert!(overlap.contains("overlap"), "{overlap}");
    // SAFETY: as above.
    let of_f32 = unsafe {
        gemm_grouped(
            &context, 1.0, &floats_a, 8, &floats_a, 8, 0, 0.0, &mut to, 8, &ends, 2, 8, 8, 2,
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
