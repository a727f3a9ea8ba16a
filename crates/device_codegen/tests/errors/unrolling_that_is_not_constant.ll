define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  call void @__nvvm_unroll(i32 %a)
  ret void
}
declare void @__nvvm_unroll(i32)
