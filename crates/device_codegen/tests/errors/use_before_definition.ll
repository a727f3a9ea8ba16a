define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  store i32 %b, ptr %out, align 4
  %b = add i32 %a, 1
  ret void
}
