define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store ptr @__nvvm_thread_idx_x, ptr %out, align 8
  ret void
}
declare i32 @__nvvm_thread_idx_x()
