//! The library call, and those of it in batches, in groups and with epilogues.

use std::ptr;

use gpu_kernels::epilogue::{Epilogue, Fused};

use crate::call::{MatrixLayout, Nested, Shape, Transpose};
use crate::choose;
use crate::context::Context;
use crate::launch::{Element, MultipliesInto};
use crate::matrix::{GemmError, Input, Output, Span};
use crate::product::{Fusion, Product, Stored};

/// `C = alpha * op(A) * op(B) + beta * C`, on matrices in the memory of the context's device. On a
/// GPU it only launches, on the context's stream, and returns at once: it neither waits nor
/// allocates nor copies between host and GPU. Only the first call that uses a kernel also makes
/// the driver compile it, unless [`Context::prepare`] already did. On the simulator it returns
/// when C has been computed, and with OpenCL it waits for kernels that may panic.
///
/// All matrices are row-major. op(A) is `m x k`, op(B) is `k x n`, C is `m x n`;
/// [`Input::transposed`] transposes a matrix. A leading dimension is the number of elements from
/// the start of a row *as stored* to the start of the next:
///
/// | | stored as | leading dimension |
/// | --- | --- | --- |
/// | `a` | `m x k` | `lda >= k` |
/// | `a.transposed()` | `k x m` | `lda >= m` |
/// | `b` | `k x n` | `ldb >= n` |
/// | `b.transposed()` | `n x k` | `ldb >= k` |
/// | `c` | `m x n` | `ldc >= n` |
///
/// Any m, n and k, 0 included; any leading dimension and any alignment. As in BLAS, C is not read
/// if `beta` is 0 (it may hold NaNs), nor are A and B if `alpha` is 0. Repeating a call on a
/// context gives a bit-identical result.
///
/// The buffers determine `T`, the type of A and B, and `C`:
///
/// | `T` | `C` | `alpha`, `beta` and sums | devices |
/// | --- | --- | --- | --- |
/// | `f32` | `f32` | `f32` | all |
/// | `f64` | `f64` | `f64` | all except OpenCL devices without `f64` |
/// | `i32` | `i32` | `i32`, and wrap | all |
/// | [`Bf16`], [`F16`] | the same, or `f32` | `f32` | GPUs since 8.0, the simulator |
/// | `i8` | `i32` | `i32`, and wrap | GPUs of 9.0, the simulator |
/// | [`E4m3`] | [`Bf16`] or `f32` | `f32` | GPUs of 9.0, the simulator |
///
/// Elements of 16 bits are multiplied on tensor cores. A C of 16 bits is rounded once, when it is
/// written; a C of `f32` holds the sums without rounding, so that products can be added up in it.
/// Where A and B are of [`E4m3`] and have a scale each, `alpha` is the product of the two.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
/// [`E4m3`]: crate::E4m3
///
/// ```
/// # use gpu_gemm::{Bf16, Context, Device, DeviceError, GemmError, gemm};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let twos = vec![Bf16::from_f32(2.0); 16 * 16];
/// let (a, b) = (context.upload(&twos)?, context.upload(&twos)?);
/// let mut c = context.upload(&twos)?;
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe { gemm(&context, 0.25, &a, 16, &b, 16, 1.0, &mut c, 16, 16, 16, 16)? };
/// assert_eq!(context.download(&c)?, [Bf16::from_f32(18.0); 16 * 16]);
///
/// // 257 is representable in f32, but not in bf16.
/// let mut c = context.upload(&[1.0f32; 16 * 16])?;
/// // SAFETY: as above.
/// unsafe { gemm(&context, 4.0, &a, 16, &b, 16, 1.0, &mut c, 16, 16, 16, 16)? };
/// assert_eq!(context.download(&c)?, [257.0; 16 * 16]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// A leading dimension is too small, a matrix does not fit into its memory or is in another
/// device's memory, the device has no kernel for `T`, the workspace is too small for a C of 16
/// bits, unaligned rows and a long K, or the GPU fails. In all cases but the last, nothing has
/// been launched.
///
/// # Safety
///
/// A, B and C are memory of the context's device that stays allocated until the stream has
/// completed this call. Nothing else writes A or B, or touches C, before that; C overlaps neither
/// A nor B. If the GPU or another kernel crashes, the contents of C are undefined.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm<'a, 'b, 'c, T: MultipliesInto<C>, C: Element>(
    context: &Context,
    alpha: T::Scalar,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    beta: T::Scalar,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    m: usize,
    n: usize,
    k: usize,
) -> Result<(), GemmError> {
    // SAFETY: as the caller vouches.
    unsafe {
        gemm_strided_batched(
            context, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, m, n, k, 1,
        )
    }
}

/// [`gemm`] of `batch` products of one shape. The first product's matrices are at the start of A,
/// B and C; the next product's are `stride_a`, `stride_b` and `stride_c` elements further on, and
/// so on. Strides of A and B may be any number, even 0: then all products read the same matrix.
/// The matrices C may follow each other, or be side by side within `ldc`.
///
/// They are one launch, unless A or B must be copied first, or a few products have too few tiles
/// to fill the GPU and are split along K: then they are launched one after the other, without
/// waiting on the host.
///
/// The batch and each stride may be a pair, `(outer, inner)`: batches in a batch. They are as many
/// launches as the smaller of the two counts, or one launch where each outer stride is `inner`
/// times the inner one. So one call computes the scores of attention, `Q * K^T` for each head of
/// each sequence, where Q is stored as `[sequence, token, head, dim]`, and all heads share a K:
///
/// ```
/// # use gpu_gemm::{Context, Device, GemmError, Input, gemm_strided_batched};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let (sequences, tokens, heads, dim) = (2, 3, 4, 8);
/// let q = context.upload(&vec![1.0f32; sequences * tokens * heads * dim])?;
/// let k = context.upload(&vec![0.5f32; sequences * tokens * dim])?; // one head
/// let mut scores = context.zeros::<f32>(sequences * heads * tokens * tokens)?;
/// // SAFETY: the buffers live until `download` has waited for the products.
/// unsafe {
///     gemm_strided_batched(
///         &context,
///         0.25,
///         &q,
///         heads * dim,
///         (tokens * heads * dim, dim),
///         Input::from(&k).transposed(),
///         dim,
///         (tokens * dim, 0),
///         0.0,
///         &mut scores,
///         tokens,
///         tokens * tokens, // from each head to the next, also of the next sequence
///         tokens,
///         tokens,
///         dim,
///         (sequences, heads),
///     )?;
/// }
/// assert_eq!(context.download(&scores)?, [1.0; 2 * 4 * 3 * 3]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm`], for all products' matrices together, and if the matrices C overlap: they may be
/// interleaved, but each stride is past all that smaller ones reach. Of several launches, some may
/// have been made before the device refuses one.
///
/// # Safety
///
/// As for [`gemm`], for all products' matrices.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_strided_batched<'a, 'b, 'c, T: MultipliesInto<C>, C: Element>(
    context: &Context,
    alpha: T::Scalar,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    stride_a: impl Into<Nested>,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: impl Into<Nested>,
    beta: T::Scalar,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    stride_c: impl Into<Nested>,
    m: usize,
    n: usize,
    k: usize,
    batch: impl Into<Nested>,
) -> Result<(), GemmError> {
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            None,
            Batched::Products,
            [alpha, beta],
            (a.into(), lda, stride_a.into()),
            (b.into(), ldb, stride_b.into()),
            (c.into(), ldc, stride_c.into()),
            Shape::new(m, n, k),
            batch.into(),
        )
    }
}

/// [`gemm_strided_batched`] with an epilogue: `C = epilogue(alpha * op(A) * op(B) + beta * C)`, in
/// the kernels that multiply, by those of `kernels` that are for the matrices' types. Which of them
/// runs, the context's chooser decides. Sums are f32, and a C of 16 bits is rounded once, after the
/// epilogue.
///
/// `kernels` are written by [`gpu_kernels::fused!`], and a GPU runs them if its device has them
/// ([`with_kernels`]). The first call compiles them. The workspace is as large as it is
/// ([`Context::prepare`] is for calls without an epilogue), and [`Context::with_kernel`] and what
/// was tuned have no effect.
///
/// [`with_kernels`]: crate::Device::with_kernels
///
/// The library's own kernels are compiled with a bias, and with a bias and an activation
/// (`gpu_kernels::epilogue::Compiled`):
///
/// ```
/// # #[cfg(feature = "epilogues")] {
/// # use gpu_gemm::{Context, Device, gemm_fused};
/// use gpu_gemm::gpu_kernels::epilogue::{Bias, Compiled, Relu, Then};
///
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let (a, b) = (context.upload(&[1.0f32, 2.0])?, context.upload(&[3.0f32, -4.0])?);
/// let bias = context.upload(&[-1.0f32, 1.0])?;
/// let mut c = context.allocate(4)?;
/// let relu = Then(Bias(bias.start()), Relu);
/// let kernels = Compiled::kernels();
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe {
///     gemm_fused(
///         &context, kernels, relu, 1.0, &a, 1, 0, &b, 2, 0, 0.0, &mut c, 2, 0, 2, 2, 1, 1,
///     )?;
/// }
/// assert_eq!(context.download(&c)?, [2.0, 0.0, 5.0, 0.0]);
/// # }
/// # Ok::<(), gpu_gemm::GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm_strided_batched`], and if no kernel of `kernels` multiplies the types on this
/// device. A product is never cut along K, so a workspace may be too small for copies of A and B.
///
/// # Safety
///
/// As for [`gemm_strided_batched`], and the pointers in `epilogue` are to memory of the context's
/// device that is valid, and stays so until the stream has completed this call, for what the
/// epilogue reads and writes at each place of C. Nothing else writes what it reads, or touches what
/// it writes, which overlaps none of A, B, C and the workspace.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_fused<'a, 'b, 'c, T, C, E>(
    context: &Context,
    kernels: &'static Fused<E>,
    epilogue: E,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    stride_a: impl Into<Nested>,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: impl Into<Nested>,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    stride_c: impl Into<Nested>,
    m: usize,
    n: usize,
    k: usize,
    batch: impl Into<Nested>,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
    E: Epilogue,
{
    const { assert!(!E::IS_GATE, "`gemm_gated` multiplies with a gate") }
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            Some(Fusion::of(kernels, epilogue)),
            Batched::Products,
            [alpha, beta],
            (a.into(), lda, stride_a.into()),
            (b.into(), ldb, stride_b.into()),
            (c.into(), ldc, stride_c.into()),
            Shape::new(m, n, k),
            batch.into(),
        )
    }
}

/// `C = alpha * A * op(B[g]) + beta * C` for the rows of each of `groups` groups, in one launch: a
/// mixture of experts, where rows are tokens, sorted by expert, and each expert has a B. A is
/// `m x k`, C is `m x n`, and the matrices `op(B[g])` are `k x n`, each `stride_b` elements after
/// the one before it.
///
/// `ends` has the row after the last of each group, in the context's memory, where another kernel
/// may have written them: the host does not read them. The first group begins at row 0, and each
/// other where the one before it ends. A group may be empty. Rows of C after the last group are not
/// touched. (`offs` of PyTorch's `_grouped_mm` are such ends.)
///
/// There are kernels of [`Bf16`] and [`F16`], with a C of the same type, for Hopper, which the
/// simulator runs, too: for an A that is not transposed, and rows of A and B that begin at
/// multiples of 16 bytes. The workspace is not used.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
///
/// ```
/// # use gpu_gemm::{Bf16, Context, Device, GemmError, gemm_grouped};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let numbers = |count| (0..count).map(|i| Bf16::from_f32((i / 64) as f32)).collect::<Vec<_>>();
/// let a = context.upload(&vec![Bf16::from_f32(1.0); 3 * 8])?; // three rows
/// let b = context.upload(&numbers(2 * 64))?; // a matrix of zeros, and one of ones
/// let mut c = context.allocate::<Bf16>(3 * 8)?;
/// let ends = context.upload(&[1, 3])?; // the first row is multiplied by zeros, two by ones
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe { gemm_grouped(&context, 1.0, &a, 8, &b, 8, 64, 0.0, &mut c, 8, &ends, 3, 8, 8, 2)? };
/// let c = context.download(&c)?;
/// assert_eq!([0, 8, 16].map(|first| c[first].to_f32()), [0.0, 8.0, 8.0]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm`]; errors call the ends E, a matrix of one row. No kernel multiplies the type or
/// the layout of A and B, or this device does not run it.
///
/// # Safety
///
/// As for [`gemm`], for all matrices B, and for `ends` as for A. Each end is no less than the one
/// before it, and no more than `m`.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_grouped<'a, 'b, 'c, 'e, T, C>(
    context: &Context,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    ends: impl Into<Input<'e, i32>>,
    m: usize,
    n: usize,
    k: usize,
    groups: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            None,
            Batched::Groups(ends.into().span),
            [alpha, beta],
            (a.into(), lda, 0.into()),
            (b.into(), ldb, stride_b.into()),
            (c.into(), ldc, 0.into()),
            Shape::new(m, n, k),
            groups.into(),
        )
    }
}

/// `C[g] = alpha * A[g]^T * B[g] + beta * C[g]` for each of `groups` groups of rows of A and B, in
/// one launch: the gradients of the weights in a mixture of experts, where rows are tokens, sorted
/// by expert, of A the inputs, and of B the gradients of the outputs. A is stored as `k x m` and so
/// transposed, B is `k x n`, and each C is `m x n`, `stride_c` elements after the one before it.
///
/// `ends` has the row after the last of each group, as for [`gemm_grouped`]; each may be any number
/// of rows. The C of an empty group is `beta * C`, and zero if `beta` is 0. Rows after the last
/// group are not read. (`offs` of PyTorch's `_grouped_mm` of two matrices are such ends.)
///
/// There are kernels of [`Bf16`] and [`F16`], with a C of the same type or of `f32`, for Hopper,
/// which the simulator runs, too: for rows of A and B that begin at multiples of 16 bytes. The
/// workspace is not used.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
///
/// ```
/// # use gpu_gemm::{Bf16, Context, Device, GemmError, Input, gemm_grouped_along_k};
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let ones = vec![Bf16::from_f32(1.0); 5 * 8]; // five rows
/// let (a, b) = (context.upload(&ones)?, context.upload(&ones)?);
/// let a = Input::from(&a).transposed();
/// let mut c = context.allocate::<f32>(3 * 64)?;
/// let ends = context.upload(&[2, 2, 5])?; // two rows, none, and three
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe {
///     gemm_grouped_along_k(
///         &context, 1.0, a, 8, &b, 8, 0.0, &mut c, 8, 64, &ends, 8, 8, 5, 3,
///     )?;
/// }
/// let c = context.download(&c)?;
/// assert_eq!([0, 64, 128].map(|first| c[first]), [2.0, 0.0, 3.0]);
/// # Ok::<(), GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm_grouped`], and if the matrices C overlap.
///
/// # Safety
///
/// As for [`gemm`], for all matrices C, and for `ends` as for A. Each end is no less than the one
/// before it, and no more than `k`.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_grouped_along_k<'a, 'b, 'c, 'e, T, C>(
    context: &Context,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    stride_c: usize,
    ends: impl Into<Input<'e, i32>>,
    m: usize,
    n: usize,
    k: usize,
    groups: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
{
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            None,
            Batched::GroupsAlongK(ends.into().span),
            [alpha, beta],
            (a.into(), lda, 0.into()),
            (b.into(), ldb, 0.into()),
            (c.into(), ldc, stride_c.into()),
            Shape::new(m, n, k),
            groups.into(),
        )
    }
}

/// `C = gate(alpha * A * op(B1), alpha * A * op(B2)) + beta * C` in one launch: the gated unit of a
/// feed-forward layer, such as `silu(A * B1) * (A * B2)`, which is a SwiGLU. A is `m x k`, C is
/// `m x n`, op(B1) and op(B2) are `k x n`, the second `stride_b` elements after the first.
///
/// Most checkpoints have both in one matrix, `gate_up_proj`: of `2 * n` rows of `k` (`b`
/// transposed, `ldb = k`, `stride_b = n * k`), or of `k` rows of `2 * n` (`ldb = 2 * n`,
/// `stride_b = n`).
/// Sums and the gate are in f32; C is rounded once.
///
/// The library's own kernels (`gpu_kernels::epilogue::Compiled`) are compiled with `Gated<Silu>`,
/// and those of bf16 with a transposed B with `Gated<GeluTanh>`; others are written by
/// [`gpu_kernels::fused!`] with the bases in `gpu_kernels::gated`, as for [`gemm_fused`]. They are
/// of [`Bf16`] and [`F16`], with a C of the same type, for Hopper, and the simulator runs them,
/// too: for an A that is not transposed, and rows of A and B, and a `stride_b`, at multiples of 16
/// bytes. The workspace is not used.
///
/// [`Bf16`]: crate::Bf16
/// [`F16`]: crate::F16
///
/// ```
/// # #[cfg(feature = "epilogues")] {
/// # use gpu_gemm::{Bf16, Context, Device, gemm_gated};
/// use gpu_gemm::gpu_kernels::epilogue::{Compiled, Gated, Silu};
///
/// # let device = Device::simulator();
/// # let context = Context::new(&device, 0)?;
/// let a = context.upload(&[Bf16::from_f32(1.0); 8])?; // a row
/// let b = context.upload(&[0.25, 3.0].map(|x| [Bf16::from_f32(x); 64]).concat())?;
/// let mut c = context.allocate::<Bf16>(8)?;
/// let (swiglu, silu) = (Compiled::kernels(), Gated(Silu));
/// // SAFETY: the buffers live until `download` has waited for the product.
/// unsafe { gemm_gated(&context, swiglu, silu, 1.0, &a, 8, &b, 8, 64, 0.0, &mut c, 8, 1, 8, 8)? };
/// let right = 2.0 / (1.0 + (-2.0f32).exp()) * 24.0;
/// assert_eq!(context.download(&c)?, [Bf16::from_f32(right); 8]);
/// # }
/// # Ok::<(), gpu_gemm::GemmError>(())
/// ```
///
/// # Errors
///
/// As for [`gemm`]. No kernel of `kernels` multiplies the type or the layout of A and B, or this
/// device does not run it.
///
/// # Safety
///
/// As for [`gemm_fused`], for both matrices B.
#[allow(clippy::too_many_arguments)] // BLAS's own
pub unsafe fn gemm_gated<'a, 'b, 'c, T, C, E>(
    context: &Context,
    kernels: &'static Fused<E>,
    gate: E,
    alpha: f32,
    a: impl Into<Input<'a, T>>,
    lda: usize,
    b: impl Into<Input<'b, T>>,
    ldb: usize,
    stride_b: usize,
    beta: f32,
    c: impl Into<Output<'c, C>>,
    ldc: usize,
    m: usize,
    n: usize,
    k: usize,
) -> Result<(), GemmError>
where
    T: MultipliesInto<C, Scalar = f32>,
    C: Element<Scalar = f32>,
    E: Epilogue,
{
    const { assert!(E::IS_GATE, "`gemm_fused` multiplies with another epilogue") }
    // SAFETY: as the caller vouches.
    unsafe {
        multiply::<T, C>(
            context,
            Some(Fusion::of(kernels, gate)),
            Batched::Gate,
            [alpha, beta],
            (a.into(), lda, 0.into()),
            (b.into(), ldb, stride_b.into()),
            (c.into(), ldc, 0.into()),
            Shape::new(m, n, k),
            2.into(),
        )
    }
}

/// What a batch is.
#[derive(Clone, Copy)]
enum Batched {
    Products,
    /// Groups of rows of one A and one C, which end there.
    Groups(Span),
    /// Groups of rows of one A and one B, stored so, which end there.
    GroupsAlongK(Span),
    /// The two matrices B of one A and one C, for a gate.
    Gate,
}

/// [`gemm_strided_batched`], [`gemm_fused`], [`gemm_grouped`], [`gemm_grouped_along_k`] and
/// [`gemm_gated`]. Each matrix has a leading dimension and a stride.
///
/// # Safety
///
/// As for them.
#[allow(clippy::too_many_arguments)]
unsafe fn multiply<T: MultipliesInto<C>, C: Element>(
    context: &Context,
    epilogue: Option<Fusion>,
    batched: Batched,
    [alpha, beta]: [T::Scalar; 2],
    (a, lda, stride_a): (Input<'_, T>, usize, Nested),
    (b, ldb, stride_b): (Input<'_, T>, usize, Nested),
    (c, ldc, stride_c): (Output<'_, C>, usize, Nested),
    Shape { m, n, k }: Shape,
    batch: Nested,
) -> Result<(), GemmError> {
    let [alpha, beta] = [alpha.scalar(), beta.scalar()];
    let space = context.space();
    let (outer, count) = batch.counts();
    let one = count.min(1);
    let [count_a, count_b, count_c] = match batched {
        Batched::Products => [count; 3],
        Batched::Groups(_) | Batched::Gate => [one, count, one],
        Batched::GroupsAlongK(_) => [one, one, count],
    };
    let checked = |name, span: Span, transpose: Transpose, size, leading, (count, stride)| {
        let (outer_stride, stride) = Nested::strides(stride, count);
        let one = MatrixLayout::one(transpose.of(size), leading);
        let layout = one.batched(count, stride).nested(outer, outer_stride);
        span.check(name, layout, space)?;
        Ok::<_, GemmError>(Stored {
            start: span.start,
            layout,
            transpose,
        })
    };
    let product = Product {
        data_type: T::DATA_TYPE,
        alpha,
        beta,
        a: checked('A', a.span, a.transpose, (m, k), lda, (count_a, stride_a))?,
        b: checked('B', b.span, b.transpose, (k, n), ldb, (count_b, stride_b))?,
        c: checked('C', c.span, Transpose::No, (m, n), ldc, (count_c, stride_c))?,
        epilogue,
        first: [0; 3],
    };
    let layout = product.c.layout;
    if layout.overlaps() {
        return Err(GemmError::Overlap { layout });
    }
    if let Batched::Groups(ends) | Batched::GroupsAlongK(ends) = batched {
        checked(
            'E',
            ends,
            Transpose::No,
            (1, count),
            count.max(1),
            (1, 0.into()),
        )?;
    }
    let changes_nothing = beta.is_one() && product.shape().k == 0 && epilogue.is_none();
    if layout.extent() == 0 || changes_nothing {
        return Ok(());
    }
    let data_type = product.data_type;
    let (call, facts) = (product.call(), context.chooser().facts());
    let (plan, workspace) = match batched {
        Batched::Products => {
            let mut batches = product.batches();
            // SAFETY: the caller vouches for the matrices, and their extents have been checked.
            return batches.try_for_each(|batch| unsafe { context.enqueue(&batch) });
        }
        Batched::Groups(ends) => {
            let plan = choose::grouped(data_type, call, facts);
            (
                plan.ok_or(GemmError::NoGroupedKernel { data_type })?,
                ends.start,
            )
        }
        Batched::GroupsAlongK(ends) => {
            let plan = choose::grouped_along_k(data_type, call, facts);
            (
                plan.ok_or(GemmError::NoGroupedKernelAlongK { data_type })?,
                ends.start,
            )
        }
        Batched::Gate => {
            let (kernels, variants) = match epilogue {
                Some(fusion) => (fusion.kernels, fusion.variants),
                None => ("The library", &[][..]),
            };
            let plan = choose::gated(variants, data_type, call, facts);
            (
                plan.ok_or(GemmError::NoGatedKernel { kernels, data_type })?,
                ptr::null_mut(),
            )
        }
    };
    // SAFETY: as above; the kernels of groups take the ends for a workspace, gated ones take none.
    unsafe { context.launch_with(&plan, &product, workspace)? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    const SHAPE: Shape = Shape::new(5, 6, 7);

    /// A leading dimension, and strides.
    type Steps = (usize, Nested);

    fn small_integers(length: usize) -> Vec<f32> {
        (0..length).map(|at| (at * 7 % 11) as f32 - 5.0).collect()
    }

    /// Multiplies, B transposed, in memory that is as long as the matrices, but for some elements
    /// that B lacks, and compares all of C's with loops.
    fn multiplied(
        batch: (usize, usize),
        steps: [Steps; 3],
        lacking: usize,
    ) -> Result<(), GemmError> {
        let Shape { m, n, k } = SHAPE;
        let (outer, inner) = batch;
        let [at_a, at_b, at_c] = steps.map(|(leading, stride)| {
            let (outer_stride, inner_stride) = stride.strides(inner);
            move |[o, i, row, column]: [usize; 4]| {
                o * outer_stride + i * inner_stride + row * leading + column
            }
        });
        let last = |rows: usize, columns: usize| {
            [outer.max(1) - 1, inner.max(1) - 1, rows - 1, columns - 1]
        };
        let a = small_integers(at_a(last(m, k)) + 1);
        let b = small_integers(at_b(last(n, k)) + 1 - lacking);
        let before = small_integers(at_c(last(m, n)) + 1);
        let [(lda, stride_a), (ldb, stride_b), (ldc, stride_c)] = steps;
        let context = Context::new(&Device::simulator(), 0)?;
        let mut c = before.clone();
        let transposed = Input::from(&b[..]).transposed();
        // SAFETY: the simulator is done when the call returns.
        unsafe {
            gemm_strided_batched(
                &context,
                3.0,
                &a[..],
                lda,
                stride_a,
                transposed,
                ldb,
                stride_b,
                2.0,
                &mut c[..],
                ldc,
                stride_c,
                m,
                n,
                k,
                batch,
            )?;
        }
        let mut right = before.clone();
        for o in 0..outer {
            for i in 0..inner {
                for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column)))
                {
                    let products =
                        (0..k).map(|l| a[at_a([o, i, row, l])] * b[at_b([o, i, column, l])]);
                    let at = at_c([o, i, row, column]);
                    right[at] = 3.0 * products.sum::<f32>() + 2.0 * before[at];
                }
            }
        }
        assert_eq!(c, right, "{batch:?} {steps:?}");
        Ok(())
    }

    #[test]
    fn batches_in_a_batch_are_right_at_any_strides() {
        let Shape { m, n, k } = SHAPE;
        for batch in [(2, 5), (5, 2), (3, 3), (1, 4), (4, 1), (0, 3), (3, 0)] {
            let (outer, inner) = batch;
            // The matrices follow each other, in both orders of the batch, or those of an outer
            // batch are side by side: [outer, row, inner, column].
            let compact = |rows: usize, columns: usize| (columns, (rows * columns).into());
            let swapped = |rows: usize, columns: usize| {
                (columns, (rows * columns, outer * rows * columns).into())
            };
            let beside = |rows: usize, columns: usize| {
                (
                    inner.max(1) * columns,
                    (rows * inner * columns, columns).into(),
                )
            };
            let orders: [&dyn Fn(usize, usize) -> Steps; 3] = [&compact, &swapped, &beside];
            for (index, order) in orders.iter().enumerate() {
                let next = orders[(index + 1) % 3];
                for b in [
                    next(n, k),
                    order(n, k),
                    (k, 0.into()),
                    (k, (n * k, 0).into()),
                    (k, (0, n * k).into()),
                ] {
                    multiplied(batch, [order(m, k), b, order(m, n)], 0).unwrap();
                    multiplied(batch, [next(m, k), b, order(m, n)], 0).unwrap();
                }
            }
        }
    }

    #[test]
    fn of_batches_in_a_batch_what_is_too_long_or_overlaps_is_named_with_both_strides() {
        let (a, b) = ((7, 0.into()), (7, (42, 100).into()));
        let said = |stride_c: (usize, usize), ldc, lacking| {
            let result = multiplied((2, 3), [a, b, (ldc, stride_c.into())], lacking);
            result.err().map(|error| error.to_string())
        };
        assert_eq!(said((90, 30), 6, 0), None);
        assert_eq!(
            said((90, 30), 6, 1).unwrap(),
            "B, 2 x 3 matrices stored as 6 x 7 with ldb = 7 and stride_b = (42, 100), takes 284 \
             elements, but its memory has only 283."
        );
        assert_eq!(
            said((89, 30), 6, 0).unwrap(),
            "C, 2 x 3 matrices stored as 5 x 6 with ldc = 6 and stride_c = (89, 30), overlaps \
             itself: its matrices must be 30 elements or more apart, or side by side within the \
             leading dimension, and the larger stride past all matrices of the smaller one."
        );
        // Side by side, within a row and the rows of one product.
        assert_eq!(said((6, 12), 36, 0), None);
        assert_eq!(said((18, 6), 36, 0), None);
        assert_eq!(said((90, 6), 18, 0), None);
        for (stride_c, ldc) in [
            ((17, 6), 36),
            ((18, 6), 35),
            ((89, 6), 18),
            ((0, 30), 6),
            ((30, 30), 6),
        ] {
            let said = said(stride_c, ldc, 0).unwrap();
            assert!(said.contains("overlaps"), "{said}");
        }
    }
}
