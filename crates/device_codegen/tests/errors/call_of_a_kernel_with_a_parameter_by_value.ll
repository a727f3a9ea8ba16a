define void @kernel(ptr %a) section ".nvvm.kernel" {
start:
  call void @__nvvm_by_value(ptr %a, i64 8, i64 4)
  ret void
}
define void @other(ptr %a) section ".nvvm.kernel" {
  call void @kernel(ptr %a)
  ret void
}
declare void @__nvvm_by_value(ptr, i64, i64)
