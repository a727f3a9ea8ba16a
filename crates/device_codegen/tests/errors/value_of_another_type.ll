define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %b = zext i32 %a to i64
  store i32 %b, ptr %out, align 4
  ret void
}
