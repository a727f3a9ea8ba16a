define void @kernel(ptr %out, i32 %a) section ".nvvm.kernel" {
start:
  %old = atomicrmw xchg ptr %out, i8 1 monotonic, align 1
  ret void
}
