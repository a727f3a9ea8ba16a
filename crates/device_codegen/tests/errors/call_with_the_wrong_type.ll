define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  call void @helper(i64 1)
  ret void
}
define void @helper(i32 %x) {
  ret void
}
