//! The two languages that libNVVM reads.

/// The language that libNVVM reads, which depends on the virtual architecture it compiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// LLVM 7 with typed pointers: libNVVM below `compute_100`.
    TypedPointers,
    /// Modern LLVM with opaque pointers: `compute_100` and up.
    OpaquePointers,
}
