define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  %base = call ptr @__nvvm_dynamic_shared(i32 48)
  store ptr %base, ptr %out, align 8
  ret void
}
declare ptr @__nvvm_dynamic_shared(i32)
