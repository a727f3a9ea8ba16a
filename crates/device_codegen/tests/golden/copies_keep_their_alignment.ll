; Without it libNVVM copies byte by byte.

define void @kernel(ptr %to, ptr %from) section ".nvvm.kernel" {
start:
  call void @llvm.memcpy.p0.p0.i64(ptr noundef nonnull align 16 dereferenceable(32) %to, ptr noundef nonnull align 16 dereferenceable(32) %from, i64 32, i1 false)
  call void @llvm.memset.p0.i64(ptr align 4 %to, i8 0, i64 8, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg)

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg)
