//! cublasLt: its heuristics propose algorithms for a product, by estimated speed, and each can be
//! launched by itself. `cublasLt.h` documents everything here.

use std::ffi::{c_int, c_void};
use std::ptr;

use gpu_gemm::Allocated;

use super::column_major::ColumnMajor;
use super::loaded::Loaded;
use super::precision::Precision;
use super::status::{CublasError, Handle, Interface, NOT_SUPPORTED, succeeded};
use crate::epilogue::Epilogue;

/// The workspace that algorithms may use.
pub const WORKSPACE_BYTES: usize = 64 << 20;
/// The number of algorithms requested from the heuristics.
const ALGORITHMS: usize = 8;
/// The largest alignment of a pointer that makes a difference.
const MOST_ALIGNED: usize = 256;

/// The alignment of an address in bytes, a power of two.
pub fn alignment(address: usize) -> u32 {
    1 << address.trailing_zeros().min(MOST_ALIGNED.trailing_zeros())
}

/// A `cublasLtMatmulDesc_t`, `cublasLtMatrixLayout_t` or `cublasLtMatmulPreference_t`.
type Raw = *mut c_void;
type CreateDescription =
    unsafe extern "C" fn(made: *mut Raw, compute: c_int, scale: c_int) -> c_int;
#[rustfmt::skip]
type CreateLayout = unsafe extern "C" fn(
    made: *mut Raw, element: c_int, rows: u64, columns: u64, leading: i64,
) -> c_int;
type CreatePreference = unsafe extern "C" fn(made: *mut Raw) -> c_int;
type Destroy = unsafe extern "C" fn(raw: Raw) -> c_int;
#[rustfmt::skip]
type SetAttribute = unsafe extern "C" fn(
    raw: Raw, attribute: c_int, value: *const c_void, bytes: usize,
) -> c_int;
#[rustfmt::skip]
type GetHeuristic = unsafe extern "C" fn(
    handle: Handle, description: Raw, a: Raw, b: Raw, c: Raw, d: Raw, preference: Raw,
    requested: c_int, found: *mut Heuristic, count: *mut c_int,
) -> c_int;
#[rustfmt::skip]
type Matmul = unsafe extern "C" fn(
    handle: Handle, description: Raw,
    alpha: *const c_void, a: *const c_void, a_layout: Raw, b: *const c_void, b_layout: Raw,
    beta: *const c_void, c: *const c_void, c_layout: Raw, d: *mut c_void, d_layout: Raw,
    algorithm: *const Algorithm, workspace: *mut c_void, workspace_bytes: usize,
    stream: *mut c_void,
) -> c_int;

/// `cublasLtMatmulAlgo_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Algorithm([u64; 8]);

/// `cublasLtMatmulHeuristicResult_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Heuristic {
    algorithm: Algorithm,
    workspace_bytes: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// `CUBLASLT_MATMUL_DESC_TRANSA` and `_TRANSB`.
const DESCRIPTION_TRANSPOSES: [c_int; 2] = [3, 4];
/// `CUBLASLT_MATMUL_DESC_EPILOGUE` and `_BIAS_POINTER`: the bias has the type of the result, and
/// an element for each of its rows, which in row-major order are columns.
const DESCRIPTION_EPILOGUE: c_int = 7;
const DESCRIPTION_BIAS: c_int = 8;
/// `CUBLASLT_MATMUL_DESC_FAST_ACCUM`: sums of 8-bit floats are not promoted.
const DESCRIPTION_FAST: c_int = 25;
/// `CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT` and `_STRIDED_BATCH_OFFSET`.
const LAYOUT_PRODUCTS: c_int = 5;
const LAYOUT_STRIDE: c_int = 6;
/// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`, and `_MIN_ALIGNMENT_A_BYTES` to `_D_BYTES`.
const PREFERENCE_WORKSPACE: c_int = 1;
const PREFERENCE_ALIGNMENTS: [c_int; 4] = [5, 6, 7, 8];

/// An epilogue as cublasLt has it, and the address of its bias, if it has one.
#[derive(Clone, Copy, Debug)]
pub struct LtEpilogue {
    /// A `cublasLtEpilogue_t`.
    number: c_int,
    /// Null where the epilogue has none.
    bias: *const c_void,
}

impl LtEpilogue {
    /// # Errors
    ///
    /// cublasLt has no such epilogue.
    pub fn new(epilogue: Epilogue, bias: *const c_void) -> Result<LtEpilogue, CublasError> {
        let number = match epilogue {
            Epilogue::Relu => 2,
            Epilogue::Bias => 4,
            Epilogue::BiasRelu => 6,
            Epilogue::Gelu => 32,
            Epilogue::BiasGelu => 36,
            Epilogue::Silu | Epilogue::BiasSilu => {
                return Err(CublasError::NoSuchEpilogue(Interface::CublasLt));
            }
        };
        let bias = match epilogue.has_bias() {
            true => bias,
            false => ptr::null(),
        };
        Ok(LtEpilogue { number, bias })
    }
}

/// cublasLt's functions, and the memory that its algorithms may use.
pub struct Lt {
    create_description: CreateDescription,
    set_description: SetAttribute,
    destroy_description: Destroy,
    create_layout: CreateLayout,
    set_layout: SetAttribute,
    destroy_layout: Destroy,
    create_preference: CreatePreference,
    set_preference: SetAttribute,
    destroy_preference: Destroy,
    get_heuristic: GetHeuristic,
    matmul: Matmul,
    workspace: Allocated,
}

impl Lt {
    pub fn load(library: &Loaded, workspace: Allocated) -> Result<Lt, CublasError> {
        // SAFETY: the types are those of cublasLt's header.
        unsafe {
            Ok(Lt {
                create_description: library.function("cublasLtMatmulDescCreate")?,
                set_description: library.function("cublasLtMatmulDescSetAttribute")?,
                destroy_description: library.function("cublasLtMatmulDescDestroy")?,
                create_layout: library.function("cublasLtMatrixLayoutCreate")?,
                set_layout: library.function("cublasLtMatrixLayoutSetAttribute")?,
                destroy_layout: library.function("cublasLtMatrixLayoutDestroy")?,
                create_preference: library.function("cublasLtMatmulPreferenceCreate")?,
                set_preference: library.function("cublasLtMatmulPreferenceSetAttribute")?,
                destroy_preference: library.function("cublasLtMatmulPreferenceDestroy")?,
                get_heuristic: library.function("cublasLtMatmulAlgoGetHeuristic")?,
                matmul: library.function("cublasLtMatmul")?,
                workspace,
            })
        }
    }

    /// A product, with the algorithms that the heuristics propose; `alignments` are those of the
    /// first matrix, the second and the result, in bytes. A cuBLAS handle is also one of cublasLt.
    pub fn product(
        &self,
        handle: Handle,
        precision: Precision,
        (product, epilogue): (&ColumnMajor, Option<LtEpilogue>),
        alignments: [u32; 3],
    ) -> Result<LtProduct<'_>, CublasError> {
        if product.sides.contains(&0) {
            return Err(CublasError::NoAlgorithm);
        }
        let [inputs, output, scale] = precision.data_types();
        let compute = precision.compute_type();
        let description = Described::new(self.destroy_description, "cublasLtMatmulDescCreate", {
            // SAFETY: `made` can be written.
            |made| unsafe { (self.create_description)(made, compute, scale) }
        })?;
        for (attribute, operation) in DESCRIPTION_TRANSPOSES.into_iter().zip(product.operations) {
            description.set(self.set_description, attribute, operation)?;
        }
        if let Precision::FastE4m3(_) = precision {
            description.set(self.set_description, DESCRIPTION_FAST, 1_i8)?;
        }
        if let Some(LtEpilogue { number, bias }) = epilogue {
            description.set(self.set_description, DESCRIPTION_EPILOGUE, number)?;
            if !bias.is_null() {
                description.set(self.set_description, DESCRIPTION_BIAS, bias)?;
            }
        }
        let mut layouts = Vec::new();
        for (index, [rows, columns]) in product.stored().into_iter().enumerate() {
            let element = if index == 2 { output } else { inputs };
            let [rows, columns] = [rows, columns].map(|side| side as u64);
            let leading = i64::from(product.leading[index]);
            let layout = Described::new(self.destroy_layout, "cublasLtMatrixLayoutCreate", {
                // SAFETY: `made` can be written.
                |made| unsafe { (self.create_layout)(made, element, rows, columns, leading) }
            })?;
            layout.set(self.set_layout, LAYOUT_PRODUCTS, product.products)?;
            layout.set(self.set_layout, LAYOUT_STRIDE, product.strides[index])?;
            layouts.push(layout);
        }
        let layouts: [Described; 3] = layouts.try_into().map_err(|_| CublasError::NoAlgorithm)?;
        let preference =
            Described::new(self.destroy_preference, "cublasLtMatmulPreferenceCreate", {
                // SAFETY: `made` can be written.
                |made| unsafe { (self.create_preference)(made) }
            })?;
        preference.set(self.set_preference, PREFERENCE_WORKSPACE, WORKSPACE_BYTES)?;
        let [first, second, result] = alignments;
        let each = [first, second, result, result];
        for (attribute, alignment) in PREFERENCE_ALIGNMENTS.into_iter().zip(each) {
            preference.set(self.set_preference, attribute, alignment)?;
        }
        let (mut found, mut count) = ([Heuristic::default(); ALGORITHMS], 0);
        let [a, b, c] = layouts.each_ref().map(|layout| layout.raw);
        // SAFETY: cublasLt made the descriptions, and there is room for all requested algorithms.
        #[rustfmt::skip]
        let status = unsafe {
            (self.get_heuristic)(
                handle, description.raw, a, b, c, c, preference.raw,
                ALGORITHMS as c_int, found.as_mut_ptr(), &mut count,
            )
        };
        if status != NOT_SUPPORTED {
            succeeded("cublasLtMatmulAlgoGetHeuristic", status)?;
        }
        let found = found.into_iter().take(usize::try_from(count).unwrap_or(0));
        let found: Vec<Heuristic> = found.filter(|one| one.state == 0).collect();
        if status == NOT_SUPPORTED || found.is_empty() {
            return Err(CublasError::NoAlgorithm);
        }
        Ok(LtProduct {
            lt: self,
            description,
            layouts,
            found,
            chosen: 0,
        })
    }
}

/// A description that cublasLt made.
struct Described {
    raw: Raw,
    destroy: Destroy,
}

impl Described {
    fn new(
        destroy: Destroy,
        function: &'static str,
        create: impl FnOnce(*mut Raw) -> c_int,
    ) -> Result<Described, CublasError> {
        let mut raw = ptr::null_mut();
        succeeded(function, create(&mut raw))?;
        Ok(Described { raw, destroy })
    }

    /// Sets an attribute, with the function for this kind of description. `value` has the type
    /// that the header requires.
    fn set<V: Copy>(
        &self,
        set: SetAttribute,
        attribute: c_int,
        value: V,
    ) -> Result<(), CublasError> {
        let value = ptr::from_ref(&value);
        // SAFETY: the value can be read, and has the given size.
        let status = unsafe { set(self.raw, attribute, value.cast(), size_of::<V>()) };
        succeeded("cublasLt's SetAttribute", status)
    }
}

impl Drop for Described {
    fn drop(&mut self) {
        // SAFETY: it is not used again. If cublasLt fails, there is nothing to do.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// A product, and the algorithms for it.
pub struct LtProduct<'a> {
    lt: &'a Lt,
    description: Described,
    layouts: [Described; 3],
    /// Not empty.
    found: Vec<Heuristic>,
    chosen: usize,
}

impl LtProduct<'_> {
    pub fn algorithms(&self) -> usize {
        self.found.len()
    }

    /// # Panics
    ///
    /// If there is no algorithm with this number.
    pub fn choose(&mut self, algorithm: usize) {
        assert!(algorithm < self.found.len());
        self.chosen = algorithm;
    }

    /// # Safety
    ///
    /// As for `Product::launch`, with the first and the second matrix of the column-major product.
    pub unsafe fn launch(
        &self,
        handle: Handle,
        [alpha, beta]: [*const c_void; 2],
        [first, second]: [*mut c_void; 2],
        result: *mut c_void,
        stream: *mut c_void,
    ) -> Result<(), CublasError> {
        let [a, b, c] = self.layouts.each_ref().map(|layout| layout.raw);
        let workspace = self.lt.workspace.start();
        // SAFETY: the caller vouches for the matrices. The workspace has the promised size, and
        // launches of one stream use it one after the other.
        #[rustfmt::skip]
        let status = unsafe {
            (self.lt.matmul)(
                handle, self.description.raw, alpha, first, a, second, b, beta, result, c, result, c,
                &self.found[self.chosen].algorithm, workspace.cast(), WORKSPACE_BYTES, stream,
            )
        };
        succeeded("cublasLtMatmul", status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_as_large_as_the_headers() {
        assert_eq!((size_of::<Algorithm>(), size_of::<Heuristic>()), (64, 96));
    }

    #[test]
    fn an_alignment_is_a_power_of_two_up_to_256() {
        let of = [0, 1 << 20, 256, 128, 24, 6, 3].map(alignment);
        assert_eq!(of, [256, 256, 256, 128, 8, 2, 1]);
    }
}
