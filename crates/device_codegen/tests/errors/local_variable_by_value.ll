define void @kernel(ptr %a) section ".nvvm.kernel" {
start:
  %b = getelementptr i8, ptr %a, i64 8
  call void @__nvvm_by_value(ptr %b, i64 8, i64 4)
  ret void
}
declare void @__nvvm_by_value(ptr, i64, i64)
