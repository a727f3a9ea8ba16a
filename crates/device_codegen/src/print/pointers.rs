//! What the dialects differ in most: pointers. Types and operands come and go as text.
//!
//! In LLVM 7 a pointer has a pointee: all pointers are held as `i8*` and cast where they are used.
//! In LLVM 15 and later a pointer is a `ptr`.

use crate::Dialect;

impl Dialect {
    /// The type of a pointer to anything.
    pub(super) fn any_pointer(self, space: u32) -> String {
        self.pointer_to("i8", space)
    }

    /// The type of a pointer to `pointee`.
    pub(super) fn pointer_to(self, pointee: &str, space: u32) -> String {
        let (name, star) = match self {
            Dialect::TypedPointers => (pointee, "*"),
            Dialect::OpaquePointers => ("ptr", ""),
        };
        match space {
            0 => format!("{name}{star}"),
            _ => format!("{name} addrspace({space}){star}"),
        }
    }

    /// Whether pointers to anything and to `pointee` are two types, with a `bitcast` in between.
    pub(super) fn tells_apart(self, pointee: &str) -> bool {
        self == Dialect::TypedPointers && pointee != "i8"
    }
}
