//! LLVM 15 and later: a pointer is a `ptr`.

use super::Pointers;

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
