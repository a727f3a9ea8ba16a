define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %n = call i32 (ptr, ...) @printf(ptr %out)
  ret void
}
declare i32 @printf(ptr, ...)
