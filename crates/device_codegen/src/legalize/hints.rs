//! Flags that LLVM 7 does not know. All of them are promises to the optimiser; without them the
//! code means the same.

use crate::ir::Operation;

/// Removes from an operation the flags that are newer than LLVM 7.
pub(super) fn remove(operation: &mut Operation) {
    match operation {
        // `or disjoint`
        Operation::Binary { flags, .. } => flags.retain(|flag| flag != "disjoint"),
        // `icmp samesign`
        Operation::Compare { flags, .. } => flags.retain(|flag| flag != "samesign"),
        // `getelementptr nusw nuw`; `inbounds` implies the former.
        Operation::ElementPointer { flags, .. } => flags.retain(|flag| flag == "inbounds"),
        // `trunc nuw nsw`, `zext nneg`, `uitofp nneg`, `fptrunc contract`
        Operation::Cast { flags, .. } => flags.clear(),
        // Fast-math flags, which LLVM 7 has on arithmetic and calls only.
        Operation::Select { flags, .. } | Operation::Phi { flags, .. } => flags.clear(),
        _ => {}
    }
}
