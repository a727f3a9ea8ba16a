define void @kernel(ptr sparkling %out) section ".nvvm.kernel" {
  ret void
}
