define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %v = load i32, ptr @LIMIT, align 4
  store i32 %v, ptr %out, align 4
  ret void
}
@LIMIT = external global i32, align 4
