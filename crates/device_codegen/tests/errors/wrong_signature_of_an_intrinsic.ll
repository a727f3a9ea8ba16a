define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %x = call i64 @__nvvm_thread_idx_x()
  store i64 %x, ptr %out, align 8
  ret void
}
declare i64 @__nvvm_thread_idx_x()
