define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %r = call i32 @sinf(i32 %a)
  store i32 %r, ptr %out, align 4
  ret void
}
declare i32 @sinf(i32)
