//! LLVM 7: a pointer has a pointee. All pointers are held as `i8*` and cast where they are used.

use super::Pointers;

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
