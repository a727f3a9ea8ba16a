define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store i32 %missing, ptr %out, align 4
  ret void
}
