define void @store(ptr %out) section ".nvvm.kernel" {
start:
  store float 1.000000e-01, ptr %out, align 4
  ret void
}
