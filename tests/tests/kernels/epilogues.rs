//! Kernels with an epilogue of their own: each element of C passes it once, with its own row,
//! column and product, and is rounded after it.

use std::cell::UnsafeCell;

use gpu_gemm::gpu_kernels::epilogue::{
    self, Alignment, At, AuxStore, Bias, BlockScales, Clamp, Compiled, DGeluTanh, Epilogue, Gelu,
    GeluTanh, Matrix, PerColBias, PerColScale, PerRowBias, PerRowScale, Relu, Residual, Silu, Then,
};
use gpu_gemm::gpu_kernels::fused;
use gpu_gemm::launch::Parameters;
use gpu_gemm::{
    Bf16, Bindings, Call, Context, DataType, Decomposition, Device, E4m3, Element, ElementType,
    F16, GemmError, Input, MultipliesInto, Plan, Shape, Transpose, Variant, gemm_fused, run,
};
use libtest_mimic::Trial;
use tests::Tier;
use tests::devices::Backend;

use super::sums::{Tested, each, of, same};

pub fn trials() -> Vec<Trial> {
    // These kernels are compiled here, where nothing is optimised.
    let each = MARKED.variants.iter().filter_map(|variant| {
        let entry = variant.entry.name;
        let is_first = FIRSTS
            .split(' ')
            .any(|first| entry == format!("marked_{first}"));
        let tier = if is_first {
            Tier::Quick
        } else {
            Tier::Exhaustive
        };
        let name = format!("epilogues::{entry}::gets_each_element_once");
        tests::trial(tier, Backend::Simulator, name, || of_types(variant))
    });
    let mut trials: Vec<Trial> = each.collect();
    trials.extend(tests::simulated!(
        "epilogues",
        a_product_in_parts_passes_in_places_of_the_whole,
        c_passes_where_nothing_is_multiplied,
        a_kernel_without_its_own_epilogue_is_not_launched,
        what_no_kernel_multiplies_is_an_error,
        ready_made_ones_are_their_formulas,
        blocks_are_multiplied_by_their_scales,
        the_librarys_kernels_have_a_bias_and_an_activation,
    ));
    trials
}

/// `x * of_row[row] + of_col[col] + 64 * product`, and how often each element has passed.
#[derive(Clone, Copy)]
#[repr(C)]
struct Marks {
    of_row: *const f32,
    of_col: *const f32,
    passed: *mut u32,
    m: usize,
    n: usize,
}

impl Epilogue for Marks {
    unsafe fn apply<const N: usize>(&self, at: At, mut values: [f32; N]) -> [f32; N] {
        for (i, value) in values.iter_mut().enumerate().take(at.count) {
            let (row, col) = (at.row, at.col + i);
            assert!(row < self.m && col < self.n, "no element of C");
            // SAFETY: the vectors have all rows and columns, and each element is one thread's.
            unsafe {
                *value = *value * *self.of_row.add(row) + *self.of_col.add(col);
                *self.passed.add((at.product * self.m + row) * self.n + col) += 1;
            }
            *value += 64.0 * at.product as f32;
        }
        values
    }
}

/// Half of it, as a second step.
#[derive(Clone, Copy)]
#[repr(C)]
struct Halved;

impl Epilogue for Halved {
    unsafe fn apply<const N: usize>(&self, _: At, values: [f32; N]) -> [f32; N] {
        values.map(|value| value / 2.0)
    }
}

fused! {
    static MARKED: Then<Marks, Halved> = [
        async_pipeline::{async_pipeline, async_pipeline_64x64_nn, async_pipeline_64x64_sliced},
        wide_thread_tile::{wide_thread_tile},
        few_rows::{
            few_rows_1, few_rows_4x64, few_rows_1_nt, few_rows_8_nt, few_rows_1_bf16,
            few_rows_8_f16_f32, few_rows_8_nt_bf16, few_rows_8_nt_f16_f32,
        },
        tensor_core::{tensor_core, tensor_core_bf16, tensor_core_tt_f16_f32},
        warp_specialized::{warp_specialized_bf16, warp_specialized_nt_f16_f32},
        persistent::{
            persistent_128x128_nt_f16, persistent_64x128_tn_bf16, persistent_64x64_bf16_f32,
        },
        warp_specialized_tf32::{warp_specialized_tf32, warp_specialized_tf32_nt},
        warp_specialized_fp8::{warp_specialized_fp8, warp_specialized_fp8_64x128_bf16},
        split_fp32::{split_fp32},
    ];
}

/// One of each way to finish sums.
const FIRSTS: &str = "\
    async_pipeline wide_thread_tile few_rows_1 few_rows_8_nt_bf16 tensor_core_bf16 \
    warp_specialized_bf16 persistent_64x64_bf16_f32 warp_specialized_tf32 split_fp32";

/// A product, and how it is computed.
#[derive(Clone, Copy, Debug)]
struct Case {
    shape: Shape,
    batch: usize,
    beta: f32,
    /// Elements between rows.
    padding: usize,
    decomposition: Decomposition,
}

const CASES: [Case; 8] = {
    const fn case(m: usize, n: usize, k: usize) -> Case {
        Case {
            shape: Shape::new(m, n, k),
            batch: 1,
            beta: 0.0,
            padding: 0,
            decomposition: Decomposition::DATA_PARALLEL,
        }
    }
    [
        case(33, 70, 40),
        // Boxes of C are stored by the copy engine.
        case(136, 264, 64),
        Case {
            beta: -1.0,
            padding: 3,
            ..case(130, 72, 40)
        },
        Case {
            decomposition: Decomposition::stream_k(7),
            ..case(150, 136, 256)
        },
        // A C of one column without gaps is both a row and a column.
        Case {
            decomposition: Decomposition::stream_k(3),
            ..case(200, 1, 512)
        },
        Case {
            beta: 1.0,
            ..case(1, 200, 64)
        },
        Case {
            padding: 1,
            ..case(67, 3, 64)
        },
        Case {
            batch: 3,
            ..case(20, 24, 16)
        },
    ]
};

fn of_types(variant: &'static Variant) -> Tested {
    each(CASES, |case| match variant.types.data_type() {
        DataType::F32 => passes::<f32, f32>(variant, case),
        DataType::BF16 => passes::<Bf16, Bf16>(variant, case),
        DataType::F16 => passes::<F16, F16>(variant, case),
        DataType::BF16_F32 => passes::<Bf16, f32>(variant, case),
        DataType::F16_F32 => passes::<F16, f32>(variant, case),
        DataType::E4M3 => passes::<E4m3, f32>(variant, case),
        DataType::E4M3_BF16 => passes::<E4m3, Bf16>(variant, case),
        other => Err(format!("no sums in f32: {other}").into()),
    })
}

/// A few small integers.
fn integers<T>(count: usize, factor: usize, of: impl Fn(f32) -> T) -> Vec<T> {
    let integer = |i: usize| (i * factor % 5) as f32 - 2.0;
    (0..count).map(|i| of(integer(i + i / 7))).collect()
}

/// Memory in which the simulator may write.
struct Memory<T>(Vec<UnsafeCell<T>>);

impl<T> Memory<T> {
    fn of(numbers: Vec<T>) -> Memory<T> {
        Memory(numbers.into_iter().map(UnsafeCell::new).collect())
    }

    fn start(&self) -> *mut T {
        UnsafeCell::raw_get(self.0.as_ptr())
    }

    fn into_numbers(self) -> Vec<T> {
        self.0.into_iter().map(UnsafeCell::into_inner).collect()
    }
}

fn passes<T: MultipliesInto<C, Scalar = f32>, C: Element<Scalar = f32>>(
    variant: &'static Variant,
    case: Case,
) -> Tested {
    let Case { shape, batch, .. } = case;
    let Shape { m, n, k } = shape;
    let (lda, ldb, ldc) = (k + case.padding, n + case.padding, n + case.padding);
    let no = Transpose::No;
    let call = Call::spaced(shape, [no, no], T::TYPE, |columns| columns + case.padding)
        .repeated(batch, T::TYPE);
    let plan = Plan::new(variant, call, case.decomposition)?;
    let device = Device::simulator();
    let context = Context::new(&device, plan.workspace_bytes())?;
    let a = integers(batch * m * lda, 3, of::<T>);
    let b = integers(batch * k * ldb, 7, of::<T>);
    let c = integers(batch * m * ldc, 11, of::<C>);
    let (on_a, on_b) = (context.upload(&a)?, context.upload(&b)?);
    let on_c = context.upload(&c)?;
    let workspace = context.allocate::<f32>(plan.workspace_bytes().div_ceil(4).max(1))?;
    let (of_row, of_col) = (integers(m, 2, |x| x + 3.0), integers(n, 1, |x| 10.0 * x));
    let passed = Memory::of(vec![0; batch * m * n]);
    let marks = Marks {
        of_row: of_row.as_ptr(),
        of_col: of_col.as_ptr(),
        passed: passed.start(),
        m,
        n,
    };
    let first = Bindings {
        alpha: 2.0f32.scalar(),
        beta: case.beta.scalar(),
        a: on_a.start().cast(),
        b: on_b.start().cast(),
        c: on_c.start().cast(),
        workspace: workspace.start().cast(),
        epilogue: Parameters::of(Then(marks, Halved)),
        first: [0; 3],
    };
    let backend = device.as_backend(&|| ())?;
    // SAFETY: the matrices are as large as the call says, and the workspace as the plan does.
    unsafe { run(&*backend, &plan, &first)? };
    let got = context.download(&on_c)?;
    for (index, times) in passed.into_numbers().into_iter().enumerate() {
        if times != 1 {
            return Err(format!("element {index} passed {times} times").into());
        }
    }
    for product in 0..batch {
        for row in 0..m {
            for col in 0..ldc {
                let place = (product * m + row) * ldc + col;
                let sum: f32 = (0..k)
                    .map(|i| {
                        let a = value(a[(product * m + row) * lda + i]);
                        a * value(b[(product * k + i) * ldb + col.min(n - 1)])
                    })
                    .sum();
                let value = 2.0 * sum + case.beta * value(c[place]);
                let marked = value * of_row[row] + of_col[col.min(n - 1)] + 64.0 * product as f32;
                let expected = match col < n {
                    true => of(marked / 2.0),
                    false => c[place],
                };
                same(
                    &got[place],
                    &expected,
                    format_args!("[{product}][{row}][{col}]"),
                )?;
            }
        }
    }
    Ok(())
}

fn value<T: Element<Scalar = f32>>(number: T) -> f32 {
    f32::of(number.scalar()).expect("an f32")
}

/// Blocks of 128 along K, of each row of A and of 128 columns of B, in each kernel that has them.
/// Scales are powers of two, so that sums are exact.
fn blocks_are_multiplied_by_their_scales() {
    for (index, variant) in BlockScales::kernels().variants.iter().enumerate() {
        // Along K and along M or N; and the last CTA ends inside a tile, where CTAs divide tiles.
        let along_k = index.is_multiple_of(2);
        match variant.types.c {
            ElementType::F32 => scaled_blocks::<f32>(variant, along_k),
            _ => scaled_blocks::<Bf16>(variant, along_k),
        }
    }
}

fn scaled_blocks<C: Element<Scalar = f32>>(variant: &'static Variant, along_k: bool)
where
    E4m3: MultipliesInto<C>,
{
    const SIDE: usize = BlockScales::SIDE;
    let (shape, batch) = (Shape::new(130, 272, 3 * SIDE + 16), 2);
    let Shape { m, n, k } = shape;
    let (blocks, columns) = (k.div_ceil(SIDE), n.div_ceil(SIDE));
    let transposes = [Transpose::No, Transpose::Yes];
    let call = Call::spaced(shape, transposes, ElementType::E4m3, |columns| columns)
        .repeated(batch, ElementType::E4m3);
    let plan = Plan::new(variant, call, Decomposition::stream_k(5)).unwrap();
    let device = Device::simulator();
    let context = Context::new(&device, plan.workspace_bytes()).unwrap();
    let a = integers(batch * m * k, 3, E4m3::from_f32);
    let b = integers(batch * n * k, 7, E4m3::from_f32);
    let power = |i: usize, count: usize| (2.0f32).powi((i * 5 % count) as i32 - 2);
    let a_scales: Vec<f32> = (0..batch * m * blocks).map(|i| power(i, 7)).collect();
    let b_scales: Vec<f32> = (0..batch * columns * blocks).map(|i| power(i, 6)).collect();
    let strides = |lines: usize| match along_k {
        true => [blocks, 1, lines * blocks],
        false => [1, lines, lines * blocks],
    };
    let scales = BlockScales {
        a: a_scales.as_ptr(),
        a_strides: strides(m),
        b: b_scales.as_ptr(),
        b_strides: strides(columns),
    };
    let (on_a, on_b) = (context.upload(&a).unwrap(), context.upload(&b).unwrap());
    let on_c = context.upload(&vec![of::<C>(1.0); batch * m * n]).unwrap();
    let words = plan.workspace_bytes().div_ceil(4).max(1);
    let workspace = context.allocate::<f32>(words).unwrap();
    let first = Bindings {
        alpha: 2.0f32.scalar(),
        beta: (-1.0f32).scalar(),
        a: on_a.start().cast(),
        b: on_b.start().cast(),
        c: on_c.start().cast(),
        workspace: workspace.start().cast(),
        epilogue: Parameters::of(scales),
        first: [0; 3],
    };
    let backend = device.as_backend(&|| ()).unwrap();
    // SAFETY: the matrices are as large as the call says, and the workspace as the plan does.
    unsafe { run(&*backend, &plan, &first).unwrap() };
    let got = context.download(&on_c).unwrap();
    let scale = |scales: &[f32], lines: usize, product: usize, line: usize, block: usize| {
        let [of_line, of_block, of_product] = strides(lines);
        scales[line * of_line + block * of_block + product * of_product]
    };
    for place in (0..batch * m * n).step_by(7) {
        let (product, row, col) = (place / (m * n), place / n % m, place % n);
        let sum: f32 = (0..k)
            .map(|i| {
                let of_a = scale(&a_scales, m, product, row, i / SIDE);
                let of_b = scale(&b_scales, columns, product, col / SIDE, i / SIDE);
                let a = value(a[(product * m + row) * k + i]);
                of_a * of_b * a * value(b[(product * n + col) * k + i])
            })
            .sum();
        let expected = of::<C>(2.0 * sum - 1.0);
        let name = variant.entry.name;
        assert!(
            got[place] == expected,
            "{name}: C[{row}][{col}] of {product}"
        );
    }
}

/// With a workspace that is too small for copies of operands, a product is cut along M and N.
fn a_product_in_parts_passes_in_places_of_the_whole() {
    let (m, n, k) = (601, 513, 131);
    let device = Device::simulator();
    let context = Context::new(&device, 0).unwrap();
    let (a, b) = (integers(m * k, 3, |x| x), integers(k * n, 7, |x| x));
    let (on_a, on_b) = (context.upload(&a).unwrap(), context.upload(&b).unwrap());
    let mut c = context.upload(&vec![f32::NAN; m * n]).unwrap();
    let (of_row, of_col) = (integers(m, 2, |x| x + 3.0), integers(n, 1, |x| 10.0 * x));
    let passed = Memory::of(vec![0; m * n]);
    let marks = Marks {
        of_row: of_row.as_ptr(),
        of_col: of_col.as_ptr(),
        passed: passed.start(),
        m,
        n,
    };
    // SAFETY: all memory outlives the simulator's call.
    unsafe {
        let epilogue = Then(marks, Halved);
        let kernels = &PADDED;
        gemm_fused(
            &context, kernels, epilogue, 1.0, &on_a, k, 0, &on_b, n, 0, 0.0, &mut c, n, 0, m, n, k,
            1,
        )
        .unwrap();
    }
    assert_eq!(passed.into_numbers(), vec![1; m * n]);
    let c = context.download(&c).unwrap();
    for place in (0..m * n).step_by(97) {
        let (row, col) = (place / n, place % n);
        let sum: f32 = (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
        assert_eq!(c[place], (sum * of_row[row] + of_col[col]) / 2.0);
    }
}

fused! {
    /// A base that takes only exact tiles of aligned rows.
    static PADDED: Then<Marks, Halved> = [async_pipeline::{async_pipeline_64x64}];
}

/// BLAS would return at once where beta is 1 and k is 0.
fn c_passes_where_nothing_is_multiplied() {
    let device = Device::simulator();
    let context = Context::new(&device, 0).unwrap();
    let empty = context.upload::<f32>(&[]).unwrap();
    let mut c = context.upload(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    // SAFETY: as above.
    unsafe {
        gemm_fused(
            &context, &HALVED, Halved, 1.0, &empty, 1, 0, &empty, 2, 0, 1.0, &mut c, 2, 0, 2, 2, 0,
            1,
        )
        .unwrap();
    }
    assert_eq!(context.download(&c).unwrap(), [0.5, 1.0, 1.5, 2.0]);
}

fused! {
    /// A kernel of f32 alone.
    static HALVED: Halved = [async_pipeline::{async_pipeline_64x64_nn}];
}

fn what_no_kernel_multiplies_is_an_error() {
    let device = Device::simulator();
    let context = Context::new(&device, 0).unwrap();
    let ones = context.upload(&[Bf16::from_f32(1.0)]).unwrap();
    let mut c = context.upload(&[0.0f32]).unwrap();
    // SAFETY: as above.
    let refused = unsafe {
        gemm_fused(
            &context, &HALVED, Halved, 1.0, &ones, 1, 0, &ones, 1, 0, 0.0, &mut c, 1, 0, 1, 1, 1, 1,
        )
    };
    let Err(error @ GemmError::NoFusedKernel { .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        error
            .to_string()
            .starts_with("HALVED has no kernel that multiplies bf16-f32")
    );
}

/// What a launch that is refused is bound to.
fn without_memory(epilogue: Parameters) -> Bindings {
    let null = std::ptr::null_mut();
    Bindings {
        alpha: 1.0f32.scalar(),
        beta: 0.0f32.scalar(),
        a: null,
        b: null,
        c: null,
        workspace: null,
        epilogue,
        first: [0; 3],
    }
}

/// No launch has the parameters of another epilogue, or none, even where the bytes that fill an
/// argument block up would hide that.
fn a_kernel_without_its_own_epilogue_is_not_launched() {
    let device = Device::simulator();
    let backend = device.as_backend(&|| ()).unwrap();
    for variant in MARKED.variants {
        let (no, element) = (Transpose::No, variant.types.a);
        let call = Call::compact(Shape::cube(8), no, no, element);
        let plan = Plan::new(variant, call, Decomposition::DATA_PARALLEL).unwrap();
        for epilogue in [Parameters::NONE, Parameters::of([0u64; 2])] {
            let bindings = without_memory(epilogue);
            let mut launches = plan.launches().iter();
            let launch = launches.find(|launch| launch.kernel.name == variant.entry.name);
            // SAFETY: nothing is launched.
            let refused = unsafe { backend.launch(launch.unwrap(), &bindings) };
            assert!(refused.is_err(), "{}", variant.entry.name);
        }
    }
}

/// Declares an epilogue that is one of these when it runs: kernels with each of them would take
/// long to compile.
macro_rules! ready_made {
    ($($name:ident($epilogue:ty),)*) => {
        #[derive(Clone, Copy)]
        #[repr(C)]
        enum ReadyMade {
            $($name($epilogue)),*
        }

        impl Epilogue for ReadyMade {
            #[inline(never)]
            unsafe fn apply<const N: usize>(&self, at: At, values: [f32; N]) -> [f32; N] {
                match self {
                    // SAFETY: the caller vouches for it.
                    $(ReadyMade::$name(epilogue) => unsafe { epilogue.apply(at, values) },)*
                }
            }

            unsafe fn prepare(&self, at: At, thread: usize) -> Alignment {
                match self {
                    // SAFETY: as above.
                    $(ReadyMade::$name(epilogue) => unsafe { epilogue.prepare(at, thread) },)*
                }
            }
        }
    };
}

ready_made! {
    PerColBias(PerColBias<f32>),
    PerColBias16(PerColBias<epilogue::Bf16>),
    PerRowBias(PerRowBias<f32>),
    PerColScale(PerColScale<epilogue::F16>),
    PerRowScale(PerRowScale<epilogue::Bf16>),
    Residual(Residual<f32>),
    Residual16(Residual<epilogue::Bf16>),
    AuxStore(Then<AuxStore<f32>, Relu>),
    AuxStore16(Then<AuxStore<epilogue::Bf16>, Relu>),
    Clamp(Clamp),
    Relu(Relu),
    Gelu(Gelu),
    GeluTanh(GeluTanh),
    Silu(Silu),
    DGeluTanh(DGeluTanh<f32>),
}

fused! {
    static READY_MADE: ReadyMade = [
        async_pipeline::{async_pipeline_64x64_nn}, persistent::{persistent_64x64_bf16},
    ];
}

/// M, N and K: the first tile is whole, and the last one partly empty; rows are multiples of eight
/// elements.
const SIZE: (usize, usize, usize) = (70, 72, 8);

/// An element of C: its row, its column, what it is without an epilogue and with one.
type Elementwise = (usize, usize, f32, f32);

/// The elements of a product of small integers, in f32 and then in bf16.
fn with_epilogue(epilogue: ReadyMade) -> Vec<Elementwise> {
    let (kernels, no) = (&READY_MADE, Transpose::No);
    let elements = multiplied::<f32, f32, _>(kernels, epilogue, no);
    let of_16_bits = multiplied::<Bf16, Bf16, _>(kernels, epilogue, no);
    elements.into_iter().chain(of_16_bits).collect()
}

fn multiplied<T: MultipliesInto<C, Scalar = f32>, C: Element<Scalar = f32>, E: Epilogue>(
    kernels: &'static epilogue::Fused<E>,
    epilogue: E,
    transpose_b: Transpose,
) -> Vec<Elementwise> {
    let (m, n, k) = SIZE;
    let device = Device::simulator();
    let context = Context::new(&device, 0).unwrap();
    let [a, b] = [(m * k, 3), (k * n, 7)].map(|(count, factor)| integers(count, factor, of::<T>));
    let (on_a, on_b) = (context.upload(&a).unwrap(), context.upload(&b).unwrap());
    let mut c = context.upload(&vec![of::<C>(f32::NAN); m * n]).unwrap();
    let (as_b, ldb) = match transpose_b {
        Transpose::No => (Input::from(&on_b), n),
        Transpose::Yes => (Input::from(&on_b).transposed(), k),
    };
    // SAFETY: all memory outlives the simulator's call.
    unsafe {
        gemm_fused(
            &context, kernels, epilogue, 0.25, &on_a, k, 0, as_b, ldb, 0, 0.0, &mut c, n, 0, m, n,
            k, 1,
        )
        .unwrap();
    }
    let c = context.download(&c).unwrap();
    let element = |place: usize| {
        let (row, col) = (place / n, place % n);
        let of_b = |i: usize| match transpose_b {
            Transpose::No => i * n + col,
            Transpose::Yes => col * k + i,
        };
        let product = |i: usize| value(a[row * k + i]) * value(b[of_b(i)]);
        let plain = 0.25 * (0..k).map(product).sum::<f32>();
        (row, col, plain, value(c[place]))
    };
    (0..m * n).map(element).collect()
}

/// All vectors, matrices and sums are exact in their types. Functions in f32 are within 2^-20, and
/// a C of bf16 is rounded to 8 bits.
fn assert_near(name: &str, got: &[Elementwise], right: impl Fn(usize, usize, f64) -> f64) {
    for (index, &(row, col, plain, got)) in got.iter().enumerate() {
        let right = right(row, col, f64::from(plain));
        let unit = match index < SIZE.0 * SIZE.1 {
            true => 2f64.powi(-20),
            false => 2f64.powi(-8),
        };
        let most = unit * right.abs().max(2f64.powi(-10));
        let error = (f64::from(got) - right).abs();
        assert!(
            error <= most,
            "{name}: C[{row}][{col}] is {got} of {plain}, not {right}"
        );
    }
}

fn gelu_tanh(x: f64) -> f64 {
    let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

fn the_librarys_kernels_have_a_bias_and_an_activation() {
    /// The activation, at an edge of C, with and without a bias, in each type, for each layout.
    fn check<E: Compiled>(name: &str, of: impl Fn(Bias) -> E, activation: impl Fn(f64) -> f64) {
        let bias = integers(SIZE.1, 3, |x| x + 0.5);
        for (pointer, transpose) in [
            (bias.as_ptr(), Transpose::No),
            (bias.as_ptr(), Transpose::Yes),
            (std::ptr::null(), Transpose::No),
        ] {
            let (kernels, epilogue) = (E::kernels(), of(Bias(pointer)));
            let mut got = multiplied::<f32, f32, E>(kernels, epilogue, transpose);
            got.extend(multiplied::<Bf16, Bf16, E>(kernels, epilogue, transpose));
            got.extend(multiplied::<F16, F16, E>(kernels, epilogue, transpose));
            assert_near(name, &got, |_, col, x| match pointer.is_null() {
                true => activation(x),
                false => activation(x + f64::from(bias[col])),
            });
        }
    }
    check("bias", |bias| bias, |x| x);
    check("bias+relu", |bias| Then(bias, Relu), |x| x.max(0.0));
    check("bias+gelu", |bias| Then(bias, GeluTanh), gelu_tanh);
    check("bias+silu", |bias| Then(bias, Silu), silu);
}

fn ready_made_ones_are_their_formulas() {
    let (m, n, _) = SIZE;
    let (cols, rows) = (integers(n + 1, 3, |x| x + 0.5), integers(m, 3, |x| x + 0.5));
    let matrix = integers(m * (n + 1), 2, |x| x / 2.0);
    let bits = |numbers: &[f32]| -> Vec<u16> {
        let bits = |x: &f32| Bf16::from_f32(*x).to_bits();
        numbers.iter().map(bits).collect()
    };
    let f16_cols: Vec<u16> = cols.iter().map(|x| F16::from_f32(*x).to_bits()).collect();
    let (bf16_cols, bf16_rows, bf16_matrix) = (bits(&cols), bits(&rows), bits(&matrix));
    let of_f32 = |start| Matrix::<f32> {
        start,
        leading: n,
        stride: 0,
    };
    let of_bf16 = |start, leading| Matrix::<epilogue::Bf16> {
        start,
        leading,
        stride: 0,
    };
    let col = |col: usize| f64::from(cols[col]);
    let row = |row: usize| f64::from(rows[row]);
    let element = |row: usize, col: usize| f64::from(matrix[row * n + col]);

    let got = with_epilogue(ReadyMade::PerColBias(PerColBias(cols.as_ptr())));
    assert_near("bias", &got, |_, j, x| x + col(j));
    // Pairs are aligned, or not.
    for first in [0, 1] {
        let got = with_epilogue(ReadyMade::PerColBias16(PerColBias(
            bf16_cols[first..].as_ptr(),
        )));
        assert_near("bias in bf16", &got, |_, j, x| x + col(j + first));
        let (start, leading) = (bf16_matrix.as_ptr(), n + first);
        let got = with_epilogue(ReadyMade::Residual16(Residual(of_bf16(start, leading))));
        assert_near("residual in bf16", &got, |i, j, x| {
            x + f64::from(matrix[i * leading + j])
        });
    }
    let got = with_epilogue(ReadyMade::PerRowBias(PerRowBias(rows.as_ptr())));
    assert_near("row bias", &got, |i, _, x| x + row(i));
    let got = with_epilogue(ReadyMade::PerColScale(PerColScale(f16_cols.as_ptr())));
    assert_near("scale in f16", &got, |_, j, x| x * col(j));
    let got = with_epilogue(ReadyMade::PerRowScale(PerRowScale(bf16_rows.as_ptr())));
    assert_near("row scale in bf16", &got, |i, _, x| x * row(i));
    let got = with_epilogue(ReadyMade::Residual(Residual(of_f32(matrix.as_ptr()))));
    assert_near("residual", &got, |i, j, x| x + element(i, j));
    let clamp = Clamp {
        min: -1.0,
        max: 0.75,
    };
    let got = with_epilogue(ReadyMade::Clamp(clamp));
    assert_near("clamp", &got, |_, _, x| x.clamp(-1.0, 0.75));
    let got = with_epilogue(ReadyMade::Relu(Relu));
    assert_near("relu", &got, |_, _, x| x.max(0.0));
    let got = with_epilogue(ReadyMade::Gelu(Gelu));
    let gelu = |x: f64| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt()));
    assert_near("gelu", &got, |_, _, x| gelu(x));
    let got = with_epilogue(ReadyMade::GeluTanh(GeluTanh));
    assert_near("gelu by tanh", &got, |_, _, x| gelu_tanh(x));
    let got = with_epilogue(ReadyMade::Silu(Silu));
    assert_near("silu", &got, |_, _, x| silu(x));
    // The derivative by a difference.
    let derivative = |x: f64| (gelu_tanh(x + 1e-6) - gelu_tanh(x - 1e-6)) / 2e-6;
    let got = with_epilogue(ReadyMade::DGeluTanh(DGeluTanh(of_f32(matrix.as_ptr()))));
    assert_near("dgelu", &got, |i, j, x| x * derivative(element(i, j)));

    let aux = Memory::of(vec![f32::NAN; m * n]);
    let got = with_epilogue(ReadyMade::AuxStore(Then(
        AuxStore(of_f32(aux.start())),
        Relu,
    )));
    assert_near("aux, then relu", &got, |_, _, x| x.max(0.0));
    for (&(.., plain, _), stored) in got.iter().zip(aux.into_numbers()) {
        assert_eq!(stored, plain);
    }
    let aux = Memory::of(vec![u16::MAX; m * n]);
    let got = with_epilogue(ReadyMade::AuxStore16(Then(
        AuxStore(of_bf16(aux.start(), n)),
        Relu,
    )));
    for (&(.., plain, _), stored) in got.iter().zip(aux.into_numbers()) {
        assert_eq!(stored, Bf16::from_f32(plain).to_bits());
    }
}
