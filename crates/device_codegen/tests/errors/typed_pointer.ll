define void @kernel(i8* %out) section ".nvvm.kernel" {
  ret void
}
