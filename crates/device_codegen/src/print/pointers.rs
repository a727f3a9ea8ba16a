//! What the dialects differ in most: pointers.

/// How a dialect writes pointers. Types and operands come and go as text.
pub(super) trait Pointers {
    /// The type of a pointer to anything.
    fn any(&self, space: u32) -> String;

    /// The type of a pointer to `pointee`.
    fn to(&self, pointee: &str, space: u32) -> String;

    /// Whether [`any`](Self::any) and [`to`](Self::to) `pointee` are two types, with a `bitcast`
    /// in between.
    fn differs(&self, pointee: &str) -> bool;
}

/// LLVM 7: a pointer has a pointee. All pointers are held as `i8*` and cast where they are used.
pub(super) struct TypedPointers;

impl Pointers for TypedPointers {
    fn any(&self, space: u32) -> String {
        self.to("i8", space)
    }

    fn to(&self, pointee: &str, space: u32) -> String {
        match space {
            0 => format!("{pointee}*"),
            _ => format!("{pointee} addrspace({space})*"),
        }
    }

    fn differs(&self, pointee: &str) -> bool {
        pointee != "i8"
    }
}

/// LLVM 15 and later: a pointer is a `ptr`.
pub(super) struct OpaquePointers;

impl Pointers for OpaquePointers {
    fn any(&self, space: u32) -> String {
        match space {
            0 => "ptr".to_owned(),
            _ => format!("ptr addrspace({space})"),
        }
    }

    fn to(&self, _pointee: &str, space: u32) -> String {
        self.any(space)
    }

    fn differs(&self, _pointee: &str) -> bool {
        false
    }
}
