define void @kernel(ptr %a) section ".nvvm.kernel" {
start:
  call void @__nvvm_by_value(ptr %a, i64 0, i64 1)
  ret void
}
declare void @__nvvm_by_value(ptr, i64, i64)
