define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %r = landingpad { ptr, i32 } cleanup
  ret void
}
