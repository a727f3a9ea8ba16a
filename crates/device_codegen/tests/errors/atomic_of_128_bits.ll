define void @kernel(ptr %out, i128 %a) section ".nvvm.kernel" {
start:
  %old = atomicrmw xchg ptr %out, i128 %a monotonic, align 16
  ret void
}
