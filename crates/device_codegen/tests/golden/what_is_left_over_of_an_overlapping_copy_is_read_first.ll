; libNVVM reads it last, when the rest of the copy may have overwritten it. An unknown length it must
; not find out.

define void @kernel(ptr %a, i64 %n) section ".nvvm.kernel" {
start:
  %behind = getelementptr i8, ptr %a, i64 8
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %behind, ptr align 8 %a, i64 12, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %behind, ptr align 4 %a, i64 22, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr align 2 %behind, ptr align 2 %a, i64 32, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %behind, ptr %a, i64 %n, i1 false)
  ret void
}

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
