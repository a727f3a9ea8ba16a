define void @kernel(ptr %a) section ".nvvm.kernel" {
start:
  call void @__nvvm_by_value(ptr %a, i64 8, i64 4)
  call void @__nvvm_by_value(ptr %a, i64 16, i64 4)
  ret void
}
declare void @__nvvm_by_value(ptr, i64, i64)
