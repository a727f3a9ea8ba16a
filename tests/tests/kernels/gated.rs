//! Gated products: each element of C is made of the sums with both matrices B at its place,
//! wherever the second one is, and only elements of C are.

use std::cell::UnsafeCell;

use gpu_gemm::gpu_kernels::epilogue::{
    At, Compiled, Epilogue, Fused, Gated, GeluTanh, PerColScale, Silu, Then,
};
use gpu_gemm::gpu_kernels::fused;
use gpu_gemm::{
    Bf16, Context, Device, Element, F16, GemmError, Input, MultipliesInto, Transpose, gemm_gated,
};
use libtest_mimic::Trial;
use tests::Tier;
use tests::devices::Backend;

use super::sums::{Tested, each, number, of, same};

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |tier, backend: Backend, name: String, test: Test| {
        let name = format!("gated::{name}");
        let test = move || backend.run(test);
        trials.extend(tests::trial(tier, backend, name, test));
    };
    // The two types differ in one instruction. No PTX has the kernels with the gate of these tests.
    let (quick, thorough) = (Tier::Quick, Tier::Exhaustive);
    let own: [(_, &str, Test); 4] = [
        (quick, "bf16::No", own_gate::<Bf16, Bf16, false>),
        (thorough, "bf16::Yes", own_gate::<Bf16, Bf16, true>),
        (thorough, "f16::No", own_gate::<F16, F16, false>),
        (quick, "f16::Yes", own_gate::<F16, F16, true>),
    ];
    for (tier, name, test) in own {
        let name = format!("{name}::a_gate_gets_both_sums_of_each_element_once");
        add(tier, Backend::Simulator, name, test);
    }
    for backend in [Backend::Simulator, Backend::Gpu] {
        let name = |of: &str| format!("{of}::is_within_its_bound");
        add(quick, backend, name("swiglu::bf16"), swiglu::<Bf16, Bf16>);
        add(thorough, backend, name("swiglu::f16"), swiglu::<F16, F16>);
        add(thorough, backend, name("geglu"), geglu);
        let name = "refuses_what_no_kernel_multiplies".to_string();
        add(quick, backend, name, refuses);
    }
    trials
}

type Test = fn(&Device) -> Tested;

/// `gate * up + of_col[col]`, and how often each element has passed.
#[derive(Clone, Copy)]
#[repr(C)]
struct Marked {
    of_col: *const f32,
    passed: *mut u32,
    m: usize,
    n: usize,
}

impl Epilogue for Marked {
    unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
        values
    }

    const IS_GATE: bool = true;

    unsafe fn gate<const N: usize>(&self, at: At, gates: [f32; N], ups: [f32; N]) -> [f32; N] {
        let mut values = [0.0; N];
        for i in 0..at.count {
            let (row, col) = (at.row, at.col + i);
            assert!(row < self.m && col < self.n, "no element of C");
            // SAFETY: there is a number for each column, and each element is one thread's.
            unsafe {
                values[i] = gates[i] * ups[i] + *self.of_col.add(col);
                *self.passed.add(row * self.n + col) += 1;
            }
        }
        values
    }
}

fused! {
    static MARKED: Then<Marked, PerColScale<f32>> = [
        gated::{
            gated_bf16, gated_nt_bf16, gated_f16, gated_nt_f16, gated_64x64_bf16,
            gated_64x64_nt_bf16, gated_64x64_f16, gated_64x64_nt_f16,
        },
    ];
}

/// A product, and how it is stored.
#[derive(Clone, Copy, Debug)]
struct Case {
    shape: (usize, usize, usize),
    beta: f32,
    /// Elements between rows of A and B, in eights, and of C.
    padding: (usize, usize),
    /// Whether the rows of the two matrices B follow each other in one row, or else the matrices.
    side_by_side: bool,
}

/// The first three take tiles of 128 x 128, the others of 64 x 64.
const CASES: [Case; 8] = {
    const fn case(m: usize, n: usize, k: usize) -> Case {
        Case {
            shape: (m, n, k),
            beta: 0.0,
            padding: (0, 0),
            side_by_side: false,
        }
    }
    [
        // The ring goes round, and tiles have columns that C lacks, which B2 has.
        case(300, 264, 328),
        Case {
            side_by_side: true,
            ..case(131, 520, 40)
        },
        Case {
            beta: -1.0,
            padding: (1, 3),
            ..case(201, 333, 72)
        },
        case(64, 64, 64),
        case(37, 72, 200),
        Case {
            side_by_side: true,
            padding: (2, 0),
            ..case(1, 96, 24)
        },
        // Rows of C are not aligned.
        case(5, 131, 16),
        // Nothing is multiplied.
        Case {
            beta: 2.0,
            ..case(40, 72, 0)
        },
    ]
};

/// A case's matrices as stored, of numbers that `of` gives for a place.
struct Matrices<T, C> {
    a: Vec<T>,
    b: Vec<T>,
    c: Vec<C>,
    lda: usize,
    ldb: usize,
    stride_b: usize,
    ldc: usize,
    transpose: Transpose,
}

impl<T, C> Matrices<T, C>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    fn of(case: Case, transpose: Transpose, number: impl Fn(usize) -> f32) -> Matrices<T, C> {
        let (m, n, k) = case.shape;
        let (rows, columns) = transpose.of((k, n));
        let padded = |columns: usize| columns.next_multiple_of(8).max(8) + 8 * case.padding.0;
        let (lda, of_one, ldc) = (padded(k), padded(columns), n + case.padding.1);
        let (ldb, stride_b) = match case.side_by_side {
            true => (2 * of_one, of_one),
            false => (of_one, rows * of_one + 16),
        };
        let numbers = |count, from| (from..from + count).map(&number);
        Matrices {
            a: numbers(m * lda, 0).map(of).collect(),
            b: numbers(rows * ldb + stride_b, 1_000_003).map(of).collect(),
            c: numbers(m * ldc, 2_000_029).map(of).collect(),
            lda,
            ldb,
            stride_b,
            ldc,
            transpose,
        }
    }

    /// The terms of a sum with one of the matrices B.
    fn terms(&self, k: usize, (row, col): (usize, usize), matrix: usize) -> Vec<f64> {
        let term = |i: usize| {
            let (row_of_b, column) = self.transpose.of((i, col));
            let b = self.b[matrix * self.stride_b + row_of_b * self.ldb + column];
            number(&self.a[row * self.lda + i]) * number(&b)
        };
        (0..k).map(term).collect()
    }

    /// C as `gemm_gated` leaves it.
    fn multiplied<E: Epilogue>(
        &self,
        context: &Context,
        (kernels, gate): (&'static Fused<E>, E),
        (alpha, beta): (f32, f32),
        (m, n, k): (usize, usize, usize),
    ) -> Result<Vec<C>, GemmError> {
        let (on_a, on_b) = (context.upload(&self.a)?, context.upload(&self.b)?);
        let mut on_c = context.upload(&self.c)?;
        let b = Input::from(&on_b).with(self.transpose);
        let stride = self.stride_b;
        // SAFETY: `download` waits for the product, and what the gate reads is the caller's.
        unsafe {
            gemm_gated(
                context, kernels, gate, alpha, &on_a, self.lda, b, self.ldb, stride, beta,
                &mut on_c, self.ldc, m, n, k,
            )?;
        }
        Ok(context.download(&on_c)?)
    }
}

/// Small integers: all sums are exact, and C is rounded once.
fn own_gate<T, C, const TRANSPOSED: bool>(device: &Device) -> Tested
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    let transpose = match TRANSPOSED {
        true => Transpose::Yes,
        false => Transpose::No,
    };
    each(CASES, |case| {
        let ((m, n, k), beta) = (case.shape, case.beta);
        let mut matrices =
            Matrices::<T, C>::of(case, transpose, |i| ((i + i / 7) * 3 % 5) as f32 - 2.0);
        if beta == 0.0 {
            for place in (0..m * matrices.ldc).filter(|place| place % matrices.ldc < n) {
                matrices.c[place] = of(f32::NAN); // not read
            }
        }
        let of_col: Vec<f32> = (0..n).map(|col| (col % 11) as f32).collect();
        let scale: Vec<f32> = (0..n).map(|col| (1 << (col % 3)) as f32).collect();
        let passed: Vec<UnsafeCell<u32>> = (0..m * n).map(|_| UnsafeCell::new(0)).collect();
        let marked = Marked {
            of_col: of_col.as_ptr(),
            passed: UnsafeCell::raw_get(passed.as_ptr()),
            m,
            n,
        };
        let gate = Then(marked, PerColScale(scale.as_ptr()));
        let context = Context::new(device, 0)?;
        let got = matrices.multiplied(&context, (&MARKED, gate), (0.5, beta), (m, n, k))?;
        let passed = passed.into_iter().map(UnsafeCell::into_inner);
        if let Some((index, times)) = passed.enumerate().find(|(_, times)| *times != 1) {
            return Err(format!("element {index} passed {times} times").into());
        }
        for (place, got) in got.iter().enumerate() {
            let (row, col) = (place / matrices.ldc, place % matrices.ldc);
            let expected = if col < n {
                let sum = |matrix| matrices.terms(k, (row, col), matrix).iter().sum::<f64>();
                let old = match beta {
                    0.0 => 0.0,
                    beta => f64::from(beta) * number(&matrices.c[place]),
                };
                let value = (0.5 * sum(0)) * (0.5 * sum(1)) + f64::from(of_col[col]) + old;
                of((value * f64::from(scale[col])) as f32)
            } else {
                matrices.c[place]
            };
            same(got, &expected, format_args!("[{row}][{col}]"))?;
        }
        Ok(())
    })
}

fn swiglu<T, C>(device: &Device) -> Tested
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    let silu = |x: f64| x / (1.0 + (-x).exp());
    Transpose::ALL.into_iter().try_for_each(|transpose| {
        within_bound::<T, C, _>(
            device,
            transpose,
            (Compiled::kernels(), Gated(Silu)),
            silu,
            1.1,
        )
    })
}

fn geglu(device: &Device) -> Tested {
    let gelu = |x: f64| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        x / (1.0 + (-2.0 * inner).exp())
    };
    let kernels = (Compiled::kernels(), Gated(GeluTanh));
    within_bound::<Bf16, Bf16, _>(device, Transpose::Yes, kernels, gelu, 1.13)
}

/// `f(g) * u`, of sums g and u with errors of at most e(g) and e(u), where f has a slope of at most
/// `slope` and in f32 an error of at most e(f), is off by at most
///
///     (slope * e(g) + e(f)) * (|u| + e(u)) + |f(g)| * e(u),
///
/// and is rounded to f32 and to the type of C. `crates/verification/src/epilogue.rs` derives e(f)
/// and the slopes. Products of 16 bits are exact, and each of k + 1 additions, which truncate at
/// f32's last bit or below, loses no more than 2^-22 of the sum of the magnitudes.
fn within_bound<T, C, E: Epilogue>(
    device: &Device,
    transpose: Transpose,
    kernels: (&'static Fused<E>, E),
    function: impl Fn(f64) -> f64,
    slope: f64,
) -> Tested
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    // bf16 has 8 bits, f16 11.
    let is_bf16 = number(&of::<C>(1.0 + 1.0 / 256.0)) != 1.0 + 1.0 / 256.0;
    let last_bit = 2f64.powi(if is_bf16 { -8 } else { -11 });
    for case in CASES.into_iter().filter(|case| case.beta == 0.0) {
        let (m, n, k) = case.shape;
        let random = |i: usize| {
            let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let matrices = Matrices::<T, C>::of(case, transpose, random);
        let context = Context::new(device, 0)?;
        let got = matrices.multiplied(&context, kernels, (0.75, 0.0), case.shape)?;
        for row in 0..m {
            for col in 0..n {
                let [(g, of_g), (u, of_u)] = [0, 1].map(|matrix| {
                    let terms = matrices.terms(k, (row, col), matrix);
                    let size: f64 = terms.iter().map(|term| term.abs()).sum();
                    let error = (k + 1) as f64 * 2f64.powi(-22) * 0.75 * size;
                    (0.75 * terms.iter().sum::<f64>(), error)
                });
                let right = function(g) * u;
                let of_function = 2f64.powi(-21) * (function(g).abs() + 1.0);
                let off =
                    (slope * of_g + of_function) * (u.abs() + of_u) + function(g).abs() * of_u;
                let rounding = (right.abs() + off) * (last_bit + 2f64.powi(-24)) + 2f64.powi(-25);
                let value = number(&got[row * matrices.ldc + col]);
                let is_within = (value - right).abs() <= off + rounding;
                if !is_within {
                    return Err(format!("{case:?}: C[{row}][{col}] is {value}, not {right}").into());
                }
            }
        }
    }
    Ok(())
}

fn refuses(device: &Device) -> Tested {
    let context = Context::new(device, 0)?;
    let halves = vec![Bf16::default(); 256];
    let (a, b) = (context.upload(&halves)?, context.upload(&halves)?);
    let mut c = context.upload(&halves)?;
    let mut refused = |a: Input<'_, Bf16>, lda, stride_b| {
        let (kernels, gate) = (Compiled::kernels(), Gated(Silu));
        // SAFETY: `Context` waits before the buffers are freed.
        let tried = unsafe {
            gemm_gated(
                &context, kernels, gate, 1.0, a, lda, &b, 8, stride_b, 0.0, &mut c, 8, 8, 8, 8,
            )
        };
        tried.map_err(|error| error.to_string())
    };
    assert_eq!(refused(Input::from(&a), 8, 64), Ok(()));
    for (input, lda, stride_b) in [
        (Input::from(&a).transposed(), 8, 64),
        (Input::from(&a), 9, 64),
        (Input::from(&a), 8, 68),
    ] {
        let message = refused(input, lda, stride_b).unwrap_err();
        assert!(
            message.contains("SWIGLU computes this gated product"),
            "{message}"
        );
    }
    let short = refused(Input::from(&a), 8, 200).unwrap_err();
    assert!(short.starts_with("B, 2 matrices stored as"), "{short}");
    Ok(())
}
